// CVT001, CVT002, CVT003: conversions done in more instructions than the hardware needs.
#include "isa_checks/analysis/readers.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace kiln::isa::rules {
namespace {

bool is_number(const Operand& o, std::uint64_t value) { return o.is(Operand::Kind::number) && o.number == value; }

} // namespace

// The bit 16 that rounding to nearest even adds, then x + bit + 0x7fff.
void cvt001(const KernelAnalysis& k, FindingSink& sink) {
  Instructions found;
  for (const std::size_t i : named(k, all_instructions(k), "v_bfe_u32")) {
    const Operands& o = k.operands[i];
    if (o.count < 4 || !is_number(o[2], 16) || !is_number(o[3], 1)) continue;
    for (const Reader& r : readers_of(k.program, i, o[0].registers, 64).list)
      if (k.mnemonic(r.instruction).starts_with("v_add3_u32")) {
        found.push_back(i);
        break;
      }
  }
  if (found.empty()) return;
  const bool native = k.target->native_bf16_convert;
  sink.add({.message = fmt::format("{} to bf16 in integer arithmetic, 5 instructions or more each{}", plural(found.size(), "rounding"),
                                   native ? "; this target has v_cvt_pk_bf16_f32" : ""),
            .evidence = {{"roundings", number(found.size()), ""}},
            .instructions = found});
}

void cvt002(const KernelAnalysis& k, FindingSink& sink) {
  Instructions found = where(all_instructions(k), [&](std::size_t i) {
    const auto m = k.mnemonic(i);
    const Operands& o = k.operands[i];
    const bool packed = m.starts_with("v_cvt_pk_fp8_f32") || m.starts_with("v_cvt_pk_bf8_f32");
    return packed && o.count >= 3 && o[1].is(Operand::Kind::registers) && o[2].is(Operand::Kind::registers) &&
           o[1].registers == o[2].registers;
  });
  std::map<std::pair<std::size_t, std::uint16_t>, Instructions> bytes; // of one register in one block
  for (const std::size_t i : all_instructions(k)) {
    const auto m = k.mnemonic(i);
    const Operands& o = k.operands[i];
    if ((m.starts_with("v_cvt_f32_fp8") || m.starts_with("v_cvt_f32_bf8")) && o.count >= 2 && o[1].is(Operand::Kind::registers))
      bytes[{k.program.block_of(i), o[1].registers.first}].push_back(i);
  }
  for (const auto& [place, list] : bytes)
    if (list.size() >= 2) found.insert(found.end(), list.begin(), list.end());
  std::sort(found.begin(), found.end());
  sink.add_counted("conversions", fmt::format("{} of single fp8 values", plural(found.size(), "conversion")), found);
}

void cvt003(const KernelAnalysis& k, FindingSink& sink) {
  const Instructions found = where(named(k, all_instructions(k), "v_cvt_f32_f16"), [&](std::size_t i) {
    const Readers readers = readers_of(k.program, i, k.operands[i][0].registers);
    return readers.complete && !readers.list.empty() && std::all_of(readers.list.begin(), readers.list.end(), [&](const Reader& r) {
             const auto m = base_mnemonic(k.mnemonic(r.instruction));
             return m == "v_fma_f32" || m == "v_fmac_f32" || m == "v_pk_fma_f32";
           });
  });
  sink.add_counted("conversions", fmt::format("{} from f16 that only fused multiply-adds read", plural(found.size(), "conversion")), found);
}

} // namespace kiln::isa::rules
