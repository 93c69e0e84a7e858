// Following an execution: steps of waves, lines of memory, and waits of one wave for another.
#include "isa_checks/timing/recorder.h"
#include "isa_checks/exec/machine/memory.h"
#include <algorithm>
#include <array>
#include <bit>
#include <fmt/format.h>

namespace kiln::timing {
namespace {

using exec::Inst;
using exec::InstClass;
using exec::LaneAccess;
using exec::Wave;
using exec::WaveAddresses;
using std::uint32_t;
using std::uint64_t;

constexpr uint64_t device_place = 1ULL << 63; // tells places of device memory from those of LDS
constexpr uint32_t longest_spin = 1024;       // steps between two reads of a loop that only waits: of four parts of 32 numbers, 400

bool depends(const Inst& before, const Inst& now) {
  if (before.cls != InstClass::valu && before.cls != InstClass::trans) return false;
  if (now.cls != InstClass::valu && now.cls != InstClass::trans) return false;
  return std::ranges::any_of(before.use.writes(), [&](isa::RegisterRange w) { return w.vector() && now.use.reads_any(w); });
}

// The place that all lanes access, if it is one.
bool one_place(const WaveAddresses& at, uint64_t& place) {
  if (at.mask == 0) return false;
  place = at.lane[std::countr_zero(at.mask)];
  for (uint64_t m = at.mask; m != 0; m &= m - 1)
    if (at.lane[std::countr_zero(m)] != place) return false;
  return true;
}

void mix(uint64_t& hash, uint64_t value) { hash = (std::rotl(hash, 5) ^ value) * 0x9e3779b97f4a7c15ULL; }

// Stands for the places that the lanes access.
uint64_t places_of(const WaveAddresses& at) {
  uint64_t hash = 1;
  for (uint64_t m = at.mask; m != 0; m &= m - 1) mix(hash, at.lane[std::countr_zero(m)]);
  return hash;
}

using Halves = std::array<uint64_t, 2 * exec::lane_count>;

// As std::sort. Lanes mostly take places of rows that lie close together: then one pass over bits that stand for them is quicker.
void sort(Halves& halves, std::size_t n) {
  const auto end = halves.begin() + static_cast<std::ptrdiff_t>(n);
  if (std::is_sorted(halves.begin(), end)) return;
  const auto [least, most] = std::minmax_element(halves.begin(), end);
  std::array<uint64_t, 64> bits{};
  const uint64_t first = *least;
  if (*most - first >= 64 * bits.size()) return std::sort(halves.begin(), end);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) bits[(halves[i] - first) / 64] |= 1ULL << (halves[i] - first) % 64;
  for (std::size_t w = 0; w < bits.size(); ++w)
    for (uint64_t m = bits[w]; m != 0; m &= m - 1) halves[kept++] = first + 64 * w + static_cast<uint64_t>(std::countr_zero(m));
  std::fill(halves.begin() + static_cast<std::ptrdiff_t>(kept), end, halves[kept - 1]);
}

// The 64 bytes that lanes access, each once, and the lines that these are of.
void add_halves(Access& a, std::vector<uint64_t>& lines, const LaneAccess& op, const WaveAddresses& at) {
  Halves halves;
  std::size_t n = 0;
  for (uint64_t m = at.mask; m != 0; m &= m - 1) {
    const uint64_t address = at.lane[std::countr_zero(m)];
    const uint64_t first = address / 64, last = (address + op.bytes - 1) / 64;
    if (n == 0 || halves[n - 1] != first) halves[n++] = first;
    if (last != first) halves[n++] = last;
  }
  sort(halves, n);
  for (std::size_t i = 0; i < n; ++i) {
    if (i != 0 && halves[i] == halves[i - 1]) continue;
    ++a.halves;
    if (i != 0 && halves[i] / 2 == halves[i - 1] / 2) continue;
    ++a.lines;
    lines.push_back(halves[i] / 2);
  }
}

} // namespace

