// Completing findings.
#include "isa_checks/verdict/rules/sink.h"
#include <algorithm>

namespace kiln::isa {

void FindingSink::add(Claim claim) {
  Finding f;
  f.rule = rule_->id;
  f.severity = claim.severity.value_or(rule_->severity);
  f.kernel = kernel_.facts.kernel;
  f.arch = kernel_.facts.arch;
  f.message = std::move(claim.message);
  f.evidence = std::move(claim.evidence);
  f.why = rule_->why;
  f.advice = rule_->advice;
  if (!claim.instructions.empty()) {
    const std::size_t first = claim.instructions.front();
    const Instruction& instruction = kernel_.program.instructions[first];
    f.address = instruction.address;
    f.instruction = instruction.text;
    for (const std::size_t other : claim.instructions)
      if (other != first) f.others.push_back(kernel_.program.instructions[other].address);
    std::sort(f.others.begin(), f.others.end());
    if (!kernel_.lines.empty() && kernel_.lines[first].known()) {
      f.file = kernel_.lines[first].file;
      f.line = kernel_.lines[first].line;
    }
    if (claim.loop == nothing) claim.loop = kernel_.loop_of(first);
  }
  if (claim.loop != nothing) f.loop = kernel_.program.loop_name(claim.loop);
  findings_.push_back(std::move(f));
}

} // namespace kiln::isa
