// Running the analyses of one kernel, one after the other.
#include "isa_checks/analysis/kernel_analysis.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::isa {

std::size_t KernelAnalysis::loop_of(std::size_t instruction) const { return program.blocks[program.block_of(instruction)].loop; }

bool KernelAnalysis::is_innermost(std::size_t loop) const {
  return std::none_of(program.loops.begin(), program.loops.end(), [loop](const Loop& other) { return other.parent == loop; });
}

KernelAnalysis analyse(const CodeObject& object, const Kernel& kernel, Disassembler& disassembler, const AnalysisOptions& options) {
  KernelAnalysis result;
  result.target = &object.target();
  result.object = object.name();
  result.kernel = kernel;
  result.program = build_program(kernel, disassembler);
  result.facts = kernel_facts(object, kernel, result.program.instructions);
  const Program& program = result.program;
  result.operands.reserve(program.instructions.size());
  for (const Instruction& instruction : program.instructions) result.operands.push_back(operands_of(instruction));
  result.occupancy = occupancy_report(object.target(), result.facts.resources);
  result.weights = block_weights(program);
  result.waits = analyse_waits(program);
  result.concurrency = loop_concurrency(result.waits, result.facts.occupancy, object.target());
  result.memory =
      analyse_memory(program, result.operands, lane_addresses(program, result.operands, kernel, result.facts.resources), object.target());
  result.matrix = analyse_matrix(program, result.operands, object.target());
  result.issue = estimate_issue(program, result.memory, result.weights, object.target());
  if (options.source_lines) {
    for (const ElfSymbol& symbol : object.symbols())
      if (symbol.section == kernel.section && symbol.value > kernel.entry && symbol.value < kernel.entry + kernel.code.size())
        result.labels.emplace(symbol.value, symbol.name);
    const SourceLines lines = options.lines ? *options.lines : SourceLines(object);
    if (lines.any())
      for (const Instruction& instruction : program.instructions) result.lines.push_back(lines.at(instruction.address, kernel.section));
  }
  return result;
}

KernelAnalysis analyse(const CodeObject& object, const Kernel& kernel, const AnalysisOptions& options) {
  Disassembler disassembler(object.target());
  return analyse(object, kernel, disassembler, options);
}

std::string to_text(const KernelAnalysis& k) {
  std::string text = to_text(k.facts);
  const auto part = [&text](std::string_view title, const std::string& body) {
    if (!body.empty()) text += fmt::format("{}\n{}", title, body);
  };
  part("occupancy", to_text(k.occupancy));
  part("memory operations", to_text(k.memory, k.program));
  part("waits", to_text(k.waits, k.program));
  part("bytes in flight", to_text(k.concurrency, k.program));
  part("matrix operations", to_text(k.matrix, k.program));
  part("issue and roofline", to_text(k.issue, k.program));
  return text;
}

std::string to_json(const KernelAnalysis& k) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["facts"] = Json::parse(to_json(k.facts));
  json["occupancy"] = Json::parse(to_json(k.occupancy));
  json["memory"] = Json::parse(to_json(k.memory, k.program));
  json["waits"] = Json::parse(to_json(k.waits, k.program));
  json["concurrency"] = Json::parse(to_json(k.concurrency));
  json["matrix"] = Json::parse(to_json(k.matrix, k.program));
  json["issue"] = Json::parse(to_json(k.issue, k.program));
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace kiln::isa
