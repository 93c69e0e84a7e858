// Element types of tensors and values.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kiln {

// fp8 comes in two flavours that are different numbers, so they are different types: gfx942 computes natively in
// the *fnuz* formats (bias 8 and 16, no infinities, no negative zero), gfx950 in the OCP formats.
// e2m1 and e8m0 are the elements and the scales of OCP Microscaling (MX) formats: docs/mx.md. e2m1 has 4 bits, two in a byte, the first
// in the low half; e8m0 is a power of two from 2^-127 to 2^127, or NaN.
// i64 is for row indices alone, which are below max_dim_size: nothing is computed in it.
enum class DType : std::uint8_t { f32, f16, bf16, e4m3fn, e4m3fnuz, e5m2, e5m2fnuz, e2m1, e8m0, i32, i64, i8, u8, boolean };

using enum DType;

std::string_view to_string(DType type);                  // "f16", "e4m3fn", "bool", ...
std::optional<DType> parse_dtype(std::string_view text); // the inverse of name
std::span<const DType> all_dtypes();                     // in the order of the enumeration
int size_bits(DType type);                               // of one element in memory; bool has 8
int size_bytes(DType type);                              // the same in bytes, of types that have whole ones: not of e2m1
bool is_packed(DType type);                              // elements of less than a byte: e2m1
std::int64_t storage_bytes(DType type, std::int64_t elements);
bool is_float(DType type);
bool is_fp8(DType type);
bool is_fnuz(DType type);
bool is_ocp_fp8(DType type);   // e4m3fn and e5m2, which MX formats have too
double max_finite(DType type); // largest finite value: 240 for e4m3fnuz, 448 for e4m3fn, 127 for i8, ...

// One element of `type`, as its memory bits (the low 32 of an i64), converted to f32. Integers round to nearest even above 2^24.
float to_f32(DType type, std::uint32_t bits);

// f32 to the memory bits of `type`, round to nearest even.
// Floating targets: NaN becomes NaN. f16, bf16: overflow becomes infinity. fp8 with `saturate`: finite values beyond
// max_finite become +-max_finite; infinities become NaN in types without infinity and stay infinite in e5m2.
// fp8 without `saturate`: what overflows becomes infinity in e5m2 and NaN elsewhere.
// e2m1 has neither NaN nor infinity: what overflows becomes +-6, NaN becomes 6. e8m0 takes the power of two at or below the magnitude, at
// least 2^-127; NaN and infinity become NaN.
// Integer targets: round to nearest even, then clamp to the range; NaN becomes 0. bool: value != 0 (NaN is true).
std::uint32_t from_f32(DType type, float value, bool saturate = true);

// to_f32 of from_f32: the f32 value of `value` rounded to `type`.
float round_to(DType type, float value, bool saturate = true);

} // namespace kiln
