// SYNC001, SYNC002, SYNC003: barriers.
#include "isa_checks/decode/counter_use.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa::rules {

namespace {

constexpr std::size_t soon = 8; // instructions behind a barrier
constexpr int long_before = 64; // instructions between load and wait that hide a good part of a load's latency

// Some of `registers` are read or written by one of the next `count` instructions from `i` on, on some path.
bool touched_soon(const KernelAnalysis& k, std::size_t i, std::size_t count, const std::vector<RegisterRange>& registers) {
  for (const std::size_t end = k.program.blocks[k.program.block_of(i)].end; count > 0; ++i, --count) {
    for (const RegisterRange r : registers)
      if (k.instruction(i).use.reads_any(r) || k.instruction(i).use.writes_any(r)) return true;
    if (i + 1 == end) {
      const auto& next = k.program.blocks[k.program.block_of(i)].successors;
      return std::any_of(next.begin(), next.end(), [&](std::size_t block) {
        return count > 1 && touched_soon(k, k.program.blocks[block].begin, count - 1, registers);
      });
    }
  }
  return false;
}

// One of the next `count` instructions of the block waits for the loads as well.
bool awaited_soon(const KernelAnalysis& k, std::size_t i, std::size_t count) {
  int younger = 0;
  for (const std::size_t end = std::min(i + count, k.program.blocks[k.program.block_of(i)].end); i < end; ++i) {
    younger += counter_use(k.instruction(i)).vm;
    const auto wait = wait_counts(k.instruction(i));
    if (wait && wait->vmcnt && *wait->vmcnt <= younger) return true;
  }
  return false;
}

} // namespace

bool drains_for_barrier(const KernelAnalysis& k, const WaitPoint& p) {
  const std::size_t next = p.instruction + 1;
  if (p.counter != WaitCounter::vmcnt || !p.drains() || p.loop == nothing || !k.is_innermost(p.loop) ||
      next >= k.program.instructions.size() || k.instruction(next).kind != InstructionClass::barrier || p.shortest_distance >= long_before)
    return false;
  const bool only_loads = std::all_of(p.waits_for.begin(), p.waits_for.end(), [&](std::size_t i) {
    const MemoryAccess* a = k.memory.find(i);
    return a && a->op.direction == MemoryDirection::load && !a->op.to_lds;
  });
  if (!only_loads) return false; // stores and LDS DMA are what other waves may wait for
  std::vector<RegisterRange> loaded;
  for (const std::size_t i : p.waits_for) loaded.push_back(k.memory.find(i)->data);
  return !touched_soon(k, next, soon + 1, loaded) && !awaited_soon(k, next, soon + 1); // else it would cost as much behind the barrier
}

void sync001(const KernelAnalysis& k, FindingSink& sink) {
  for (const WaitPoint& p : k.waits.points)
    if (drains_for_barrier(k, p))
      sink.add({.message = fmt::format("waits for all of {} before a barrier that orders LDS", plural(p.waits_for.size(), "load")),
                .evidence = {{"loads", number(p.waits_for.size()), "instructions"}},
                .instructions = {p.instruction, p.instruction + 1},
                .cause = "drain"});
}

void sync002(const KernelAnalysis& k, FindingSink& sink) {
  for (const Block& block : k.program.blocks) {
    std::size_t last = nothing;
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const bool ends = k.memory.find(i) || k.mnemonic(i) == "s_setprio" || k.instruction(i).kind == InstructionClass::lds;
      if (ends) last = nothing;
      if (k.instruction(i).kind != InstructionClass::barrier) continue;
      if (last != nothing)
        sink.add({.message = fmt::format("no memory is accessed between this barrier and the one at {:#x}", k.instruction(last).address),
                  .evidence = {{"instructions_between", number(i - last - 1), "instructions"}},
                  .instructions = {i, last},
                  .cause = "barriers"});
      last = i;
    }
  }
}

void sync003(const KernelAnalysis& k, FindingSink& sink) {
  const Resources& r = k.facts.resources;
  if (!r.workgroup_size_known || r.workgroup_size > wave_size) return;
  const Instructions barriers =
      where(all_instructions(k), [&](std::size_t i) { return k.instruction(i).kind == InstructionClass::barrier; });
  if (barriers.empty()) return;
  sink.add({.message = fmt::format("{} in workgroups of {} lanes: one wave", plural(barriers.size(), "barrier"), r.workgroup_size),
            .evidence = {{"barriers", number(barriers.size()), "instructions"},
                         {"workgroup_size", static_cast<double>(r.workgroup_size), "lanes"}},
            .instructions = barriers});
}

} // namespace kiln::isa::rules