std::size_t Workgroup::steps() const {
  std::size_t n = 0;
  for (const auto& w : waves) n += w.size();
  return n;
}

Recorder::GroupState& Recorder::state_of(const Wave& wave) {
  const auto& id = wave.group->id;
  const uint32_t number = id[0] + grid_.workgroups[0] * (id[1] + grid_.workgroups[1] * id[2]);
  if (number == latest_number_) return groups_[latest_];
  const auto [found, fresh] = index_.try_emplace(number, groups_.size());
  if (fresh) {
    GroupState& g = groups_.emplace_back();
    g.group.number = number;
    g.group.waves.resize(static_cast<std::size_t>(waves_));
    g.waves.resize(static_cast<std::size_t>(waves_));
  }
  latest_number_ = number;
  latest_ = found->second;
  return groups_[latest_];
}

// Whether the instruction that the wave is at depends on the one before it in the program; found out once.
bool Recorder::depends_on_previous(const Wave& wave) {
  if (depends_.empty()) {
    depends_.resize(wave.program.size());
    for (std::size_t i = 1; i < wave.program.size(); ++i) depends_[i] = depends(wave.program[i - 1], wave.program[i]);
  }
  return depends_[wave.pc];
}

void Recorder::execute(const Wave& wave, const Inst& inst) {
  if (++recorded_ > max_steps_)
    throw TooLong(fmt::format("prediction of kernel {}", kernel_),
                  fmt::format("the workgroups that have to be executed take more than {} wave instructions", max_steps_),
                  "predict a launch of less work");
  GroupState& g = state_of(wave);
  const auto w = static_cast<std::size_t>(wave.index);
  WaveState& state = g.waves[w];
  std::vector<Step>& steps = g.group.waves[w];
  Step step{.code = wave.pc};
  if (state.last != nullptr) {
    const auto before = steps.back().code;
    if (state.last->cls == InstClass::branch && wave.pc != before + 1) steps.back().taken = true;
    step.dependent = before + 1 == wave.pc ? depends_on_previous(wave) : depends(*state.last, inst);
  }
  if (inst.cls == InstClass::matrix || inst.cls == InstClass::barrier) ++state.effects;
  state.last = &inst;
  steps.push_back(step);
}

Access& Recorder::access_of(GroupState& g, const Wave& wave) {
  Step& step = g.group.waves[static_cast<std::size_t>(wave.index)].back();
  if (step.access == none) {
    step.access = static_cast<uint32_t>(g.group.accesses.size());
    g.group.accesses.push_back({.first = static_cast<uint32_t>(g.group.lines.size())});
  }
  return g.group.accesses[step.access];
}

// A wave that reads one place again and again, and does nothing else, waits: only its last read stays in the record.
void Recorder::follow_place(GroupState& g, const Wave& wave, uint64_t place, bool reads, bool writes) {
  const auto w = static_cast<std::size_t>(wave.index);
  WaveState& state = g.waves[w];
  std::vector<Step>& steps = g.group.waves[w];
  if (reads) {
    LatestRead& latest = state.reads[wave.pc];
    const auto now = static_cast<uint32_t>(steps.size() - 1);
    if (latest.place == place && latest.effects == state.effects && latest.step < now && now - latest.step <= longest_spin) {
      steps[latest.step] = steps.back();
      steps.resize(latest.step + 1);
      if (std::ranges::find(polled_, wave.pc) == polled_.end()) polled_.push_back(wave.pc);
    } else {
      latest = {place, now, state.effects};
    }
    if (const auto found = g.writes.find(place); found != g.writes.end() && found->second.wave != static_cast<uint32_t>(wave.index)) {
      Access& a = access_of(g, wave);
      a.writer = found->second.wave;
      a.written_at = found->second.step;
    }
  }
  if (writes) {
    g.writes[place] = {static_cast<uint32_t>(wave.index), static_cast<uint32_t>(steps.size() - 1)};
    ++state.effects;
  }
}

