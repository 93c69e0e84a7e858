// The MODE register's floating-point fields, and table lines for the instructions that obey them.
//
// In the ordinary mode (nearest even, all denormals, IEEE, no FP16_OVFL) an instruction runs its plain function. In any other mode the
// same function runs lane by lane with the host's rounding mode set, denormal sources and results made zero as MODE asks; for
// f16, whose plain functions round through float, a second function says the same in double, where nothing is lost before the
// one rounding.
#pragma once
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/numbers/float_ops.h"

namespace kiln::exec {

namespace mode {
using Word = std::uint32_t;
// Bits of the register: two of rounding (see Rounding) and two of denormals (1: sources may be, 2: results may be) for f32, and
// likewise for f16 and f64.
inline constexpr Word single = 0x33, wide = 0xcc, overflow = 1U << 23, half = wide | overflow;
inline constexpr Word ieee = 1U << 9;
inline constexpr Word ordinary = 0xf0 | ieee;

inline Rounding single_rounding(Word m) { return static_cast<Rounding>(m & 3U); }
inline Rounding wide_rounding(Word m) { return static_cast<Rounding>(m >> 2 & 3U); }

inline float source(Word m, float x) { return (m & 0x10U) != 0 ? x : flush(x); }
inline float result(Word m, float x) { return (m & 0x20U) != 0 ? x : flush(x); }
inline double flush_wide(double x) { return std::fabs(x) < std::numeric_limits<double>::min() ? std::copysign(0.0, x) : x; }
inline double source(Word m, double x) { return (m & 0x40U) != 0 ? x : flush_wide(x); }
inline double result(Word m, double x) { return (m & 0x80U) != 0 ? x : flush_wide(x); }
inline Half flush_half(Half h) { return (h.bits & 0x7c00U) == 0 ? Half{static_cast<std::uint16_t>(h.bits & 0x8000U)} : h; }
inline Half source(Word m, Half h) { return (m & 0x40U) != 0 ? h : flush_half(h); }
inline Half result(Word m, Half h) { return (m & 0x80U) != 0 ? h : flush_half(h); }
inline FloatPair source(Word m, FloatPair p) { return {source(m, p.lo), source(m, p.hi)}; }
inline FloatPair result(Word m, FloatPair p) { return {result(m, p.lo), result(m, p.hi)}; }
inline Mixed source(Word m, Mixed x) { return {source(m, x.value)}; }
template <class T> T source(Word, T x) { return x; } // integers and masks
template <class T> T result(Word, T x) { return x; }

// Rounds an exact f16 result, or one that is already rounded in the same direction, as MODE says.
Half to_half(Word m, double exact);

template <class T> inline constexpr Word bits_of = 0;
template <> inline constexpr Word bits_of<float> = single;
template <> inline constexpr Word bits_of<FloatPair> = single;
template <> inline constexpr Word bits_of<Mixed> = single;
template <> inline constexpr Word bits_of<double> = wide;
template <> inline constexpr Word bits_of<Half> = half;
template <> inline constexpr Word bits_of<HalfPair> = half;

// Which field sets the host's rounding while the function runs.
enum class Rounds : std::uint8_t { no, as_single, as_wide };
template <class R>
inline constexpr Rounds rounds_as = (bits_of<R> & single) != 0 ? Rounds::as_single
                                    : bits_of<R> != 0          ? Rounds::as_wide
                                                               : Rounds::no;
// Runs `handler` with the host's rounding mode set.
void run_rounded(Wave& wave, const Inst& inst, Rounds rounds, Handler handler);

template <auto F, class Function = decltype(+F)> struct Traits;
template <auto F, class R, class... A> struct Traits<F, R (*)(A...)> {
  using Result = R;
  static constexpr Word bits = (bits_of<R> | ... | bits_of<std::remove_cvref_t<A>>);
  static R in_mode(const Wave& wave, A... a) { return result(wave.mode, F(source(wave.mode, a)...)); }
};

template <auto F, auto InMode, Rounds rounds, Word also = 0> void handle(Wave& wave, const Inst& inst) {
  constexpr Word bits = Traits<F>::bits | also;
  if ((wave.mode & bits) == (ordinary & bits)) return LaneFunction<F>::handle(wave, inst);
  run_rounded(wave, inst, rounds, &LaneFunction<InMode>::handle);
}

} // namespace mode

// An operation whose result is rounded. `InMode`, when the plain function does not do in every mode: the function of the wave.
template <auto F, auto InMode = &mode::Traits<F>::in_mode, mode::Rounds rounds = mode::rounds_as<typename mode::Traits<F>::Result>>
constexpr Semantics arithmetic(std::string_view name) {
  Semantics s = lanes<F>(name);
  s.handler = &mode::handle<F, InMode, rounds>;
  return s;
}
// An operation whose result is exact: only denormals count.
template <auto F, auto InMode = &mode::Traits<F>::in_mode> constexpr Semantics exact(std::string_view name) {
  return arithmetic<F, InMode, mode::Rounds::no>(name);
}
// A minimum or maximum: the plain function is the one with MODE.IEEE.
template <auto F, auto InMode> constexpr Semantics extreme(std::string_view name) {
  Semantics s = lanes<F>(name);
  s.handler = &mode::handle<F, InMode, mode::Rounds::no, mode::ieee>;
  return s;
}
template <auto F, auto InMode = &mode::Traits<F>::in_mode> constexpr Semantics accumulating_arithmetic(std::string_view name) {
  Semantics s = arithmetic<F, InMode>(name);
  s.signature.accumulates = true;
  return s;
}
constexpr Semantics half_kept(Semantics s) {
  s.signature.keeps_half = true;
  return s;
}

} // namespace kiln::exec
