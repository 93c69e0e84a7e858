// Conversions to and from fp8 and bf8: FNUZ on gfx942, OCP on gfx950, under the same mnemonics; stochastic rounding to f16, bf16.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/numbers/float_ops.h"

namespace kiln::exec {
namespace {

// MODE.FP16_OVFL makes an overflowing conversion saturate. Its rounding mode does not count here.
bool saturates(const Wave& wave) { return (wave.mode >> 23 & 1U) != 0; }

template <SmallFloat format> u32 encode(const Wave& wave, float x) {
  return encode_small(format, static_cast<double>(x), Rounding::nearest_even, saturates(wave) && std::isfinite(x));
}
template <SmallFloat format> u16 encode_pair(const Wave& wave, float a, float b) {
  return static_cast<u16>(encode<format>(wave, a) | encode<format>(wave, b) << 8);
}
template <SmallFloat format> float decode(u32 code) { return decode_small(format, code & 0xffU); }
template <SmallFloat format> FloatPair decode_pair(u16 codes) { return {decode<format>(codes), decode<format>(codes >> 8U)}; }

// v_cvt_sr_*: op_sel[3:2] names the byte of the destination that is written; for 16 bits, op_sel[3] the half.
template <SmallFloat format> void stochastic(Wave& wave, const Inst& inst) {
  Buffer a, b, result;
  const u32* const value = fetch(wave, inst, 0, a);
  const u32* const random = fetch(wave, inst, 1, b);
  const u32* const old = wave.lanes(inst.dst.reg);
  constexpr u32 mask = (1U << format.width()) - 1;
  const int shift = format.width() == 8 ? 8 * (inst.fields.op_sel >> 2) : 16 * (inst.fields.op_sel >> 3);
  for (int i = 0; i < lane_count; ++i) {
    const float x = as_float(value[i]);
    const u32 code = encode_stochastic(format, x, random[i], saturates(wave) && std::isfinite(x));
    result.word[0][i] = (old[i] & ~(mask << shift)) | code << shift;
  }
  commit(wave, inst, result);
}

template <SmallFloat format> constexpr Semantics stochastic_entry(std::string_view name) {
  Signature s;
  s.result = Type::u32;
  s.source = {Type::f32, Type::u32};
  s.source_count = 2;
  s.keeps_rest = true;
  return {name, &stochastic<format>, s};
}
template <SmallFloat format> constexpr Semantics pack(std::string_view name) {
  Semantics s = lanes<encode_pair<format>>(name);
  s.signature.keeps_half = true;
  return s;
}

template <SmallFloat fp8, SmallFloat bf8>
constexpr Semantics table_of[] = {
    lanes<decode<fp8>>("v_cvt_f32_fp8"),
    lanes<decode<bf8>>("v_cvt_f32_bf8"),
    lanes<decode_pair<fp8>>("v_cvt_pk_f32_fp8"),
    lanes<decode_pair<bf8>>("v_cvt_pk_f32_bf8"),
    pack<fp8>("v_cvt_pk_fp8_f32"),
    pack<bf8>("v_cvt_pk_bf8_f32"),
    stochastic_entry<fp8>("v_cvt_sr_fp8_f32"),
    stochastic_entry<bf8>("v_cvt_sr_bf8_f32"),
    stochastic_entry<f16_format>("v_cvt_sr_f16_f32"),
    stochastic_entry<bf16_format>("v_cvt_sr_bf16_f32"),
};

} // namespace

SemanticsTable fp8_table(bool fnuz) {
  if (fnuz) return table_of<e4m3fnuz_format, e5m2fnuz_format>;
  return table_of<e4m3fn_format, e5m2_format>;
}

} // namespace kiln::exec
