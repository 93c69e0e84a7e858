// Collecting matrix instructions and their readers.
#include "isa_checks/analysis/matrix_uses.h"
#include "isa_checks/analysis/readers.h"
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/target/hazards.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kiln::isa {
namespace {

constexpr std::size_t reach = 96; // instructions: more than the longest matrix instruction hides

bool accumulates_on(const Instruction& instruction, const Operands& o, RegisterRange result) {
  if (instruction.kind != InstructionClass::mfma) return false;
  const std::size_t c = instruction.mnemonic.starts_with("v_smfmac") ? 0 : 3;
  const bool same = c < o.count && o[c].is(Operand::Kind::registers) && o[c].registers == result;
  const auto others = [&](std::size_t at) {
    return at < o.count && o[at].is(Operand::Kind::registers) && o[at].registers.overlaps(result);
  };
  return same && !others(1) && !others(2);
}

// s_nop within the states that the reader needs, so far as what else lies before it, in the same block, is not enough.
void count_nops(const Program& program, MatrixUse& use) {
  int passed = 0, others = 0;
  for (std::size_t i = use.instruction + 1; i < use.reader; ++i) {
    const int nop = nop_states(program.instructions[i]);
    others += nop == 0;
    if (passed >= use.states_needed) continue;
    use.states_end = i + 1;
    use.nop_states += std::min(nop, use.states_needed - passed);
    passed += std::max(nop, 1);
  }
  use.nop_states = std::min(use.nop_states, std::max(use.states_needed - others, 0));
}

} // namespace

const MatrixUse* MatrixAnalysis::find(std::size_t instruction) const {
  const auto at = std::ranges::lower_bound(uses, instruction, {}, &MatrixUse::instruction);
  return at != uses.end() && at->instruction == instruction ? &*at : nullptr;
}

MatrixAnalysis analyse_matrix(const Program& program, const std::vector<Operands>& operands, const TargetFacts& target) {
  MatrixAnalysis result;
  for (std::size_t b = 0; b < program.blocks.size(); ++b)
    for (std::size_t i = program.blocks[b].begin; i < program.blocks[b].end; ++i) {
      const auto shape = matrix_shape(program.instructions[i], operands[i], target);
      if (!shape || program.instructions[i].use.write_count == 0) continue;
      MatrixUse use{.instruction = i,
                    .loop = program.blocks[b].loop,
                    .shape = *shape,
                    .result = program.instructions[i].use.write_list[0],
                    .next_in_chain = {},
                    .next_reader = {}};
      use.states_needed = matrix_result_states(*shape, target);
      for (const Reader& reader : readers_of(program, i, use.result, reach).list) {
        const bool chain = accumulates_on(program.instructions[reader.instruction], operands[reader.instruction], use.result);
        auto& nearest = chain ? use.next_in_chain : use.next_reader;
        if (nearest) continue;
        nearest = static_cast<int>(reader.distance);
        if (!chain) use.reader = reader.instruction;
      }
      use.states_end = i + 1;
      if (use.reader != nothing && use.reader > i && use.reader < program.blocks[b].end) count_nops(program, use);
      result.uses.push_back(use);
    }
  return result;
}

std::string to_text(const MatrixAnalysis& matrix, const Program& program) {
  std::map<std::string_view, std::vector<const MatrixUse*>> kinds;
  for (const MatrixUse& use : matrix.uses) kinds[program.instructions[use.instruction].mnemonic].push_back(&use);
  std::string text;
  for (const auto& [mnemonic, list] : kinds) {
    int shortest = -1, nops = 0;
    for (const MatrixUse* use : list) {
      if (use->next_in_chain) shortest = shortest < 0 ? *use->next_in_chain : std::min(shortest, *use->next_in_chain);
      nops += use->nop_states;
    }
    const MatrixShape& s = list.front()->shape;
    text += fmt::format("  {} x{}: {} passes ({} clocks), {} operations each", mnemonic, list.size(), s.passes, s.cycles(), s.operations());
    if (shortest >= 0) text += fmt::format(", chains with {} instructions between at the least", shortest);
    if (nops > 0) text += fmt::format(", {} wait states in s_nop before readers", nops);
    text += "\n";
  }
  return text;
}

std::string to_json(const MatrixAnalysis& matrix, const Program& program) {
  using Json = nlohmann::ordered_json;
  Json json = Json::array();
  const auto number = [](const std::optional<int>& value) { return value ? Json(*value) : Json(); };
  for (const MatrixUse& use : matrix.uses)
    json.push_back({{"address", program.instructions[use.instruction].address},
                    {"mnemonic", program.instructions[use.instruction].mnemonic},
                    {"loop", use.loop == nothing ? Json() : Json(use.loop)},
                    {"passes", use.shape.passes},
                    {"operations", use.shape.operations()},
                    {"next_in_chain", number(use.next_in_chain)},
                    {"next_reader", number(use.next_reader)},
                    {"states_needed", use.states_needed},
                    {"nop_states", use.nop_states}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace kiln::isa
