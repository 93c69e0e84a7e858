// MFMA and SMFMAC of f16, bf16, fp8, bf8, f32, f64 and i8. Register layouts follow AMD's matrix instruction calculator.
//
// The order in which the hardware adds the products of one element is not public. The model adds them to C exactly in double
// (each product of elements up to f16 is exact there) and rounds once to f32; f64 is a chain of fused multiply-adds over k;
// integers wrap.
#include "isa_checks/exec/instructions/matrix_places.h"
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/wave.h"
#include "isa_checks/exec/numbers/numeric.h"
#include <algorithm>
#include <array>
#include <cstring>

namespace kiln::exec {
namespace {

constexpr int largest_side = 32, largest_k = 128;

std::array<float, 256> decode_table(const SmallFloat& format) {
  std::array<float, 256> values{};
  for (u32 c = 0; c < 256; ++c) values[c] = decode_small(format, c);
  return values;
}
const std::array<float, 256>& fp8_values(bool bf8, bool fnuz) {
  static const std::array<float, 256> tables[4] = {decode_table(e4m3fn_format), decode_table(e4m3fnuz_format), decode_table(e5m2_format),
                                                   decode_table(e5m2fnuz_format)};
  return tables[(bf8 ? 2 : 0) + (fnuz ? 1 : 0)];
}

// f32 with 10 bits of mantissa. How the hardware drops the other 13 is not public; the model rounds to nearest even.
float round_to_xf32(float x) {
  const u32 bits = as_bits(x);
  return x - x != 0 ? x : as_float((bits + 0xfffU + (bits >> 13 & 1U)) & ~0x1fffU);
}

// Element `e` of those that a lane holds in consecutive registers.
double element(const u32* registers, int lane, int e, Element type, bool fnuz) {
  const auto word = [&](int i) { return registers[i * lane_count + lane]; };
  switch (type) {
  case Element::f32: return static_cast<double>(as_float(word(e)));
  case Element::xf32: return static_cast<double>(round_to_xf32(as_float(word(e))));
  case Element::f64: return as_double(word(2 * e) | static_cast<std::uint64_t>(word(2 * e + 1)) << 32);
  case Element::f16: return static_cast<double>(to_float(Half{static_cast<std::uint16_t>(word(e / 2) >> (16 * (e % 2)))}));
  case Element::bf16: return static_cast<double>(to_float(BFloat{static_cast<std::uint16_t>(word(e / 2) >> (16 * (e % 2)))}));
  case Element::fp8:
  case Element::bf8: return static_cast<double>(fp8_values(type == Element::bf8, fnuz)[word(e / 4) >> (8 * (e % 4)) & 0xffU]);
  case Element::i8: return static_cast<double>(static_cast<std::int8_t>(word(e / 4) >> (8 * (e % 4))));
  }
  return 0;
}

// The lane whose B operand lane `lane` uses under BLGP: halves or quarters broadcast, or everything rotated by 16.
int b_lane(int lane, int blgp) {
  switch (blgp) {
  case 1: return lane & 31;
  case 2: return (lane & 31) + 32;
  case 3: return (lane + 16) & 63;
  case 0: return lane;
  default: return (lane & 15) + 16 * (blgp - 4);
  }
}

// The place of element (i, kk) of a block of A, and likewise of B: a group of m lanes holds `per_lane` columns of one block.
struct SourcePlace {
  int lane, element;
};
SourcePlace source_place(const MatrixLayout& s, int side, int block, int i, int kk) {
  if (s.accumulator == Element::f64 && s.m == 4) return {i + 4 * block + 16 * kk, 0};
  const int group = s.blocks > 1 ? block : kk / s.per_lane();
  return {i + side * group, kk % s.per_lane()};
}

template <class T>
void accumulate(const MatrixLayout& s, const T (&a)[largest_side][largest_k], const T (&b)[largest_k][largest_side],
                T (&sum)[largest_side][largest_side]) {
  for (int i = 0; i < s.m; ++i)
    for (int kk = 0; kk < s.k; ++kk)
      for (int j = 0; j < s.n; ++j) {
        if (s.accumulator == Element::f64) sum[i][j] = std::fma(a[i][kk], b[kk][j], sum[i][j]);
        else sum[i][j] += a[i][kk] * b[kk][j];
      }
}

template <bool fnuz> void mfma(Wave& wave, const Inst& inst) {
  const MatrixLayout& s = *inst.op->matrix;
  const Fields& f = inst.fields;
  const bool negates = s.accumulator == Element::f64; // BLGP negates A, B, C there
  const u32* const a = wave.lanes(inst.src[0].reg);
  const u32* const b = wave.lanes(inst.src[1].reg);
  const u32* const c = inst.src[2].kind == InstOperand::vector ? wave.lanes(inst.src[2].reg) : nullptr;
  thread_local double left[largest_side][largest_k], right[largest_k][largest_side], sum[largest_side][largest_side];
  thread_local std::vector<u32> result;
  result.assign(static_cast<std::size_t>(s.result_registers() * lane_count), 0);
  for (int block = 0; block < s.blocks; ++block) {
    // CBSZ: groups of 2^cbsz blocks share the A of the block that ABID names.
    const int group = (1 << f.cbsz) - 1, a_block = s.blocks > 1 && f.cbsz != 0 ? (block & ~group) + (f.abid & group) : block;
    for (int kk = 0; kk < s.k; ++kk) {
      for (int i = 0; i < s.m; ++i) {
        const SourcePlace at = source_place(s, s.m, a_block, i, kk);
        left[i][kk] = element(a, at.lane, at.element, s.a, fnuz) * (negates && (f.blgp & 1) != 0 ? -1 : 1);
      }
      for (int j = 0; j < s.n; ++j) {
        const SourcePlace at = source_place(s, s.n, block, j, kk);
        const int lane = negates ? at.lane : b_lane(at.lane, f.blgp);
        right[kk][j] = element(b, lane, at.element, s.b, fnuz) * (negates && (f.blgp & 2) != 0 ? -1 : 1);
      }
    }
    for (int i = 0; i < s.m; ++i)
      for (int j = 0; j < s.n; ++j) sum[i][j] = addend(s, inst, c, result_place(s, block, i, j)) * (negates && (f.blgp & 4) != 0 ? -1 : 1);
    accumulate(s, left, right, sum);
    for (int i = 0; i < s.m; ++i)
      for (int j = 0; j < s.n; ++j) store_result(s, result, result_place(s, block, i, j), sum[i][j]);
  }
  std::memcpy(wave.lanes(inst.dst.reg), result.data(), result.size() * sizeof(u32)); // whatever EXEC says
}

// SMFMAC: D += A B, where a lane holds two of every four elements of A that are adjacent in k, and two bits for each say which.
// Lanes hold adjacent groups of A. B is in parts of 16 bytes per lane (gfx950's doubled k has two), adjacent over the lanes of a part;
// one-hot probes of a gfx950 that others published show this for 16x16, and the model takes it for 32x32 too.
template <bool fnuz> void smfmac(Wave& wave, const Inst& inst) {
  const MatrixLayout& s = *inst.op->matrix;
  const u32* const a = wave.lanes(inst.src[0].reg);
  const u32* const b = wave.lanes(inst.src[1].reg);
  const u32* const index = wave.lanes(inst.src[2].reg);
  const u32* const c = wave.lanes(inst.dst.reg);
  const int dense = s.per_lane(), kept = dense / 2; // elements of a lane: of A as it is meant, and as it is held
  const int part = 128 / s.element_bits(s.b), parts = dense / part;
  const int set_bits = 2 * kept, sets = 32 / set_bits; // of indices; ABID chooses the set when CBSZ is 0
  const int shift = inst.fields.cbsz == 0 ? inst.fields.abid % sets * set_bits : 0;
  thread_local double left[largest_side][largest_k], right[largest_k][largest_side], sum[largest_side][largest_side];
  thread_local std::vector<u32> result;
  result.assign(static_cast<std::size_t>(s.result_registers() * lane_count), 0);
  for (int i = 0; i < s.m; ++i) {
    std::fill_n(left[i], s.k, 0.0);
    for (int kk = 0; kk < s.k; kk += dense) {
      const int lane = i + s.m * (kk / dense);
      for (int e = 0; e < kept; ++e) // an element named twice counts twice
        left[i][kk + 4 * (e / 2) + static_cast<int>(index[lane] >> (shift + 2 * e) & 3U)] += element(a, lane, e, s.a, fnuz);
    }
  }
  for (int kk = 0; kk < s.k; ++kk)
    for (int j = 0; j < s.n; ++j) {
      const int in_part = kk % (s.k / parts);
      right[kk][j] = element(b, j + s.n * (in_part / part), kk / (s.k / parts) * part + in_part % part, s.b, fnuz);
    }
  for (int i = 0; i < s.m; ++i)
    for (int j = 0; j < s.n; ++j) sum[i][j] = addend(s, inst, c, result_place(s, 0, i, j));
  accumulate(s, left, right, sum);
  for (int i = 0; i < s.m; ++i)
    for (int j = 0; j < s.n; ++j) store_result(s, result, result_place(s, 0, i, j), sum[i][j]);
  std::memcpy(wave.lanes(inst.dst.reg), result.data(), result.size() * sizeof(u32)); // whatever EXEC says
}

// The name of each says all else. xf32: gfx942 only.
constexpr std::string_view names[] = {
    "v_mfma_f32_32x32x1_2b_f32",       "v_mfma_f32_16x16x1_4b_f32",      "v_mfma_f32_4x4x1_16b_f32",
    "v_mfma_f32_32x32x2_f32",          "v_mfma_f32_16x16x4_f32",         "v_mfma_f32_32x32x4_xf32",
    "v_mfma_f32_16x16x8_xf32",         "v_mfma_f32_32x32x4_2b_f16",      "v_mfma_f32_16x16x4_4b_f16",
    "v_mfma_f32_4x4x4_16b_f16",        "v_mfma_f32_32x32x8_f16",         "v_mfma_f32_16x16x16_f16",
    "v_mfma_f32_32x32x16_f16",         "v_mfma_f32_16x16x32_f16",        "v_mfma_f32_32x32x4_2b_bf16",
    "v_mfma_f32_16x16x4_4b_bf16",      "v_mfma_f32_4x4x4_16b_bf16",      "v_mfma_f32_32x32x8_bf16",
    "v_mfma_f32_16x16x16_bf16",        "v_mfma_f32_32x32x16_bf16",       "v_mfma_f32_16x16x32_bf16",
    "v_mfma_f32_16x16x32_fp8_fp8",     "v_mfma_f32_16x16x32_fp8_bf8",    "v_mfma_f32_16x16x32_bf8_fp8",
    "v_mfma_f32_16x16x32_bf8_bf8",     "v_mfma_f32_32x32x16_fp8_fp8",    "v_mfma_f32_32x32x16_fp8_bf8",
    "v_mfma_f32_32x32x16_bf8_fp8",     "v_mfma_f32_32x32x16_bf8_bf8",    "v_mfma_i32_32x32x4_2b_i8",
    "v_mfma_i32_16x16x4_4b_i8",        "v_mfma_i32_4x4x4_16b_i8",        "v_mfma_i32_32x32x16_i8",
    "v_mfma_i32_16x16x32_i8",          "v_mfma_i32_32x32x32_i8",         "v_mfma_i32_16x16x64_i8",
    "v_mfma_f64_16x16x4_f64",          "v_mfma_f64_4x4x4_4b_f64",        "v_smfmac_f32_16x16x32_f16",
    "v_smfmac_f32_16x16x32_bf16",      "v_smfmac_f32_32x32x16_f16",      "v_smfmac_f32_32x32x16_bf16",
    "v_smfmac_f32_16x16x64_f16",       "v_smfmac_f32_16x16x64_bf16",     "v_smfmac_f32_32x32x32_f16",
    "v_smfmac_f32_32x32x32_bf16",      "v_smfmac_i32_16x16x64_i8",       "v_smfmac_f32_16x16x64_fp8_fp8",
    "v_smfmac_f32_16x16x64_fp8_bf8",   "v_smfmac_f32_16x16x64_bf8_fp8",  "v_smfmac_f32_16x16x64_bf8_bf8",
    "v_smfmac_i32_32x32x32_i8",        "v_smfmac_f32_32x32x32_fp8_fp8",  "v_smfmac_f32_32x32x32_fp8_bf8",
    "v_smfmac_f32_32x32x32_bf8_fp8",   "v_smfmac_f32_32x32x32_bf8_bf8",  "v_smfmac_i32_16x16x128_i8",
    "v_smfmac_f32_16x16x128_fp8_fp8",  "v_smfmac_f32_16x16x128_fp8_bf8", "v_smfmac_f32_16x16x128_bf8_fp8",
    "v_smfmac_f32_16x16x128_bf8_bf8",  "v_smfmac_i32_32x32x64_i8",       "v_smfmac_f32_32x32x64_fp8_fp8",
    "v_smfmac_f32_32x32x64_fp8_bf8",   "v_smfmac_f32_32x32x64_bf8_fp8",  "v_smfmac_f32_32x32x64_bf8_bf8",
    "v_mfma_f32_16x16x128_f8f6f4",     "v_mfma_f32_32x32x64_f8f6f4",     "v_mfma_scale_f32_16x16x128_f8f6f4",
    "v_mfma_scale_f32_32x32x64_f8f6f4"};

template <bool fnuz> Handler handler_of(const MatrixLayout& s) {
  if (s.named_formats) return &mfma_formats;
  return s.sparse ? &smfmac<fnuz> : &mfma<fnuz>;
}
std::vector<Semantics> make_table(bool fnuz) {
  static const auto layouts = [] {
    std::array<MatrixLayout, std::size(names)> all;
    std::ranges::transform(names, all.begin(), layout_of);
    return all;
  }();
  std::vector<Semantics> table;
  for (std::size_t i = 0; i < layouts.size(); ++i)
    table.push_back({names[i], fnuz ? handler_of<true>(layouts[i]) : handler_of<false>(layouts[i]), {}, nullptr, &layouts[i]});
  return table;
}

} // namespace

ResultPlace result_place(const MatrixLayout& s, int block, int i, int j) {
  if (s.accumulator == Element::f64) return s.m == 16 ? ResultPlace{j + 16 * (i % 4), i / 4} : ResultPlace{j + 4 * block + 16 * i, 0};
  if (s.m == 32) return {j + 32 * (i / 4 % 2), 16 * block + 4 * (i / 8) + i % 4};
  if (s.m == 16) return {j + 16 * (i / 4), 4 * block + i % 4};
  return {j + 4 * block, i};
}
void store_result(const MatrixLayout& s, std::vector<u32>& result, ResultPlace at, double value) {
  const auto word = [&](int reg) -> u32& { return result[static_cast<std::size_t>(reg * lane_count + at.lane)]; };
  if (s.accumulator == Element::f64) {
    word(2 * at.reg) = static_cast<u32>(as_bits(value));
    word(2 * at.reg + 1) = static_cast<u32>(as_bits(value) >> 32);
  } else if (s.accumulator == Element::i8) {
    word(at.reg) = static_cast<u32>(static_cast<std::int64_t>(value));
  } else {
    word(at.reg) = as_bits(static_cast<float>(value));
  }
}

double addend(const MatrixLayout& s, const Inst& inst, const u32* c, ResultPlace at) {
  if (c == nullptr) {
    if (s.accumulator == Element::f64) return as_double(inst.src[2].value);
    const u32 bits = static_cast<u32>(inst.src[2].value);
    return s.accumulator == Element::i8 ? static_cast<double>(static_cast<std::int32_t>(bits)) : static_cast<double>(as_float(bits));
  }
  if (s.accumulator == Element::i8) return static_cast<double>(static_cast<std::int32_t>(c[at.reg * lane_count + at.lane]));
  return element(c, at.lane, at.reg, s.accumulator, false);
}

SemanticsTable matrix_table(bool fnuz) {
  static const std::vector<Semantics> tables[] = {make_table(false), make_table(true)};
  return tables[fnuz ? 1 : 0];
}

} // namespace kiln::exec
