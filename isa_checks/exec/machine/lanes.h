// Turns a function of one lane into an instruction: its parameter types say how operands are read, its result type how the
// result is written. An instruction is one line: lanes<[](float a, float b) { return a + b; }>("v_add_f32").
#pragma once
#include "isa_checks/exec/machine/clones.h"
#include "isa_checks/exec/machine/wave.h"
#include "isa_checks/exec/numbers/numeric.h"
#include <type_traits>
#include <utility>

namespace kiln::exec {

// Parameter and result types beyond the plain numbers.
struct Pair16 { // packed 16-bit integers
  std::uint16_t lo, hi;
};
struct HalfPair {
  Half lo, hi;
};
struct FloatPair {
  float lo, hi;
};
struct WordPair {
  std::uint32_t lo, hi;
};
struct Mixed { // v_fma_mix source, already converted
  float value;
};
template <class T> struct WithCarry { // a result and a lane-mask bit
  T value;
  bool carry;
};

// Operands of one instruction for 64 lanes; wide types take two rows.
struct alignas(64) Buffer {
  std::uint32_t word[2][lane_count];
};

// Lane values of source `k`: a pointer to the register itself when nothing has to be done to it, else `buffer`.
const std::uint32_t* fetch(Wave& wave, const Inst& inst, int k, Buffer& buffer);
// Writes the result to the active lanes, after omod, clamp and destination selection.
void commit(Wave& wave, const Inst& inst, Buffer& result);
// Packs the 0/1 words of the active lanes into the mask destination.
void commit_mask(Wave& wave, const Inst& inst, const std::uint32_t* flags);
// The lanes that write: EXEC, less those that DPP switches off.
std::uint64_t writing_lanes(const Wave& wave, const Inst& inst);

template <class T> inline constexpr Type type_of = Type::none;
template <> inline constexpr Type type_of<std::uint32_t> = Type::u32;
template <> inline constexpr Type type_of<std::int32_t> = Type::i32;
template <> inline constexpr Type type_of<float> = Type::f32;
template <> inline constexpr Type type_of<std::uint16_t> = Type::u16;
template <> inline constexpr Type type_of<std::int16_t> = Type::i16;
template <> inline constexpr Type type_of<Half> = Type::f16;
template <> inline constexpr Type type_of<BFloat> = Type::bf16;
template <> inline constexpr Type type_of<std::uint64_t> = Type::u64;
template <> inline constexpr Type type_of<std::int64_t> = Type::i64;
template <> inline constexpr Type type_of<double> = Type::f64;
template <> inline constexpr Type type_of<bool> = Type::mask;
template <> inline constexpr Type type_of<Pair16> = Type::u16x2;
template <> inline constexpr Type type_of<HalfPair> = Type::f16x2;
template <> inline constexpr Type type_of<FloatPair> = Type::f32x2;
template <> inline constexpr Type type_of<WordPair> = Type::u32x2;
template <> inline constexpr Type type_of<Mixed> = Type::mixed;
template <class T> inline constexpr Type type_of<WithCarry<T>> = type_of<T>;
template <class T> inline constexpr bool has_carry = false;
template <class T> inline constexpr bool has_carry<WithCarry<T>> = true;

template <class T> inline T load_lane(const std::uint32_t* p, int i) {
  if constexpr (std::is_same_v<T, bool>) return p[i] != 0;
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) return T{static_cast<std::uint16_t>(p[i])};
  else if constexpr (std::is_same_v<T, Pair16>) return {static_cast<std::uint16_t>(p[i]), static_cast<std::uint16_t>(p[i] >> 16)};
  else if constexpr (std::is_same_v<T, HalfPair>) return {{static_cast<std::uint16_t>(p[i])}, {static_cast<std::uint16_t>(p[i] >> 16)}};
  else if constexpr (std::is_same_v<T, FloatPair>) return {as_float(p[i]), as_float(p[i + lane_count])};
  else if constexpr (std::is_same_v<T, WordPair>) return {p[i], p[i + lane_count]};
  else if constexpr (std::is_same_v<T, Mixed>) return {as_float(p[i])};
  else if constexpr (sizeof(T) == 8) return std::bit_cast<T>(p[i] | static_cast<std::uint64_t>(p[i + lane_count]) << 32);
  else if constexpr (sizeof(T) == 2) return static_cast<T>(p[i]);
  else return std::bit_cast<T>(p[i]);
}

