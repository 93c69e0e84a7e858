// Shapes and cycles of matrix instructions.
#include "isa_checks/decode/matrix_shape.h"
#include "isa_checks/decode/instruction_class.h"
#include "isa_checks/decode/operands.h"
#include <charconv>

namespace kiln::isa {
namespace {

using Text = std::string_view;

int take_number(Text& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(Text& text, Text prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// gfx90a's names have no block count: it follows from the shape (CDNA2 manual, "Matrix Arithmetic Instructions").
int implied_blocks(const MatrixShape& s) {
  const bool wide_input = s.input == "f32" || s.input == "f64";
  if (s.m == 4) return s.input == "f64" ? 4 : 16;
  if (s.m == 16) return wide_input ? (s.k == 1 ? 4 : 1) : (s.k <= 4 ? 4 : 1);
  return wide_input ? (s.k == 1 ? 2 : 1) : (s.k <= 4 ? 2 : 1);
}

int cycles_of(const MatrixShape& s, Text modifiers, const TargetFacts& target) {
  const bool gfx90a = target.arch == "gfx90a", gfx950 = target.lds_read_banks == 64;
  if (s.m == 4) return s.input == "f64" ? 16 : 8;
  const int large = s.m == 32 ? 2 : 1;
  if (s.input == "f64") return gfx950 ? 64 : 32;
  if (s.input == "f8f6f4") { // at full rate without 8-bit operands: formats 2 to 4 are 6 and 4 bits wide
    Operands o;
    o.modifiers = modifiers;
    const bool narrow = o.value("cbsz").value_or(0) >= 2 && o.value("blgp").value_or(0) >= 2;
    return (narrow ? 16 : 32) * large;
  }
  const bool half_rate = gfx90a || s.input == "f32" || s.blocks > 1;
  return (half_rate ? 32 : 16) * large;
}

} // namespace

std::optional<MatrixShape> matrix_shape(const Instruction& instruction, const TargetFacts& target) {
  MatrixShape s;
  Text rest = base_mnemonic(instruction.mnemonic);
  s.sparse = rest.starts_with("v_smfmac_");
  if (!take(rest, "v_mfma_scale_") && !take(rest, "v_mfma_") && !take(rest, "v_smfmac_")) return std::nullopt;
  const std::size_t underscore = rest.find('_');
  if (underscore == Text::npos) return std::nullopt;
  s.result = rest.substr(0, underscore);
  rest.remove_prefix(underscore + 1);
  s.m = take_number(rest);
  take(rest, "x");
  s.n = take_number(rest);
  take(rest, "x");
  s.k = take_number(rest);
  if (s.m <= 0 || s.n <= 0 || s.k <= 0) return std::nullopt; // v_mfma_ld_scale_b32
  take(rest, "_");
  const Text before = rest;
  const int blocks = take_number(rest);
  const bool said = blocks > 0 && take(rest, "b_");
  if (!said) rest = before;
  s.input = rest;
  for (const Text first :
       {Text("bf16"), Text("bf8"), Text("fp8"), Text("f8f6f4"), Text("xf32"), Text("f16"), Text("f32"), Text("f64"), Text("i8")})
    if (rest.starts_with(first)) {
      s.input = first;
      break;
    }
  const bool named_blocks = target.arch != "gfx90a";
  s.blocks = said ? blocks : named_blocks ? 1 : implied_blocks(s);
  s.xdl = s.input != "f32" && s.input != "f64";
  s.cycles = cycles_of(s, operands_of(instruction).modifiers, target);
  return s;
}

std::string_view doubled_shape(Text mnemonic, const TargetFacts& target) {
  if (target.lds_read_banks != 64) return {}; // gfx950 alone has them
  struct Pair {
    Text narrow, wide;
  };
  static constexpr Pair pairs[] = {
      {"v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x32_f16"},     {"v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x32_bf16"},
      {"v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x16_f16"},      {"v_mfma_f32_32x32x8_bf16", "v_mfma_f32_32x32x16_bf16"},
      {"v_mfma_i32_16x16x32_i8", "v_mfma_i32_16x16x64_i8"},       {"v_mfma_i32_32x32x16_i8", "v_mfma_i32_32x32x32_i8"},
      {"v_mfma_f32_16x16x32_fp8", "v_mfma_f32_16x16x128_f8f6f4"}, {"v_mfma_f32_16x16x32_bf8", "v_mfma_f32_16x16x128_f8f6f4"},
      {"v_mfma_f32_32x32x16_fp8", "v_mfma_f32_32x32x64_f8f6f4"},  {"v_mfma_f32_32x32x16_bf8", "v_mfma_f32_32x32x64_f8f6f4"}};
  for (const Pair& p : pairs)
    if (base_mnemonic(mnemonic).starts_with(p.narrow)) return p.wide;
  return {};
}

} // namespace kiln::isa
