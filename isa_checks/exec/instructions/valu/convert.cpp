// Conversions between number types, except fp8 and smaller (valu_fp8.cpp).
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/machine/mode.h"
#include "isa_checks/exec/numbers/float_ops.h"

namespace kiln::exec {
namespace {

Half toward_zero(float x) { return {static_cast<u16>(encode_small(f16_format, static_cast<double>(x), Rounding::toward_zero, false))}; }

// An f32 to f16 conversion obeys MODE's rounding of f16 and, when asked, saturates.
Half to_half_in_mode(const Wave& wave, float x) { return mode::to_half(wave.mode, static_cast<double>(mode::source(wave.mode, x))); }
template <class I> Half integer_to_half(I x) { return to_half(static_cast<float>(x)); }
template <class I> Half integer_to_half_in_mode(const Wave& wave, I x) { return mode::to_half(wave.mode, static_cast<double>(x)); }

i16 normalized_signed(float x) { return static_cast<i16>(round_even(std::clamp(x != x ? 0.0F : x, -1.0F, 1.0F) * 32767.0F)); }
u16 normalized_unsigned(float x) { return static_cast<u16>(round_even(std::clamp(x != x ? 0.0F : x, 0.0F, 1.0F) * 65535.0F)); }
u16 bits(i16 x) { return static_cast<u16>(x); }

constexpr Semantics table[] = {
    exact<[](float x) { return saturating<i32>(x); }>("v_cvt_i32_f32"),
    exact<[](float x) { return saturating<u32>(x); }>("v_cvt_u32_f32"),
    exact<[](float x) { return saturating<i32>(std::floor(x + 0.5F)); }>("v_cvt_rpi_i32_f32"),
    exact<[](float x) { return saturating<i32>(std::floor(x)); }>("v_cvt_flr_i32_f32"),
    arithmetic<[](i32 x) { return static_cast<float>(x); }>("v_cvt_f32_i32"),
    arithmetic<[](u32 x) { return static_cast<float>(x); }>("v_cvt_f32_u32"),
    lanes<[](u32 x) { return static_cast<float>(x & 0xffU); }>("v_cvt_f32_ubyte0"),
    lanes<[](u32 x) { return static_cast<float>(x >> 8 & 0xffU); }>("v_cvt_f32_ubyte1"),
    lanes<[](u32 x) { return static_cast<float>(x >> 16 & 0xffU); }>("v_cvt_f32_ubyte2"),
    lanes<[](u32 x) { return static_cast<float>(x >> 24); }>("v_cvt_f32_ubyte3"),
    lanes<[](u32 x) { return static_cast<float>(static_cast<i32>(x << 28) >> 28) * 0.0625F; }>("v_cvt_off_f32_i4"),
    exact<[](double x) { return saturating<i32>(x); }>("v_cvt_i32_f64"),
    exact<[](double x) { return saturating<u32>(x); }>("v_cvt_u32_f64"),
    lanes<[](i32 x) { return static_cast<double>(x); }>("v_cvt_f64_i32"),
    lanes<[](u32 x) { return static_cast<double>(x); }>("v_cvt_f64_u32"),
    arithmetic<[](double x) { return static_cast<float>(x); }>("v_cvt_f32_f64"),
    exact<[](float x) { return static_cast<double>(x); }>("v_cvt_f64_f32"),
    arithmetic<[](float x) { return to_half(x); }, to_half_in_mode, mode::Rounds::no>("v_cvt_f16_f32"),
    exact<[](Half x) { return to_float(x); }>("v_cvt_f32_f16"),
    lanes<[](BFloat x) { return to_float(x); }>("v_cvt_f32_bf16"),
    arithmetic<integer_to_half<u16>, integer_to_half_in_mode<u16>>("v_cvt_f16_u16"),
    arithmetic<integer_to_half<i16>, integer_to_half_in_mode<i16>>("v_cvt_f16_i16"),
    exact<[](Half x) { return saturating<u16>(to_float(x)); }>("v_cvt_u16_f16"),
    exact<[](Half x) { return saturating<i16>(to_float(x)); }>("v_cvt_i16_f16"),
    lanes<[](Half x) { return normalized_signed(to_float(x)); }>("v_cvt_norm_i16_f16"),
    lanes<[](Half x) { return normalized_unsigned(to_float(x)); }>("v_cvt_norm_u16_f16"),
    lanes<[](float a, float b) { return HalfPair{toward_zero(a), toward_zero(b)}; }>("v_cvt_pkrtz_f16_f32"),
    lanes<[](float a, float b) { return HalfPair{to_half(a), to_half(b)}; }>("v_cvt_pk_f16_f32"),
    lanes<[](float a, float b) { return Pair16{to_bfloat(a).bits, to_bfloat(b).bits}; }>("v_cvt_pk_bf16_f32"),
    lanes<[](float a, float b) { return Pair16{bits(normalized_signed(a)), bits(normalized_signed(b))}; }>("v_cvt_pknorm_i16_f32"),
    lanes<[](float a, float b) { return Pair16{normalized_unsigned(a), normalized_unsigned(b)}; }>("v_cvt_pknorm_u16_f32"),
    lanes<[](Half a, Half b) { return Pair16{bits(normalized_signed(to_float(a))), bits(normalized_signed(to_float(b)))}; }>(
        "v_cvt_pknorm_i16_f16"),
    lanes<[](Half a, Half b) { return Pair16{normalized_unsigned(to_float(a)), normalized_unsigned(to_float(b))}; }>(
        "v_cvt_pknorm_u16_f16"),
    lanes<[](u32 a, u32 b) { return Pair16{static_cast<u16>(std::min(a, 0xffffU)), static_cast<u16>(std::min(b, 0xffffU))}; }>(
        "v_cvt_pk_u16_u32"),
    lanes<[](i32 a, i32 b) {
      return Pair16{static_cast<u16>(std::clamp(a, -32768, 32767)), static_cast<u16>(std::clamp(b, -32768, 32767))};
    }>("v_cvt_pk_i16_i32"),
    lanes<insert_byte>("v_cvt_pk_u8_f32"),
};

} // namespace

SemanticsTable convert_table() { return table; }

} // namespace kiln::exec
