// Tuning table: which schedule was the quickest for a shape, as a file of JSON lines to review and to commit. docs/tuning.md shows one.
#pragma once
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include "runtime/events.h"
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

struct TuningEntry {
  std::string kernel;                // the spec's name
  std::string shape, types;          // for people: "a[m, 4096] b[2048, 4096] -> c[m, 2048]", "e4m3fn e4m3fn f32 -> f16"
  std::string arch, chip;            // "gfx942", "mi300x"
  std::vector<std::int64_t> bounds;  // the most that each run-time size may be, in the spec's order; 0: as much as it likes
  std::vector<std::string> schedule; // settings: with_overrides makes the schedule of them
  double microseconds = 0;
  std::string how;            // "predicted, cold"; "measured on AMD Instinct MI300X, median of 10 samples"
  int tried = 0;              // schedules that kept their ISA contract
  std::string kiln, compiler; // versions that the time is of
  std::string spec;           // shape_key
  bool operator==(const TuningEntry&) const = default;
};

// The spec's text without the bounds of its run-time sizes: equal for the buckets of one shape.
std::string shape_key(const KernelSpec& spec);
std::vector<std::int64_t> bounds_of(const KernelSpec& spec);
TuningEntry entry_of(const KernelSpec& spec, const Target& target, std::string_view chip); // without a schedule and a time

// Names this Kiln: a schedule that another one found may be slower, or break its contract, with this one.
std::string kiln_version();

std::string to_line(const TuningEntry& entry);
// Blank lines and lines that begin with # are skipped; so is a last line that was cut off while it was written, which `log` is told.
// Throws UserError, which names the line as "FILE line N".
std::vector<TuningEntry> read_tuning_table(const std::filesystem::path& file, const LogFunction& log);
// As append_line. Throws EnvironmentError.
void append_entry(const std::filesystem::path& file, const TuningEntry& entry);

} // namespace kiln
