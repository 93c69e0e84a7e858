// SYNC001, SYNC002, SYNC003: barriers.
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa::rules {

void sync001(const KernelAnalysis& k, FindingSink& sink) {
  for (const WaitPoint& p : k.waits.points) {
    const std::size_t next = p.instruction + 1;
    if (p.counter != WaitCounter::vmcnt || !p.drains() || p.loop == nothing || next >= k.program.instructions.size() ||
        k.classes[next] != InstructionClass::barrier)
      continue;
    const bool only_loads = std::all_of(p.waits_for.begin(), p.waits_for.end(), [&](std::size_t i) {
      const MemoryAccess* a = k.memory.find(i);
      return a && a->op.direction == MemoryDirection::load && !a->op.to_lds;
    });
    if (!only_loads) continue; // stores and LDS DMA are what other waves may wait for
    sink.add({.message = fmt::format("waits for all of {} before a barrier that orders LDS", plural(p.waits_for.size(), "load")),
              .evidence = {{"loads", number(p.waits_for.size()), "instructions"}},
              .instructions = {p.instruction, next}});
  }
}

void sync002(const KernelAnalysis& k, FindingSink& sink) {
  for (const Block& block : k.program.blocks) {
    std::size_t last = nothing;
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const bool ends = k.memory.find(i) || k.mnemonic(i) == "s_setprio" || k.classes[i] == InstructionClass::lds;
      if (ends) last = nothing;
      if (k.classes[i] != InstructionClass::barrier) continue;
      if (last != nothing)
        sink.add({.message =
                      fmt::format("no memory is accessed between this barrier and the one at {:#x}", k.instruction(last).address),
                  .evidence = {{"instructions_between", number(i - last - 1), "instructions"}},
                  .instructions = {i, last}});
      last = i;
    }
  }
}

void sync003(const KernelAnalysis& k, FindingSink& sink) {
  const Resources& r = k.facts.resources;
  if (!r.workgroup_size_known || r.workgroup_size > k.target->wave_size) return;
  const Instructions barriers =
      where(all_instructions(k), [&](std::size_t i) { return k.classes[i] == InstructionClass::barrier; });
  if (barriers.empty()) return;
  sink.add(
      {.message = fmt::format("{} in workgroups of {} lanes: one wave", plural(barriers.size(), "barrier"), r.workgroup_size),
       .evidence = {{"barriers", number(barriers.size()), "instructions"},
                    {"workgroup_size", static_cast<double>(r.workgroup_size), "lanes"}},
       .instructions = barriers});
}

} // namespace kiln::isa::rules
