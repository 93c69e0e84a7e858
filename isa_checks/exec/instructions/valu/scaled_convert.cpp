// gfx950's scaled conversions (v_cvt_scalef32_*), between f32, f16, bf16 and fp8, bf8, fp6, bf6, fp4.
//
// After the pseudo-code of the instruction set manual: only the exponent field of the scale counts, as an E8M0 number; what gets
// narrower is divided by it, what gets wider is multiplied, exactly; then one rounding, to nearest even or stochastic. The manual
// leaves open, and the model chooses: the scale's exponent 255 is NaN; 6-bit and 4-bit formats take NaN as their largest number;
// MODE.FP16_OVFL saturates finite values as in the unscaled conversions.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/lanes.h"
#include <limits>

namespace kiln::exec {
namespace {

enum class Number : std::uint8_t { f32, f16, bf16, fp8, bf8, fp6, bf6, fp4 };
constexpr int bits_of(Number n) {
  switch (n) {
  case Number::f32: return 32;
  case Number::f16:
  case Number::bf16: return 16;
  case Number::fp8:
  case Number::bf8: return 8;
  case Number::fp6:
  case Number::bf6: return 6;
  default: return 4;
  }
}
constexpr const SmallFloat& format_of(Number n) {
  switch (n) {
  case Number::f16: return f16_format;
  case Number::bf16: return bf16_format;
  case Number::fp8: return e4m3fn_format;
  case Number::bf8: return e5m2_format;
  case Number::fp6: return e2m3_format;
  case Number::bf6: return e3m2_format;
  default: return e2m1_format;
  }
}

struct Conversion {
  Number from, to;
  std::uint8_t count;       // elements: 1, 2 or 32
  bool stochastic = false;  // the operand before the scale is the random number
  bool two_sources = false; // elements come from the first two operands in turn
  constexpr bool narrows() const { return bits_of(to) < bits_of(from); }
  constexpr int source_registers() const { return std::max(1, count * bits_of(from) / (two_sources ? 64 : 32)); }
  constexpr int result_registers() const { return std::max(1, count * bits_of(to) / 32); }
  constexpr int scale_operand() const { return 1 + (stochastic ? 1 : 0) + (two_sources ? 1 : 0); }
  constexpr bool partial() const { return count * bits_of(to) < 32; } // keeps the rest of the destination
};

// The part of the source or destination register that op_sel names, as a bit offset.
constexpr int source_offset(const Conversion& c, u32 op_sel) {
  const int width = c.count * bits_of(c.from);
  if (width == 8) return static_cast<int>(8 * (op_sel & 3U));
  return width == 16 ? static_cast<int>(16 * (op_sel & 1U)) : 0;
}
constexpr int result_offset(const Conversion& c, u32 op_sel) {
  const int width = c.count * bits_of(c.to);
  if (width == 8) return static_cast<int>(8 * (op_sel >> 2 & 3U));
  return width == 16 ? static_cast<int>(16 * (op_sel >> 3 & 1U)) : 0;
}

u32 next_random(u32 x) { return x << 1 ^ ((x >> 31) != 0 ? 197U : 0U); }

double scale_of(u32 bits) {
  const u32 exponent = bits >> 23 & 0xffU;
  return exponent == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(exponent) - 127);
}

template <Conversion c> double element(const Inst& inst, const u32* const (&sources)[2], int lane, int e) {
  constexpr int width = bits_of(c.from);
  const int source = c.two_sources ? e % 2 : 0, at = (c.two_sources ? e / 2 : e) * width;
  const u32 code = bits_of_lane(sources[source], lane, at + source_offset(c, inst.fields.op_sel), width);
  double value;
  if constexpr (c.from == Number::f32) value = static_cast<double>(as_float(code));
  else value = static_cast<double>(decode_small(format_of(c.from), code));
  if ((inst.fields.abs >> source & 1) != 0) value = std::fabs(value);
  return (inst.fields.neg >> source & 1) != 0 ? -value : value;
}

template <Conversion c> u32 encode(const Wave& wave, double value, u32 random) {
  if constexpr (c.to == Number::f32) {
    return as_bits(static_cast<float>(value));
  } else {
    const bool saturate = (wave.mode >> 23 & 1U) != 0 && std::isfinite(value); // MODE.FP16_OVFL
    if constexpr (c.stochastic) return encode_stochastic(format_of(c.to), value, random, saturate);
    return encode_small(format_of(c.to), value, Rounding::nearest_even, saturate);
  }
}

template <Conversion c> void convert(Wave& wave, const Inst& inst) {
  Buffer buffer[4];
  const auto operand = [&](int k) -> const u32* {
    const InstOperand& o = inst.src[static_cast<std::size_t>(k)];
    return registers(o.type) > 2 ? wave.lanes(o.reg) : fetch(wave, inst, k, buffer[k]);
  };
  const u32* const sources[2] = {operand(0), c.two_sources ? operand(1) : nullptr};
  const u32* const seed = c.stochastic ? operand(c.scale_operand() - 1) : nullptr;
  const u32* const scales = operand(c.scale_operand());
  constexpr int width = bits_of(c.to);
  const int at = result_offset(c, inst.fields.op_sel);
  u32 results[c.result_registers()][lane_count] = {}; // all are computed before any is written: the destination may be a source too
  for (int lane = 0; lane < lane_count; ++lane) {
    const double scale = scale_of(scales[lane]);
    u32 random = seed == nullptr ? 0 : seed[lane];
    for (int e = 0; e < c.count; ++e, random = next_random(random)) {
      const double value = element<c>(inst, sources, lane, e);
      set_bits_of_lane(*results, lane, at + e * width, width, encode<c>(wave, c.narrows() ? value / scale : value * scale, random));
    }
  }
  constexpr u32 mask = c.partial() ? (1U << (c.count * width % 32)) - 1 : ~0U;
  const std::uint64_t exec = wave.exec();
  for (int r = 0; r < c.result_registers(); ++r) {
    u32* const to = wave.lanes(static_cast<std::uint16_t>(inst.dst.reg + r));
    for (int lane = 0; lane < lane_count; ++lane)
      if (active(exec, lane)) to[lane] = c.partial() ? (to[lane] & ~(mask << at)) | results[r][lane] : results[r][lane];
  }
}

constexpr Type words_type(int count) {
  switch (count) {
  case 1: return Type::u32;
  case 2: return Type::u64;
  case 6: return Type::u32x6;
  case 16: return Type::f32x16;
  default: return Type::f32x32;
  }
}

template <Conversion c> constexpr Semantics line(std::string_view name) {
  Signature s;
  s.result = words_type(c.result_registers());
  for (int k = 0; k < c.scale_operand(); ++k)
    s.source[s.source_count++] = k == 0 || (k == 1 && c.two_sources) ? words_type(c.source_registers()) : Type::u32;
  s.source[s.source_count++] = Type::u32;
  s.own_modifiers = true;
  s.keeps_rest = c.partial();
  return {name, &convert<c>, s};
}

#define KILN_WIDEN(name, from, to, count) line<Conversion{Number::from, Number::to, count}>("v_cvt_scalef32_" name)
#define KILN_NARROW_PAIR(small)                                                                                                            \
  line<Conversion{Number::f32, Number::small, 2, false, true}>("v_cvt_scalef32_pk_" #small "_f32"),                                        \
      line<Conversion{Number::f16, Number::small, 2}>("v_cvt_scalef32_pk_" #small "_f16"),                                                 \
      line<Conversion{Number::bf16, Number::small, 2}>("v_cvt_scalef32_pk_" #small "_bf16")
#define KILN_STOCHASTIC(name, small, count)                                                                                                \
  line<Conversion{Number::f32, Number::small, count, true}>("v_cvt_scalef32_sr_" name "_f32"),                                             \
      line<Conversion{Number::f16, Number::small, count, true}>("v_cvt_scalef32_sr_" name "_f16"),                                         \
      line<Conversion{Number::bf16, Number::small, count, true}>("v_cvt_scalef32_sr_" name "_bf16")
#define KILN_WIDEN_PAIR(small)                                                                                                             \
  KILN_WIDEN("pk_f32_" #small, small, f32, 2), KILN_WIDEN("pk_f16_" #small, small, f16, 2), KILN_WIDEN("pk_bf16_" #small, small, bf16, 2)
#define KILN_SIX_BITS(small)                                                                                                               \
  KILN_WIDEN("pk32_f32_" #small, small, f32, 32), KILN_WIDEN("pk32_f16_" #small, small, f16, 32),                                          \
      KILN_WIDEN("pk32_bf16_" #small, small, bf16, 32), KILN_WIDEN("pk32_" #small "_f16", f16, small, 32),                                 \
      KILN_WIDEN("pk32_" #small "_bf16", bf16, small, 32), KILN_STOCHASTIC("pk32_" #small, small, 32),                                     \
      line<Conversion{Number::f32, Number::small, 32, false, true}>("v_cvt_scalef32_2xpk16_" #small "_f32")

constexpr Semantics table[] = {
    KILN_NARROW_PAIR(fp8),
    KILN_NARROW_PAIR(bf8),
    KILN_NARROW_PAIR(fp4),
    KILN_STOCHASTIC("fp8", fp8, 1),
    KILN_STOCHASTIC("bf8", bf8, 1),
    KILN_STOCHASTIC("pk_fp4", fp4, 2),
    KILN_WIDEN("f32_fp8", fp8, f32, 1),
    KILN_WIDEN("f32_bf8", bf8, f32, 1),
    KILN_WIDEN("f16_fp8", fp8, f16, 1),
    KILN_WIDEN("f16_bf8", bf8, f16, 1),
    KILN_WIDEN_PAIR(fp8),
    KILN_WIDEN_PAIR(bf8),
    KILN_WIDEN_PAIR(fp4),
    KILN_SIX_BITS(fp6),
    KILN_SIX_BITS(bf6),
    lanes<next_random>("v_prng_b32"),
};

} // namespace

SemanticsTable scaled_convert_table() { return table; }

} // namespace kiln::exec
