// LdsShadow: which LDS bytes were written, and which waves accessed each without being ordered: what finds races.
#pragma once
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/machine/wait_counts.h"
#include "isa_checks/exec/machine/wave.h"
#include "isa_checks/exec/sanitisers/flag_reads.h"
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
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
  void reset(std::size_t bytes, int waves, bool find_races, bool direct_loads) {
    find_races_ = find_races && (waves > 1 || direct_loads);
    const std::size_t dwords = find_races_ ? (bytes + 3) / 4 : 0;
    cells_.assign(dwords, {});
    is_split_.assign(dwords, 0);
    split_.clear();
    readers_.clear();
    undefined.assign(bytes, 1);
    released_.clear();
    for (Clock& clock : clocks_) clock.fill(0);
    floor_.fill(0);
    for (auto& versions : history_) versions.clear();
  }

  void barrier(const std::vector<Wave>& waves) { // every wave has arrived
    if (!find_races_) return;
    Clock joined = floor_;
    for (const Wave& wave : waves) {
      const auto w = static_cast<std::size_t>(wave.index);
      join(joined, clocks_[w]);
      const bool drained = wave.in_flight == nullptr || wave.state == WaveState::ended;
      joined[w + reads] = now_of(wave);
      joined[w + writes] = drained ? now_of(wave) : wave.in_flight->lds_done_until();
      joined[w + direct_loads_of] = drained ? now_of(wave) : wave.in_flight->to_lds_done_until();
    }
    floor_ = joined;
    for (const Wave& wave : waves) {
      clocks_[static_cast<std::size_t>(wave.index)] = joined;
      history_[static_cast<std::size_t>(wave.index)].assign(1, {now_of(wave), joined});
    }
  }

  // One lane's access of `bytes` LDS bytes at `address`. Reports a race with another wave's access. `flag` says that the
  // read's value is waited on; `guards` that an atomic's result is.
  void read(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane, bool flag) {
    if (!find_races_) return;
    refresh(wave);
    const Accessor a = accessor(wave, inst, lane, reads, flag ? guard : plain);
    for_each_cell(address, bytes, [&](Cell& cell, std::uint64_t at) { read_cell(a, cell, at); });
  }

  void write(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane) {
    if (!find_races_) return;
    refresh(wave);
    const Accessor a = accessor(wave, inst, lane, writes, plain);
    for_each_cell(address, bytes, [&](Cell& cell, std::uint64_t at) { write_cell(a, cell, at); });
  }

  void atomic(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane, bool guards) {
    if (!find_races_) return;
    refresh(wave);
    const Accessor a = accessor(wave, inst, lane, writes, guards ? guard : atomic_access);
    Clock& mine = clocks_[a.self];
    Clock& released = released_[address & ~3ULL];
    join(mine, released);
    for_each_cell(address, bytes, [&](Cell& cell, std::uint64_t at) {
      if (guards && !ordered(a, cell.write_time, cell.writer) && cell.writer < direct_loads_of) acquire(a, cell, at);
      write_cell(a, cell, at);
    });
    Clock known = mine;
    known[a.self + reads] = known[a.self + writes] = a.now;
    join(released, known);
    changed(a.self, a.now);
  }

  void direct_load(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane) {
    if (!find_races_) return;
    refresh(wave);
    const Accessor a = accessor(wave, inst, lane, direct_loads_of, plain);
    for_each_cell(address, bytes, [&](Cell& cell, std::uint64_t at) { write_cell(a, cell, at); });
  }

  std::vector<std::uint8_t> undefined; // 1: never written

