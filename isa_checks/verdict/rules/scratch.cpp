// SPL001 to SPL005: memory of one lane: scratch, spilled registers, copies to accumulation registers, stacks.
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <fmt/format.h>

namespace kiln::isa::rules {
namespace {

Instructions scratch_instructions(const KernelAnalysis& kernel) { return named(kernel, all_instructions(kernel), "scratch_"); }

} // namespace

void spl001(const KernelAnalysis& kernel, FindingSink& sink) {
  const Resources& r = kernel.facts.resources;
  const auto accesses = scratch_instructions(kernel);
  if (r.scratch_bytes == 0 && accesses.empty()) return;
  const auto in_loops = where(accesses, [&](std::size_t i) { return kernel.loop_of(i) != nothing; }).size();
  const int spilled = 4 * r.vgpr_spills; // bytes per lane
  const std::string_view what = r.vgpr_spills == 0           ? "arrays or other stack objects"
                                : r.scratch_bytes <= spilled ? "spilled registers"
                                                             : "spilled registers and stack objects";
  sink.add({.message = fmt::format("{} B of scratch memory a lane for {}, {}, {} in loops", r.scratch_bytes, what,
                                   plural(accesses.size(), "instruction that accesses it", "instructions that access it"), in_loops),
            .evidence = {{"scratch_bytes", static_cast<double>(r.scratch_bytes), "B"},
                         {"spilled_bytes", static_cast<double>(spilled), "B"},
                         {"accesses", number(accesses.size()), "instructions"},
                         {"in_loops", number(in_loops), "instructions"}},
            .instructions = accesses,
            .severity = in_loops > 0 ? Severity::error : Severity::warning});
}

void spl002(const KernelAnalysis& kernel, FindingSink& sink) {
  const int spills = kernel.facts.resources.vgpr_spills;
  const Instructions accesses = scratch_instructions(kernel);
  if (spills == 0 || (kernel.facts.resources.scratch_bytes == 0 && accesses.empty())) return; // then they lie in AGPRs
  sink.add({.message = fmt::format("{} spilled; the kernel has {}",
                                   plural(static_cast<std::size_t>(spills), "vector register is", "vector registers are"),
                                   kernel.facts.resources.vgprs),
            .evidence = {{"vgpr_spills", static_cast<double>(spills), "registers"},
                         {"vgprs", static_cast<double>(kernel.facts.resources.vgprs), "registers"}},
            .instructions = accesses});
}

void spl003(const KernelAnalysis& kernel, FindingSink& sink) {
  const int spills = kernel.facts.resources.sgpr_spills;
  if (spills == 0) return;
  const Instructions writes = named(kernel, all_instructions(kernel), "v_writelane_b32");
  sink.add({.message = fmt::format("{} kept in lanes of vector registers, {}",
                                   plural(static_cast<std::size_t>(spills), "scalar register is", "scalar registers are"),
                                   plural(writes.size(), "write")),
            .evidence = {{"sgpr_spills", static_cast<double>(spills), "registers"}, {"writes", number(writes.size()), "instructions"}},
            .instructions = writes});
}

void spl004(const KernelAnalysis& kernel, FindingSink& sink) {
  constexpr std::size_t few = 4; // a result that is read once
  for (const std::size_t loop : innermost_loops(kernel)) {
    const Instructions in_loop = kernel.instructions_of(loop);
    const Instructions copies = named(kernel, in_loop, "v_accvgpr_");
    const std::size_t matrix = where(in_loop, [&](std::size_t i) { return kernel.instruction(i).kind == InstructionClass::mfma; }).size();
    if (copies.size() < few || copies.size() <= matrix) continue;
    sink.add({.message = fmt::format("{} to or from accumulation registers beside {}", plural(copies.size(), "copy", "copies"),
                                     plural(matrix, "matrix operation")),
              .evidence = {{"copies", number(copies.size()), "instructions"}, {"matrix", number(matrix), "instructions"}},
              .instructions = copies,
              .loop = loop});
  }
}

void spl005(const KernelAnalysis& kernel, FindingSink& sink) {
  if (kernel.facts.resources.dynamic_stack)
    sink.add({.message = fmt::format("the size of the stack is not known when the kernel is compiled ({})",
                                     plural(static_cast<std::size_t>(kernel.program.calls), "call")),
              .evidence = {{"calls", static_cast<double>(kernel.program.calls), "instructions"}}});
}

} // namespace kiln::isa::rules
