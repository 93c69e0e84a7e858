// Running the analyses of one kernel, one after the other.
#include "isa_checks/kernel_analysis.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::isa {

std::size_t KernelAnalysis::loop_of(std::size_t instruction) const { return program.blocks[program.block_of(instruction)].loop; }

bool KernelAnalysis::is_innermost(std::size_t loop) const {
  return std::none_of(program.loops.begin(), program.loops.end(), [loop](const Loop& other) { return other.parent == loop; });
}

KernelAnalysis analyse(const CodeObject& object, const Kernel& kernel, Disassembler& disassembler,
                       const AnalysisOptions& options) {
  KernelAnalysis result;
  result.target = &object.target();
  result.object = object.name();
  result.kernel = kernel;
  result.program = build_program(kernel, disassembler);
  result.facts = kernel_facts(object, kernel, result.program.instructions);
  result.waits = analyze_waits(result.program);
  if (options.source_lines)
    if (const SourceLines lines(object); lines.any())
      for (const Instruction& instruction : result.program.instructions)
        result.lines.push_back(lines.at(instruction.address, kernel.section));
  return result;
}

KernelAnalysis analyse(const CodeObject& object, const Kernel& kernel, const AnalysisOptions& options) {
  Disassembler disassembler(object.target());
  return analyse(object, kernel, disassembler, options);
}

std::string to_text(const KernelAnalysis& analysis) {
  return to_text(analysis.facts) + to_text(analysis.waits, analysis.program);
}

std::string to_json(const KernelAnalysis& analysis) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["facts"] = Json::parse(to_json(analysis.facts));
  json["waits"] = Json::parse(to_json(analysis.waits, analysis.program));
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace kiln::isa
