// Shapes and passes of matrix instructions.
#include "isa_checks/target/matrix_shape.h"
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

int passes_of(const MatrixShape& s, OperandFormats formats, Generation generation) {
  if (s.m == 4) return s.input == "f64" ? 4 : 2;
  if (s.input == "f64") return generation == Generation::cdna4 ? 16 : 8;
  const bool half_rate =
      s.input == "f8f6f4" ? formats.a < 2 || formats.b < 2 : generation == Generation::cdna2 || s.input == "f32" || s.blocks > 1;
  return (s.m == 32 ? 8 : 4) * (half_rate ? 2 : 1);
}

} // namespace

std::optional<MatrixShape> matrix_shape(Text mnemonic, const TargetFacts& target, OperandFormats formats) {
  auto s = named_matrix_shape(mnemonic);
  if (s) s->passes = passes_of(*s, formats, target.generation);
  return s;
}

std::optional<MatrixShape> named_matrix_shape(Text mnemonic) {
  MatrixShape s;
  Text rest = mnemonic;
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
  const bool named_blocks = take(rest, "_");                 // gfx90a's names end in KTYPE: v_mfma_f32_32x32x8f16
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
  s.second_input = rest.ends_with("_fp8") ? "fp8" : rest.ends_with("_bf8") ? "bf8" : s.input;
  s.blocks = said ? blocks : named_blocks ? 1 : implied_blocks(s);
  s.xdl = s.input != "f32" && s.input != "f64";
  return s;
}

std::string_view doubled_shape(Text mnemonic, const TargetFacts& target) {
  if (!target.doubled_mfma) return {};
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
    if (mnemonic.starts_with(p.narrow)) return p.wide;
  return {};
}

} // namespace kiln::isa
