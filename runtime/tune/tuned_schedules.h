// TunedSchedules: what the tables of KILN_TUNING say of a spec. Loud about what they do not say.
#pragma once
#include "runtime/environment.h"
#include "runtime/tune/tuning_table.h"
#include <memory>
#include <mutex>
#include <set>

namespace kiln {

struct TuningOptions {
  std::vector<std::filesystem::path> tables; // the first that has a shape decides
  std::string chip;                          // whose entries are read; empty: those of the largest chip of the architecture
  std::filesystem::path misses;              // a manifest of the kernels that no table has; empty: none is kept
};
TuningOptions tuning_options(const Environment& environment);

// Thread-safe.
class TunedSchedules {
public:
  // Reads the tables. `compiler`: the identity of the compiler that will compile; asked once, when an entry is found. Throws UserError
  // for a table that cannot be read, and for a chip that does not exist.
  TunedSchedules(TuningOptions options, std::shared_ptr<EventLog> events, std::function<std::string()> compiler);

  // Settings of the schedule: of the entry with the nearest bounds, by ratio. Empty, after an event, when there is none:
  // "tuning_miss" no table has the shape for the chip; "tuning_stale" the one that does is of another Kiln or compiler.
  std::vector<std::string> settings_for(const KernelSpec& spec, const Target& target);
  // An entry's schedule is invalid, or its code breaks its contract: the event "tuning_rejected".
  void reject(const KernelSpec& spec, const std::vector<std::string>& settings, const std::string& reason);

private:
  struct Table {
    std::filesystem::path file;
    std::vector<TuningEntry> entries;
  };
  void miss(const KernelSpec& spec, const Target& target, std::string_view chip);
  bool is_current(const TuningEntry& entry);

  TuningOptions options_;
  std::shared_ptr<EventLog> events_;
  std::function<std::string()> compiler_source_;
  std::vector<Table> tables_;
  std::mutex mutex_;
  std::string compiler_;
  std::set<std::string> missed_; // lines of the manifest
};

} // namespace kiln
