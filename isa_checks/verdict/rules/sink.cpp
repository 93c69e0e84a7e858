// Completing findings, and joining those of one cause.
#include "isa_checks/verdict/rules/sink.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa {

void FindingSink::add(Claim claim) {
  Finding f;
  f.rule = rule_->id;
  f.severity = claim.severity.value_or(rule_->severity);
  f.kernel = kernel_.facts.kernel;
  f.arch = kernel_.facts.arch;
  f.message = std::move(claim.message);
  f.evidence = std::move(claim.evidence);
  f.path = std::move(claim.path);
  f.why = rule_->why;
  f.advice = rule_->advice;
  if (!claim.instructions.empty()) {
    const std::size_t first = claim.instructions.front();
    const Instruction& instruction = kernel_.program.instructions[first];
    f.address = instruction.address;
    f.instruction = instruction.text;
    for (const std::size_t other : claim.instructions)
      if (other != first) f.others.push_back(kernel_.program.instructions[other].address);
    if (!kernel_.lines.empty() && kernel_.lines[first].known()) {
      f.file = kernel_.lines[first].file;
      f.line = kernel_.lines[first].line;
    }
    if (claim.loop == nothing) claim.loop = kernel_.loop_of(first);
  }
  if (claim.loop != nothing) f.loop = kernel_.program.loop_name(claim.loop);
  f.share = share_of(claim);
  f.repair = {claim.change.empty() ? f.advice : std::move(claim.change), f.address,
              claim.effect.empty() ? fmt::format("at most {:.0f} % of the kernel's clocks lie here", 100 * f.share)
                                   : std::move(claim.effect)};
  if (!claim.cause.empty()) {
    const auto [group, is_new] = groups_.try_emplace(
        fmt::format("{} {} {} {}", f.rule, claim.loop, static_cast<int>(f.severity), claim.cause), findings_.size(), 0U);
    ++group->second.places;
    if (!is_new) {
      Finding& known = findings_[group->second.finding];
      if (f.address) known.others.push_back(*f.address);
      known.others.insert(known.others.end(), f.others.begin(), f.others.end());
      return;
    }
  }
  findings_.push_back(std::move(f));
}

void FindingSink::add_counted(std::string what, std::string message, std::vector<std::size_t> instructions, std::size_t loop) {
  if (instructions.empty()) return;
  std::vector<Evidence> evidence{{std::move(what), static_cast<double>(instructions.size()), "instructions"}};
  add({.message = std::move(message), .evidence = std::move(evidence), .instructions = std::move(instructions), .loop = loop});
}

// For a loop its share of the kernel's clocks, by the pipe that is busy longest; for instructions outside of loops their own.
double FindingSink::share_of(const Claim& claim) const {
  const auto clocks = [&](const LoopIssue& issue) { return std::max(issue.clocks_of(issue.busiest), issue.memory_clocks); };
  const double all = kernel_.issue.loops.empty() ? 0 : clocks(kernel_.issue.loops.back());
  if (claim.loop == nothing && claim.instructions.empty()) return 1; // the whole kernel
  if (all <= 0) return 0;
  if (claim.loop != nothing) {
    const double trips = kernel_.weights[kernel_.program.loops[claim.loop].header];
    return std::min(1.0, trips * clocks(kernel_.issue.loops[claim.loop]) / all);
  }
  double own = 0;
  for (const std::size_t i : claim.instructions)
    own += instruction_cost(kernel_.program.instructions[i], kernel_.memory.find(i), *kernel_.target).clocks;
  return std::min(1.0, own / all);
}

std::vector<Finding> FindingSink::take() {
  for (const auto& [key, group] : groups_) {
    if (group.places == 1) continue;
    Finding& f = findings_[group.finding];
    f.message += fmt::format("; {} such places{}", group.places, f.loop.empty() ? "" : " in the loop");
    f.evidence.push_back({"places", static_cast<double>(group.places), ""});
  }
  for (Finding& f : findings_) {
    std::ranges::sort(f.others);
    f.others.erase(std::ranges::unique(f.others).begin(), f.others.end());
  }
  return std::move(findings_);
}

} // namespace kiln::isa
