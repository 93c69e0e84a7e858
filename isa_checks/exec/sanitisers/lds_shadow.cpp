// Race detection between the waves of a workgroup.
#include "isa_checks/exec/sanitisers/lds_shadow.h"
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/machine/wait_counts.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace kiln::exec {
namespace {

// The threads of wave w: w for its reads, and these further ones.
constexpr int reads = 0, writes = max_waves, direct_loads_of = 2 * max_waves;
constexpr std::size_t longest_history = 1U << 14;

void join(LdsShadow::Clock& into, const LdsShadow::Clock& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}
std::uint32_t now_of(const Wave& wave) { return static_cast<std::uint32_t>(wave.executed); }

} // namespace

void LdsShadow::reset(std::size_t bytes, int waves, bool find_races, bool direct_loads) {
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

void LdsShadow::changed(int wave, std::uint32_t now) {
  auto& versions = history_[static_cast<std::size_t>(wave)];
  if (versions.size() >= longest_history) versions.erase(versions.begin(), versions.begin() + longest_history / 2);
  versions.push_back({now, clocks_[static_cast<std::size_t>(wave)]});
}

void LdsShadow::refresh(Wave& wave) {
  if (wave.in_flight == nullptr) return;
  const auto w = static_cast<std::size_t>(wave.index);
  const std::uint32_t done = wave.state == WaveState::ended ? now_of(wave) : wave.in_flight->to_lds_done_until();
  std::uint32_t& known = clocks_[w][w + direct_loads_of];
  if (done > known) {
    known = done;
    changed(wave.index, now_of(wave));
  }
}

void LdsShadow::barrier(const std::vector<Wave>& waves) {
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

bool LdsShadow::ordered(const Accessor& a, std::uint32_t time, std::uint8_t thread) const {
  if (time == 0 || thread == a.self || thread == a.self + writes) return true;
  if (thread == a.self + direct_loads_of && a.thread == thread) return true; // direct loads of one wave land in order
  return time <= clocks_[a.self][thread];
}

LdsShadow::Accessor LdsShadow::accessor(Wave& wave, const Inst& inst, int lane, int thread_group, Kind kind) {
  const auto self = static_cast<std::uint8_t>(wave.index);
  return {wave, inst, lane, self, static_cast<std::uint8_t>(self + thread_group), now_of(wave), kind};
}

// Calls f with each dword's cell, or, for accesses of less than a dword and dwords that had such, with each byte's.
template <class F> void LdsShadow::for_each_cell(std::uint64_t address, unsigned bytes, F f) {
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

void LdsShadow::report(const Accessor& a, const char* what, std::uint32_t time, std::uint8_t other, const char* other_what,
                       std::uint64_t address) {
  const bool own_load = other == a.self + direct_loads_of;
  const DefectKind kind = own_load ? DefectKind::unwaited_lds : DefectKind::lds_race;
  exec::report(a.wave, a.inst, kind, a.lane, [&] {
    if (own_load) return fmt::format("{} LDS byte {} while the wave's own direct-to-LDS load to it is in flight", what, address);
    const bool issued_before = other >= max_waves && time <= clocks_[a.self][other % max_waves];
    return fmt::format("{} LDS byte {}, which {}wave {} {} {}", what, address, other >= direct_loads_of ? "a direct-to-LDS load of " : "",
                       other % max_waves, other_what,
                       issued_before ? "earlier, but did not wait for before it let this wave go on" : "with nothing that orders the two");
  });
}

// The wave has seen what the cell's writer wrote: it comes after all that the writer knew and had done by then.
void LdsShadow::acquire(const Accessor& a, const Cell& cell, std::uint64_t address) {
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

void LdsShadow::add_reader(const Accessor& a, Cell& cell) {
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

void LdsShadow::read_cell(const Accessor& a, Cell& cell, std::uint64_t address) {
  if (!ordered(a, cell.write_time, cell.writer)) {
    const bool lands_later = cell.writer >= direct_loads_of; // a flag cannot be loaded directly: nothing says when it is there
    if (a.kind == guard && !lands_later) acquire(a, cell, address);
    else if (a.kind == plain || cell.write_kind == plain) report(a, "reads", cell.write_time, cell.writer, "wrote", address);
  }
  add_reader(a, cell);
}

// Reads that race with this write. Waves that poll a flag read it while another one writes it: that is what flags are for.
void LdsShadow::check_readers(const Accessor& a, const Cell& cell, std::uint64_t address) {
  if (cell.read_time <= floor_[cell.reader]) return; // so are all others
  const auto check = [&](std::uint32_t time, std::uint8_t reader, Kind kind) {
    const bool waited_on = kind == guard && a.thread < direct_loads_of;
    if (!waited_on && !(kind != plain && a.kind != plain) && !ordered(a, time, reader)) report(a, "writes", time, reader, "read", address);
  };
  if (cell.readers == 0) return check(cell.read_time, cell.reader, cell.read_kind);
  const Readers& all = readers_[cell.readers - 1];
  for (std::uint8_t w = 0; w < max_waves; ++w) check(all.time[w], w, all.kind[w]);
}

void LdsShadow::write_cell(const Accessor& a, Cell& cell, std::uint64_t address) {
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

void LdsShadow::read(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane, bool flag) {
  if (!find_races_) return;
  refresh(wave);
  const Accessor a = accessor(wave, inst, lane, reads, flag ? guard : plain);
  for_each_cell(address, bytes, [&](Cell& cell, std::uint64_t at) { read_cell(a, cell, at); });
}

void LdsShadow::write(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane) {
  if (!find_races_) return;
  refresh(wave);
  const Accessor a = accessor(wave, inst, lane, writes, plain);
  for_each_cell(address, bytes, [&](Cell& cell, std::uint64_t at) { write_cell(a, cell, at); });
}

void LdsShadow::direct_load(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane) {
  if (!find_races_) return;
  refresh(wave);
  const Accessor a = accessor(wave, inst, lane, direct_loads_of, plain);
  for_each_cell(address, bytes, [&](Cell& cell, std::uint64_t at) { write_cell(a, cell, at); });
}

void LdsShadow::atomic(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane, bool guards) {
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

} // namespace kiln::exec
