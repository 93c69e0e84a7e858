// The hazard table.
#include "isa_checks/verdict/rules/hazard_table.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>

namespace kiln::isa::rules {
namespace {

bool vector_alu(const KernelAnalysis& k, std::size_t i) {
  switch (k.classes[i]) {
  case InstructionClass::valu:
  case InstructionClass::trans:
  case InstructionClass::packed:
  case InstructionClass::dot:
    return true;
  default:
    return false;
  }
}
bool vector_memory(const KernelAnalysis& k, std::size_t i) {
  return k.classes[i] == InstructionClass::vmem_load || k.classes[i] == InstructionClass::vmem_store ||
         k.classes[i] == InstructionClass::vmem_atomic;
}
bool uses_dpp(const KernelAnalysis& k, std::size_t i) { return k.mnemonic(i).find("_dpp") != std::string_view::npos; }

template <class Kind> bool passes_on(const KernelAnalysis& k, std::size_t producer, std::size_t consumer, Kind kind) {
  const auto writes = k.uses[producer].writes();
  return std::any_of(writes.begin(), writes.end(), [&](RegisterRange r) { return kind(r) && k.uses[consumer].reads_any(r); });
}
bool vector_register(RegisterRange r) { return r.vector(); }
bool scalar_register(RegisterRange r) { return r.first >= reg::sgpr && r.first < reg::exec; }

int after_matrix(const KernelAnalysis& k, std::size_t producer, std::size_t consumer) {
  const MatrixUse* use = k.matrix.find(producer);
  if (!use || k.target->arch == "gfx90a") return 0; // whose counts differ
  const bool reads = k.uses[consumer].reads_any(use->result);
  if (k.classes[consumer] == InstructionClass::mfma) {
    const Operands& o = k.operands[consumer];
    const auto reads_source = [&](std::size_t at) {
      return at < o.count && o[at].is(Operand::Kind::registers) && o[at].registers.overlaps(use->result);
    };
    return use->shape.xdl && (reads_source(1) || reads_source(2)) ? use->states_needed : 0; // C is forwarded
  }
  const bool writes = vector_alu(k, consumer) && k.uses[consumer].writes_any(use->result);
  return use->shape.xdl && (reads || writes) ? use->states_needed : 0;
}

} // namespace

namespace {
constexpr std::uint8_t matrix_result = 1, scalar_result = 2, vector_result = 4, trans_result = 8, m0_result = 16;
}

std::uint8_t hazards_made(const KernelAnalysis& k, std::size_t i) {
  if (k.classes[i] == InstructionClass::mfma) return matrix_result;
  if (k.classes[i] == InstructionClass::salu) return k.mnemonic(i).starts_with("s_mov_b32") && k.uses[i].writes_any({reg::m0, 1}) ? m0_result : 0;
  if (!vector_alu(k, i)) return 0;
  std::uint8_t made = k.classes[i] == InstructionClass::trans ? trans_result : 0;
  for (const RegisterRange range : k.uses[i].writes()) made |= range.vector() ? vector_result : scalar_result;
  return made;
}

std::uint8_t hazards_met(const KernelAnalysis& k, std::size_t i) {
  if (vector_memory(k, i)) return matrix_result | scalar_result | m0_result;
  if (k.classes[i] == InstructionClass::mfma) return matrix_result;
  if (k.classes[i] == InstructionClass::lds) return matrix_result | m0_result;
  if (!vector_alu(k, i)) return 0;
  const std::string_view m = k.mnemonic(i);
  std::uint8_t met = matrix_result;
  if (k.classes[i] != InstructionClass::trans) met |= trans_result;
  if (uses_dpp(k, i)) met |= vector_result;
  if (m.starts_with("v_div_fmas_") || m.starts_with("v_readlane_b32") || m.starts_with("v_writelane_b32")) met |= scalar_result | vector_result;
  return met;
}

std::optional<Hazard> hazard_between(const KernelAnalysis& k, std::size_t producer, std::size_t consumer) {
  const bool gfx940 = k.target->arch != "gfx90a"; // gfx942 and gfx950
  Hazard worst;
  const auto take = [&](std::string_view name, int states) {
    if (states > worst.states) worst = {name, states};
  };
  take("a matrix result is read or overwritten", after_matrix(k, producer, consumer));
  if (vector_alu(k, producer)) {
    if (vector_memory(k, consumer) && passes_on(k, producer, consumer, scalar_register))
      take("vector memory reads a scalar register that the vector ALU wrote", 5);
    if (uses_dpp(k, consumer) && passes_on(k, producer, consumer, vector_register)) {
      const Operands& o = k.operands[consumer]; // the first source is what DPP moves
      if (o.count > 1 && o[1].is(Operand::Kind::registers) && k.uses[producer].writes_any(o[1].registers))
        take("DPP reads a register that the vector ALU wrote", 2);
    }
    if (k.mnemonic(consumer).starts_with("v_div_fmas_") && k.uses[producer].writes_any({reg::vcc, 2}))
      take("v_div_fmas reads VCC that the vector ALU wrote", 4);
    if (gfx940 && k.classes[producer] == InstructionClass::trans && vector_alu(k, consumer) &&
        k.classes[consumer] != InstructionClass::trans && passes_on(k, producer, consumer, vector_register))
      take("the result of a transcendental instruction is read", 1);
    if ((k.mnemonic(consumer).starts_with("v_readlane_b32") || k.mnemonic(consumer).starts_with("v_writelane_b32")) &&
        k.operands[consumer].count > 2) {
      const Operand& lane = k.operands[consumer][2];
      if (lane.is(Operand::Kind::registers) && k.uses[producer].writes_any(lane.registers))
        take("a lane is selected by what the vector ALU wrote", 4);
    }
  }
  if (k.mnemonic(producer).starts_with("s_mov_b32") && k.uses[producer].writes_any({reg::m0, 1}))
    if (const MemoryAccess* a = k.memory.find(consumer); a && a->op.to_lds)
      take("a transfer to LDS reads M0 that the scalar ALU wrote", 1);
  return worst.states > 0 ? std::optional(worst) : std::nullopt;
}

} // namespace kiln::isa::rules
