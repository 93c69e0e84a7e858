// SPL001, SPL002, SPL005: memory of one lane: scratch, spilled registers, a stack of unknown size.
#include "isa_checks/rules/rules.h"
#include <fmt/format.h>

namespace kiln::isa::rules {
namespace {

std::vector<std::size_t> scratch_instructions(const KernelAnalysis& kernel) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < kernel.program.instructions.size(); ++i)
    if (kernel.program.instructions[i].mnemonic.starts_with("scratch_")) found.push_back(i);
  return found;
}

} // namespace

void spl001(const KernelAnalysis& kernel, FindingSink& sink) {
  const int bytes = kernel.facts.resources.scratch_bytes;
  const auto accesses = scratch_instructions(kernel);
  if (bytes == 0 && accesses.empty()) return;
  const double count = static_cast<double>(accesses.size());
  sink.add({.message = fmt::format("{} B of scratch memory a lane, {} instructions that access it", bytes, count),
            .evidence = {{"scratch_bytes", static_cast<double>(bytes), "B"}, {"accesses", count, "instructions"}},
            .instructions = accesses});
}

void spl002(const KernelAnalysis& kernel, FindingSink& sink) {
  const int spills = kernel.facts.resources.vgpr_spills;
  if (spills == 0) return;
  sink.add({.message = fmt::format("{} vector registers are spilled; the kernel has {}", spills, kernel.facts.resources.vgprs),
            .evidence = {{"vgpr_spills", static_cast<double>(spills), "registers"},
                         {"vgprs", static_cast<double>(kernel.facts.resources.vgprs), "registers"}},
            .instructions = scratch_instructions(kernel)});
}

void spl005(const KernelAnalysis& kernel, FindingSink& sink) {
  if (kernel.facts.resources.dynamic_stack)
    sink.add({.message =
                  fmt::format("the size of the stack is not known when the kernel is compiled ({} calls)", kernel.program.calls),
              .evidence = {{"calls", static_cast<double>(kernel.program.calls), "instructions"}}});
}

} // namespace kiln::isa::rules
