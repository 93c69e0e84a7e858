// Sorting what is known to the instructions that it is about.
#include "isa_checks/cli/annotate.h"
#include "isa_checks/plural.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa::cli {

std::string range_text(int least, int most) {
  return most == 0 ? "" : least == most ? fmt::format("{}", most) : fmt::format("{}-{}", least, most);
}

std::string explain_wait(const WaitPoint& point, const Program& program) {
  std::string text = fmt::format("{}({}): ", to_string(point.counter), point.value);
  if (point.idle())
    return text + (point.max_outstanding == 0 ? "nothing is outstanding"
                                              : fmt::format("at most {} outstanding, so it never waits", point.max_outstanding));
  const std::string outstanding = range_text(point.min_outstanding, point.max_outstanding);
  text += fmt::format("of {} outstanding waits for {}", outstanding, point.value == 0 ? "all" : fmt::format("all but {}", point.value));
  constexpr std::size_t shown = 4;
  for (std::size_t i = 0; i < std::min(point.waits_for.size(), shown); ++i) {
    const Instruction& one = program.instructions[point.waits_for[i]];
    text += fmt::format("{}{} at {:#x}", i == 0 ? ": " : ", ", one.mnemonic, one.address);
  }
  if (point.waits_for.size() > shown) text += fmt::format(" and {} more", point.waits_for.size() - shown);
  if (point.shortest_distance >= 0)
    text += fmt::format("; the youngest {} ago", plural(static_cast<std::size_t>(point.shortest_distance), "instruction"));
  return text;
}

std::vector<std::vector<const Finding*>> findings_by_instruction(const Program& program, const std::vector<Finding>& findings) {
  std::vector<std::vector<const Finding*>> result(program.instructions.size() + 1);
  for (const Finding& finding : findings) {
    const std::size_t at = finding.address ? program.instruction_at(*finding.address) : nothing;
    const std::size_t index = std::min(at, program.instructions.size()); // `nothing` is larger
    result[index].push_back(&finding);
  }
  return result;
}

std::vector<std::vector<const WaitPoint*>> waits_by_instruction(const KernelAnalysis& analysis) {
  std::vector<std::vector<const WaitPoint*>> result(analysis.program.instructions.size());
  for (const WaitPoint& point : analysis.waits.points) result[point.instruction].push_back(&point);
  return result;
}

} // namespace kiln::isa::cli