private:
  // The threads of wave w: w for its reads, and these further ones.
  static constexpr int reads = 0, writes = max_waves, direct_loads_of = 2 * max_waves;
  static constexpr std::size_t longest_history = 1U << 14;

  static void join(Clock& into, const Clock& from) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
  }
  static std::uint32_t now_of(const Wave& wave) { return static_cast<std::uint32_t>(wave.executed); }

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

  bool ordered(const Accessor& a, std::uint32_t time, std::uint8_t thread) const {
    if (time == 0 || thread == a.self || thread == a.self + writes) return true;
    if (thread == a.self + direct_loads_of && a.thread == thread) return true; // direct loads of one wave land in order
    return time <= clocks_[a.self][thread];
  }

  Accessor accessor(Wave& wave, const Inst& inst, int lane, int thread_group, Kind kind) {
    const auto self = static_cast<std::uint8_t>(wave.index);
    return {wave, inst, lane, self, static_cast<std::uint8_t>(self + thread_group), now_of(wave), kind};
  }

  // Calls f with each dword's cell, or, for accesses of less than a dword and dwords that had such, with each byte's.
  template <class F> void for_each_cell(std::uint64_t address, unsigned bytes, F f) {
    const std::uint64_t end = std::min<std::uint64_t>(address + bytes, undefined.size());
    for (std::uint64_t at = address; at < end;) {
      const std::uint64_t dword = at / 4;
      const bool whole = at % 4 == 0 && at + 4 <= end;
      if (whole && is_split_[dword] == 0) {
        f(cells_[dword], at);
        at += 4;
        continue;
      }
      if (is_split_[dword] == 0) {
        is_split_[dword] = 1;
        split_[dword].fill(cells_[dword]);
      }
      std::array<Cell, 4>& parts = split_[dword];
      for (; at < end && at / 4 == dword; ++at) f(parts[at % 4], at);
    }
  }

  void read_cell(const Accessor& a, Cell& cell, std::uint64_t address) {
    if (!ordered(a, cell.write_time, cell.writer)) {
      const bool lands_later = cell.writer >= direct_loads_of; // a flag cannot be loaded directly: nothing says when it is there
      if (a.kind == guard && !lands_later) acquire(a, cell, address);
      else if (a.kind == plain || cell.write_kind == plain) report(a, "reads", cell.write_time, cell.writer, "wrote", address);
    }
    add_reader(a, cell);
  }

  void write_cell(const Accessor& a, Cell& cell, std::uint64_t address) {
    if (!ordered(a, cell.write_time, cell.writer)) {
      const bool both_atomic = a.kind != plain && cell.write_kind != plain;
      const bool guarded = (a.kind == guard || cell.write_kind == guard) && cell.writer < direct_loads_of && a.thread < direct_loads_of;
      if (!both_atomic && !guarded) report(a, "writes", cell.write_time, cell.writer, "wrote", address);
    }
    check_readers(a, cell, address);
    cell.write_time = a.now;
    cell.writer = a.thread;
    cell.write_kind = a.kind;
    cell.read_time = 0; // who is not ordered after those reads is not ordered after this write either
    cell.readers = 0;
  }

  // Reads that race with this write. Waves that poll a flag read it while another one writes it: that is what flags are for.
  void check_readers(const Accessor& a, const Cell& cell, std::uint64_t address) {
    if (cell.read_time <= floor_[cell.reader]) return; // so are all others
    const auto check = [&](std::uint32_t time, std::uint8_t reader, Kind kind) {
      const bool waited_on = kind == guard && a.thread < direct_loads_of;
      if (!waited_on && !(kind != plain && a.kind != plain) && !ordered(a, time, reader))
        report(a, "writes", time, reader, "read", address);
    };
    if (cell.readers == 0) return check(cell.read_time, cell.reader, cell.read_kind);
    const Readers& all = readers_[cell.readers - 1];
    for (std::uint8_t w = 0; w < max_waves; ++w) check(all.time[w], w, all.kind[w]);
  }

  void add_reader(const Accessor& a, Cell& cell) {
    const bool live = cell.read_time > floor_[cell.reader];
    if (!live || (cell.readers == 0 && (cell.reader == a.self || ordered(a, cell.read_time, cell.reader)))) {
      // The reader before is ordered before this one: who is ordered after this one is ordered after both.
      const Kind kind = live && cell.reader == a.self && cell.read_kind == plain ? plain : a.kind;
      cell.read_time = a.now;
      cell.reader = a.self;
      cell.read_kind = kind;
      cell.readers = 0;
      return;
    }
    if (cell.readers == 0) {
      readers_.push_back({});
      cell.readers = static_cast<std::uint32_t>(readers_.size());
      readers_.back().time[cell.reader] = cell.read_time;
      readers_.back().kind[cell.reader] = cell.read_kind;
    }
    Readers& all = readers_[cell.readers - 1];
    if (all.time[a.self] <= floor_[a.self] || a.kind == plain) all.kind[a.self] = a.kind;
    all.time[a.self] = a.now;
    cell.read_time = a.now;
    cell.reader = a.self;
    cell.read_kind = a.kind;
  }

  // The wave has seen what the cell's writer wrote: it comes after all that the writer knew and had done by then.
  void acquire(const Accessor& a, const Cell& cell, std::uint64_t address) {
    Clock& mine = clocks_[a.self];
    const auto writer = static_cast<std::size_t>(cell.writer % max_waves);
    if (cell.write_kind != plain) {
      if (const auto at = released_.find(address & ~3ULL); at != released_.end()) join(mine, at->second);
    }
    const auto& versions = history_[writer];
    const auto after = std::upper_bound(versions.begin(), versions.end(), cell.write_time,
                                        [](std::uint32_t time, const Version& v) { return time < v.from; });
    if (after != versions.begin()) join(mine, std::prev(after)->clock);
    mine[writer + reads] = std::max(mine[writer + reads], cell.write_time);
    mine[writer + writes] = std::max(mine[writer + writes], cell.write_time);
    changed(a.self, a.now);
  }

  // Notes the direct-to-LDS loads that have been waited for since.
  void refresh(Wave& wave) {
    if (wave.in_flight == nullptr) return;
    const auto w = static_cast<std::size_t>(wave.index);
    const std::uint32_t done = wave.state == WaveState::ended ? now_of(wave) : wave.in_flight->to_lds_done_until();
    std::uint32_t& known = clocks_[w][w + direct_loads_of];
    if (done > known) {
      known = done;
      changed(wave.index, now_of(wave));
    }
  }

  void changed(int wave, std::uint32_t now) {
    auto& versions = history_[static_cast<std::size_t>(wave)];
    if (versions.size() >= longest_history) versions.erase(versions.begin(), versions.begin() + longest_history / 2);
    versions.push_back({now, clocks_[static_cast<std::size_t>(wave)]});
  }

  void report(const Accessor& a, const char* what, std::uint32_t time, std::uint8_t other, const char* other_what, std::uint64_t address) {
    const bool own_load = other == a.self + direct_loads_of;
    const DefectKind kind = own_load ? DefectKind::unwaited_lds : DefectKind::lds_race;
    exec::report(a.wave, a.inst, kind, a.lane, [&] {
      if (own_load) return fmt::format("{} LDS byte {} while the wave's own direct-to-LDS load to it is in flight", what, address);
      const bool issued_before = other >= max_waves && time <= clocks_[a.self][other % max_waves];
      return fmt::format("{} LDS byte {}, which {}wave {} {} {}", what, address, other >= direct_loads_of ? "a direct-to-LDS load of " : "",
                         other % max_waves, other_what,
                         issued_before ? "earlier, but did not wait for before it let this wave go on"
                                       : "with nothing that orders the two");
    });
  }

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
