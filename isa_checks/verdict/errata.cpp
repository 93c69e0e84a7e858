// The instructions that published faults of the hardware make unsafe, and which rules are about compilers.
#include "isa_checks/verdict/errata.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/verdict/lint.h"
#include <fmt/format.h>

namespace kiln::isa {
namespace {

// The bits of a modifier of a packed instruction, source 0 in bit 0: 2 of "op_sel:[0,1,0]". `otherwise` where it is not printed.
unsigned bits_of(std::string_view modifiers, std::string_view name, unsigned otherwise) {
  const std::size_t at = modifiers.find(name);
  if (at == std::string_view::npos) return otherwise;
  unsigned bits = 0, source = 0;
  for (const char c : modifiers.substr(at + name.size())) {
    if (c == ']') break;
    if (c == ',') ++source;
    else if (c == '1') bits |= 1U << source;
  }
  return bits;
}

// ROCm/rocMLIR#2459: the low half of v_pk_fma_f32 with op_sel:[0,1,0] now and then does not add: the second source gives its high half to
// both. Products and sums of that form were not reported, nor fma with a further high half: they are worth knowing, no more.
std::optional<Erratum> packed_f32(const Instruction& instruction, const Operands& operands) {
  const std::string_view base = base_mnemonic(instruction.mnemonic);
  const bool fma = base == "v_pk_fma_f32";
  if (!fma && base != "v_pk_mul_f32" && base != "v_pk_add_f32") return std::nullopt;
  constexpr unsigned second = 2, all = 7;
  const unsigned low = bits_of(operands.modifiers, "op_sel:[", 0), high = bits_of(operands.modifiers, "op_sel_hi:[", all);
  if ((low & high & second) == 0) return std::nullopt;
  if (fma && low == second)
    return Erratum{"ERR001", Severity::error, "the low half of this instruction now and then does not add its product on gfx950"};
  return Erratum{"ERR001", Severity::info, "reads the high half of its second source twice, as the faulty form of v_pk_fma_f32 does"};
}

// llvm/llvm-project#158117: of a scalar register or an inline constant the hardware takes bits 30 to 23 as the scale, not 7 to 0.
std::optional<Erratum> scaled_matrix(const Instruction& instruction, const Operands& operands) {
  constexpr std::uint8_t first_scale = 4, both = 2; // behind D, A, B and C
  if (!instruction.mnemonic.starts_with("v_mfma_scale_") || operands.count < first_scale + both) return std::nullopt;
  for (std::uint8_t i = first_scale; i < first_scale + both; ++i) {
    const Operand& scale = operands[i];
    if (scale.is(Operand::Kind::registers) && scale.registers.vector()) continue;
    return Erratum{"ERR002", Severity::error,
                   fmt::format("the scale {} is no vector register: the hardware takes its bits 30 to 23", scale.text)};
  }
  return std::nullopt;
}

} // namespace

std::optional<Erratum> erratum_of(const Instruction& instruction, const TargetFacts& target) {
  const bool packed = target.packed_fma_drops_low && instruction.mnemonic.starts_with("v_pk_");
  const bool scaled = target.scaled_mfma && instruction.mnemonic.starts_with("v_mfma_scale_");
  if (!packed && !scaled) return std::nullopt;
  const Operands operands = operands_of(instruction);
  return packed ? packed_f32(instruction, operands) : scaled_matrix(instruction, operands);
}

bool is_published_fault(std::string_view rule) { return rule.starts_with("ERR") || rule.starts_with("CMP"); }

std::vector<Finding> compiler_faults(const KernelAnalysis& kernel) {
  LintOptions options{.least = Severity::error};
  for (const Rule& rule : all_rules())
    if (rule.id.starts_with("CMP") && rule.severity == Severity::error) options.only.emplace_back(rule.id);
  return lint(kernel, options);
}

bool concerns_compiler_fault(const Instruction& instruction) {
  return instruction.mnemonic == "v_writelane_b32" || instruction.mnemonic == "buffer_wbl2";
}

} // namespace kiln::isa