// What workgroups exchange. A read comes after the writes that it sees, each lane's another one.
void Recorder::follow_device(GroupState& g, const Wave& wave, const LaneAccess& op, const WaveAddresses& at) {
  const auto index = static_cast<uint32_t>(wave.index);
  const auto step = static_cast<uint32_t>(g.group.waves[index].size() - 1);
  std::vector<Awaited>& awaited = g.group.awaited;
  Access& a = access_of(g, wave);
  a.first_awaited = static_cast<uint32_t>(awaited.size());
  for (uint64_t m = at.mask; m != 0; m &= m - 1) {
    const uint64_t place = at.lane[std::countr_zero(m)];
    if (op.store) told_[place] = {g.group.number, index, step};
    const auto found = told_.find(place);
    if (op.store || found == told_.end() || (found->second.workgroup == g.group.number && found->second.wave == index)) continue;
    if (std::find(awaited.begin() + a.first_awaited, awaited.end(), found->second) == awaited.end()) awaited.push_back(found->second);
  }
  a.awaited = static_cast<uint32_t>(awaited.size()) - a.first_awaited;
}

void Recorder::check_decides(const Wave& wave, uint64_t address) const {
  if (stores_decide_ || unwanted_[wave.pc] != 0) return;
  if (const exec::Allocation* a = wave.memory->find(address); a != nullptr && a->writable) throw StoresDecide();
}

void Recorder::access(const Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) {
  if (at.mask != 0 && !op.store && op.atomic == exec::Atomic::none) check_decides(wave, at.lane[std::countr_zero(at.mask)]);
  GroupState& g = state_of(wave);
  Access& a = access_of(g, wave);
  add_halves(a, g.group.lines, op, at);
  a.bytes += static_cast<uint32_t>(std::popcount(at.mask)) * op.bytes;
  const bool atomic = op.atomic != exec::Atomic::none;
  uint64_t place = 0;
  if ((atomic || inst.fields.sc0 || inst.fields.sc1) && one_place(at, place))
    follow_place(g, wave, place | device_place, !op.store, atomic || op.store);
  else if (!atomic && inst.fields.sc1 && !op.store) follow_place(g, wave, places_of(at) | device_place, true, false);
  else ++g.waves[static_cast<std::size_t>(wave.index)].effects;
  if (!atomic && inst.fields.sc1) follow_device(g, wave, op, at);
}

void Recorder::access_lds(const Wave& wave, const Inst&, const LaneAccess& op, const WaveAddresses& at, const isa::BankPasses& passes) {
  GroupState& g = state_of(wave);
  Access& a = access_of(g, wave);
  a.passes += passes.needed;
  a.bytes += static_cast<uint32_t>(std::popcount(at.mask)) * op.bytes;
  const bool atomic = op.atomic != exec::Atomic::none;
  if (uint64_t place = 0; op.bytes == 4 && one_place(at, place)) follow_place(g, wave, place, !op.store, atomic || op.store);
  else if (op.store) ++g.waves[static_cast<std::size_t>(wave.index)].effects;
}

void Recorder::access_scalar(const Wave& wave, const Inst&, uint64_t address, uint32_t bytes) {
  check_decides(wave, address);
  GroupState& g = state_of(wave);
  Access& a = access_of(g, wave);
  a.bytes = bytes;
  a.lines = 1;
  a.halves = 1;
  g.group.lines.push_back(address / line_bytes);
}

std::vector<Workgroup> Recorder::take() {
  std::vector<Workgroup> all;
  for (GroupState& g : groups_) {
    uint64_t hash = 1;
    for (const auto& steps : g.group.waves)
      for (const Step& s : steps) {
        mix(hash, s.code);
        if (s.access != none) mix(hash, g.group.accesses[s.access].lines);
      }
    g.group.signature = hash;
    all.push_back(std::move(g.group));
  }
  std::ranges::sort(all, {}, &Workgroup::number);
  groups_.clear();
  index_.clear();
  return all;
}

} // namespace kiln::timing
