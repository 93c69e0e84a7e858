// The waves of a workgroup, interleaved by a seeded scheduler.
#include "isa_checks/exec/run/workgroup_run.h"
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/machine/observer.h"
#include "isa_checks/exec/machine/stop.h"
#include "isa_checks/exec/sanitisers/operand_checks.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <span>

namespace kiln::exec {
namespace {

constexpr std::uint16_t vector_file = 256, register_slack = 32; // slack: a wide operand at the end of the file
// A wave that executed fewer may be on its way round a loop that polls, of 4 to 20 instructions in Kiln's code: no sign that it works.
constexpr u64 loop_that_polls = 32;
constexpr u64 longest_slice = 128; // instructions of one wave before another may go on
constexpr u64 slice_in_turns = 32; // the same where waves advance side by side: as close as what they do is told apart

} // namespace

WorkgroupRun::WorkgroupRun(const RunContext& context, Defects& defects, InstCounters* counters, int slot)
    : context_(context), defects_(defects), slot_(slot) {
  const Dispatch& dispatch = context.dispatch;
  const ExecOptions& options = context.options;
  const bool accumulation = dispatch.kernel->descriptor.vgprs > dispatch.kernel->descriptor.accum_offset;
  const auto waves = static_cast<std::size_t>(dispatch.waves);
  waves_.resize(waves);
  if (options.check_waits || options.check_races || options.measure) in_flight_.resize(waves);
  if (options.check_undefined) shadows_.resize(waves);
  if (!context.hazards.empty()) hazards_.resize(waves);
  for (std::size_t i = 0; i < waves; ++i) {
    Wave& w = waves_[i];
    w.index = static_cast<int>(i);
    w.arch_count = vector_file;
    w.acc_count = accumulation ? vector_file : 0;
    w.vector = std::make_unique<Lanes[]>(static_cast<std::size_t>(w.arch_count + vector_file + register_slack));
    w.group = &group_;
    w.memory = &context.memory;
    w.defects = &defects;
    w.counters = counters;
    w.observer = options.observer;
    w.in_flight = in_flight_.empty() ? nullptr : &in_flight_[i];
    w.shadow = shadows_.empty() ? nullptr : &shadows_[i];
    w.hazards = hazards_.empty() ? nullptr : &hazards_[i];
    w.flag_uses = context.flag_uses.data();
    w.program = context.program.instructions;
    w.target = context.program.target;
  }
}

void WorkgroupRun::start(const std::array<std::uint32_t, 3>& id, u64 number) {
  const Dispatch& dispatch = context_.dispatch;
  const ExecOptions& options = context_.options;
  std::copy(id.begin(), id.end(), group_.id);
  random_ = {((options.seed * 0x9e3779b97f4a7c15ULL) ^ ((number + 1) * 0xbf58476d1ce4e5b9ULL)) | 1U};
  group_.lds.assign(dispatch.lds_bytes, static_cast<std::byte>(random_.next() & 0xffU));
  group_.lds_shadow = options.check_undefined || options.check_races ? &lds_shadow_ : nullptr;
  if (group_.lds_shadow != nullptr) lds_shadow_.reset(group_.lds.size(), dispatch.waves, options.check_races, context_.direct_loads);
  counts_.assign(waves_.size(), {});
  barriers_ = 0;
  for (std::size_t i = 0; i < waves_.size(); ++i) {
    Wave& wave = waves_[i];
    wave.polls = wave.effects = 0;
    wave.polled = {};
    if (wave.in_flight != nullptr) *wave.in_flight = {};
    if (wave.hazards != nullptr) wave.hazards->reset();
    const int scalars = start_wave(dispatch, wave, slot_ * dispatch.waves + wave.index, random_.next());
    if (wave.shadow != nullptr) wave.shadow->reset(scalars);
  }
}

void WorkgroupRun::stop_at(DefectKind kind, const Wave& wave, std::string message) {
  context_.stop = true;
  const auto& program = context_.program.instructions;
  const bool inside = wave.pc < program.size();
  const std::uint64_t address = inside ? program[wave.pc].address : 0;
  defects_.report(kind, address, [&] {
    Defect f{kind, address, inside ? program[wave.pc].text : "", {}, wave.index, -1, std::move(message)};
    std::memcpy(f.workgroup, group_.id, sizeof f.workgroup);
    return f;
  });
}

void WorkgroupRun::stop_with(DefectKind kind, const std::string& message) {
  for (const Wave& wave : waves_)
    if (wave.state != WaveState::ended) return stop_at(kind, wave, message + positions());
}

std::string WorkgroupRun::positions() const {
  const auto& program = context_.program.instructions;
  std::string text;
  for (const Wave& w : waves_)
    text += fmt::format("{}wave {} {} {:#x}", text.empty() ? "" : ", ", w.index,
                        w.state == WaveState::ended        ? "ended at"
                        : w.state == WaveState::at_barrier ? "waits at the barrier"
                                                           : "at",
                        w.pc < program.size() ? program[w.pc].address : 0);
  return text;
}

template <bool checked> void WorkgroupRun::run_instructions(Wave& wave, ClassCounts& counts, u64 length) {
  const Inst* const program = context_.program.instructions.data();
  const auto count = static_cast<std::uint32_t>(context_.program.instructions.size());
  const bool check_registers = context_.options.check_waits;
  const std::uint8_t* const unwanted = context_.options.unwanted.empty() ? nullptr : context_.options.unwanted.data();
  while (length-- != 0 && wave.state == WaveState::running) {
    if (wave.next >= count) throw Stop("runs past the end of the kernel's code");
    wave.pc = wave.next;
    wave.next = wave.pc + 1;
    const Inst& inst = program[wave.pc];
    ++wave.executed;
    ++wave.clock;
    if constexpr (checked) {
      if (wave.hazards != nullptr) wave.hazards->step(wave, inst, context_.hazards[wave.pc], *context_.program.target);
      if (wave.in_flight != nullptr) {
        wave.in_flight->set_time(static_cast<std::uint32_t>(wave.executed));
        if (check_registers) check_waits(wave, inst);
      }
    }
    if (wave.counters != nullptr) {
      InstCounters& c = wave.counters[wave.pc];
      ++c.executed;
      c.lanes += static_cast<u64>(std::popcount(wave.exec()));
    }
    ++counts[static_cast<std::size_t>(inst.cls)];
    if (wave.observer != nullptr) wave.observer->execute(wave, inst);
    wave.only_accesses = unwanted != nullptr && unwanted[wave.pc] != 0;
    if (wave.only_accesses && inst.op->memory == nullptr) continue;
    if constexpr (checked)
      if (wave.shadow != nullptr) {
        run_tracked(wave, inst);
        continue;
      }
    inst.handler(wave, inst);
  }
}

void WorkgroupRun::run_slice(std::size_t chosen, u64 length) {
  Wave& wave = waves_[chosen];
  const ExecOptions& options = context_.options;
  try {
    if (wave.in_flight != nullptr || wave.shadow != nullptr || wave.hazards != nullptr)
      run_instructions<true>(wave, counts_[chosen], length);
    else run_instructions<false>(wave, counts_[chosen], length);
    if (wave.executed > options.max_instructions)
      stop_at(DefectKind::instruction_limit, wave,
              fmt::format("a wave executed {} instructions, the limit is {}: {}", wave.executed, options.max_instructions, positions()));
  } catch (const Stop& stop) {
    stop_at(DefectKind::not_modelled, wave, stop.what());
  }
}

// Waves that have ended count as arrived.
void WorkgroupRun::release_barrier() {
  bool any = false;
  for (const Wave& w : waves_) {
    if (w.state == WaveState::running) return;
    any = any || w.state == WaveState::at_barrier;
  }
  if (!any) return;
  if (group_.lds_shadow != nullptr) lds_shadow_.barrier(waves_);
  for (Wave& w : waves_)
    if (w.state == WaveState::at_barrier) w.state = WaveState::running;
  ++barriers_;
}

std::uint64_t WorkgroupRun::effects() const {
  u64 n = barriers_;
  for (const Wave& w : waves_) n += w.effects + (w.state == WaveState::ended ? 1 : 0);
  return n;
}

bool WorkgroupRun::advance(u64 instructions) {
  const u64 effects_before = effects();
  std::array<u64, max_waves> executed{}, polls{};
  for (std::size_t i = 0; i < waves_.size(); ++i) {
    executed[i] = waves_[i].executed;
    polls[i] = waves_[i].polls;
  }
  std::array<std::size_t, max_waves> ready;
  for (u64 done = 0; done < instructions && !context_.stop;) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < waves_.size(); ++i)
      if (waves_[i].state == WaveState::running) ready[n++] = i;
    if (n == 0) return true;
    const bool in_turns = context_.options.in_turns; // the wave that is furthest behind goes on
    const auto executed_by = [&](std::size_t wave) { return waves_[wave].executed; };
    const std::size_t chosen = in_turns ? *std::ranges::min_element(std::span(ready).first(n), {}, executed_by) : ready[random_.next() % n];
    const u64 length = in_turns ? slice_in_turns : 1 + random_.next() % longest_slice;
    run_slice(chosen, length);
    done += length;
    if (waves_[chosen].state != WaveState::running) release_barrier();
  }
  if (context_.stop) return true;
  waits_ = effects() == effects_before;
  for (std::size_t i = 0; i < waves_.size(); ++i)
    waits_ = waits_ && (waves_[i].executed - executed[i] < loop_that_polls || waves_[i].polls != polls[i]);
  return false;
}

void WorkgroupRun::add_totals(WaveTotals& totals) const {
  for (const ClassCounts& c : counts_) totals.add_wave(c);
}

} // namespace kiln::exec
