// LdsShadow: which LDS bytes were written, and which waves accessed each without being ordered: what finds races.
#pragma once
#include "isa_checks/exec/machine/wave.h"
#include "isa_checks/exec/sanitisers/flag_reads.h"
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace kiln::exec {

inline constexpr int max_waves = max_waves_per_workgroup;

// Happens-before, kept with vector clocks. Each wave counts as three: its LDS reads, its LDS writes, and the direct-to-LDS
// loads that it issued, because they are done at different times. Time is the wave's count of executed instructions.
//
//  * A barrier orders what every wave has done until then: its reads, the writes and direct-to-LDS loads that it waited for.
//  * A flag read (flag_reads.h) orders its wave after the write that it sees, and so after all earlier LDS operations of
//    that wave (the LDS performs those in order) and after the direct-to-LDS loads that it had waited for.
//  * An atomic orders its wave after the earlier atomics on that dword.
class LdsShadow {
public:
  static constexpr int threads = 3 * max_waves;
  using Clock = std::array<std::uint32_t, threads>;

  // `direct_loads`: the program has direct-to-LDS loads, which can race with their own wave.
  void reset(std::size_t bytes, int waves, bool find_races, bool direct_loads);
  void barrier(const std::vector<Wave>& waves); // every wave has arrived

  // One lane's access of `bytes` LDS bytes at `address`. Reports a race with another wave's access. `flag` says that the
  // read's value is waited on; `guards` that an atomic's result is.
  void read(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane, bool flag);
  void write(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane);
  void atomic(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane, bool guards);
  void direct_load(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane);

  std::vector<std::uint8_t> undefined; // 1: never written

private:
  enum Kind : std::uint8_t { plain, atomic_access, guard }; // guard: flag reads, and atomics whose result is waited on
  struct Cell {
    std::uint32_t write_time = 0, read_time = 0; // 0: none; of the latest
    std::uint32_t readers = 0;                   // 1 + index into readers_: all of them, when there are several waves
    std::uint8_t writer = 0, reader = 0;         // threads
    Kind write_kind = plain, read_kind = plain;
  };
  struct Readers {
    std::array<std::uint32_t, max_waves> time{};
    std::array<Kind, max_waves> kind{};
  };
  struct Accessor {
    Wave& wave;
    const Inst& inst;
    int lane;
    std::uint8_t self;   // the wave
    std::uint8_t thread; // that the access counts as
    std::uint32_t now;
    Kind kind;
  };

  bool ordered(const Accessor& a, std::uint32_t time, std::uint8_t thread) const;
  Accessor accessor(Wave& wave, const Inst& inst, int lane, int thread_group, Kind kind);
  template <class F> void for_each_cell(std::uint64_t address, unsigned bytes, F f);
  void read_cell(const Accessor& a, Cell& cell, std::uint64_t address);
  void write_cell(const Accessor& a, Cell& cell, std::uint64_t address);
  void check_readers(const Accessor& a, const Cell& cell, std::uint64_t address);
  void add_reader(const Accessor& a, Cell& cell);
  void acquire(const Accessor& a, const Cell& cell, std::uint64_t address);
  void refresh(Wave& wave); // direct-to-LDS loads that have been waited for since
  void changed(int wave, std::uint32_t now);
  void report(const Accessor& a, const char* what, std::uint32_t time, std::uint8_t other, const char* other_what, std::uint64_t address);

  std::vector<Cell> cells_;                                      // a dword each
  std::unordered_map<std::uint64_t, std::array<Cell, 4>> split_; // dwords that were accessed by bytes
  std::vector<std::uint8_t> is_split_;
  std::vector<Readers> readers_;
  std::array<Clock, max_waves> clocks_{};
  Clock floor_{}; // what the latest barrier ordered
  struct Version {
    std::uint32_t from;
    Clock clock;
  };
  std::array<std::vector<Version>, max_waves> history_; // of each wave's clock, for flag reads to look up
  std::unordered_map<std::uint64_t, Clock> released_;   // by dword that atomics use
  bool find_races_ = true;
};

} // namespace kiln::exec