template <class T> inline void store_lane(Buffer& r, int i, T value) {
  if constexpr (std::is_same_v<T, bool>) r.word[0][i] = value ? 1U : 0U;
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) r.word[0][i] = value.bits;
  else if constexpr (std::is_same_v<T, Pair16>) r.word[0][i] = value.lo | static_cast<std::uint32_t>(value.hi) << 16;
  else if constexpr (std::is_same_v<T, HalfPair>) r.word[0][i] = value.lo.bits | static_cast<std::uint32_t>(value.hi.bits) << 16;
  else if constexpr (std::is_same_v<T, FloatPair>) {
    r.word[0][i] = as_bits(value.lo);
    r.word[1][i] = as_bits(value.hi);
  } else if constexpr (std::is_same_v<T, WordPair>) {
    r.word[0][i] = value.lo;
    r.word[1][i] = value.hi;
  } else if constexpr (sizeof(T) == 8) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    r.word[0][i] = static_cast<std::uint32_t>(bits);
    r.word[1][i] = static_cast<std::uint32_t>(bits >> 32);
  } else if constexpr (sizeof(T) == 2) r.word[0][i] = static_cast<std::uint16_t>(value);
  else r.word[0][i] = std::bit_cast<std::uint32_t>(value);
}

template <auto F, class R, class... A, std::size_t... I> void run_lanes(Wave& wave, const Inst& inst, std::index_sequence<I...>) {
  Buffer buffer[sizeof...(A)], result;
  const std::uint32_t* const source[] = {fetch(wave, inst, static_cast<int>(I), buffer[I])...};
  if constexpr (has_carry<R>) {
    alignas(64) std::uint32_t carry[lane_count];
    for (int i = 0; i < lane_count; ++i) {
      const R r = F(load_lane<A>(source[I], i)...);
      store_lane(result, i, r.value);
      carry[i] = r.carry ? 1U : 0U;
    }
    commit(wave, inst, result);
    commit_mask(wave, inst, carry);
  } else {
    for (int i = 0; i < lane_count; ++i) store_lane<R>(result, i, F(load_lane<A>(source[I], i)...));
    if constexpr (std::is_same_v<R, bool>) commit_mask(wave, inst, result.word[0]);
    else commit(wave, inst, result);
  }
}

template <auto F, class Function = decltype(+F)> struct LaneFunction;
template <auto F, class R, class... A> struct LaneFunction<F, R (*)(A...)> {
  KILN_CLONES static void handle(Wave& wave, const Inst& inst) {
    run_lanes<F, R, std::remove_cvref_t<A>...>(wave, inst, std::index_sequence_for<A...>{});
  }
  static constexpr Signature signature() {
    Signature s;
    s.result = type_of<R>;
    int n = 0;
    ((s.source[static_cast<std::size_t>(n++)] = type_of<std::remove_cvref_t<A>>), ...);
    s.source_count = sizeof...(A);
    s.carry_out = has_carry<R>;
    return s;
  }
};

// A function whose first parameter is the wave depends on its MODE register (mode.h).
template <auto F, class R, class... A> struct LaneFunction<F, R (*)(const Wave&, A...)> {
  KILN_CLONES static void handle(Wave& wave, const Inst& inst) { run(wave, inst, std::index_sequence_for<A...>{}); }
  template <std::size_t... I> static void run(Wave& wave, const Inst& inst, std::index_sequence<I...>) {
    Buffer buffer[sizeof...(A)], result;
    const std::uint32_t* const source[] = {fetch(wave, inst, static_cast<int>(I), buffer[I])...};
    for (int i = 0; i < lane_count; ++i) store_lane<R>(result, i, F(wave, load_lane<std::remove_cvref_t<A>>(source[I], i)...));
    if constexpr (std::is_same_v<R, bool>) commit_mask(wave, inst, result.word[0]);
    else commit(wave, inst, result);
  }
  static constexpr Signature signature() {
    return LaneFunction<+[](A...) -> R { return {}; }>::signature();
  }
};

template <auto F> constexpr Semantics lanes(std::string_view name) {
  return {name, &LaneFunction<F>::handle, LaneFunction<F>::signature()};
}
// The last parameter is the destination's old value (v_fmac, v_dot2c).
template <auto F> constexpr Semantics accumulating(std::string_view name) {
  Semantics s = lanes<F>(name);
  s.signature.accumulates = true;
  return s;
}
// A 16-bit operation of the newer kind: keeps the other half of the destination.
template <auto F> constexpr Semantics keeping_half(std::string_view name) {
  Semantics s = lanes<F>(name);
  s.signature.keeps_half = true;
  return s;
}

} // namespace kiln::exec
