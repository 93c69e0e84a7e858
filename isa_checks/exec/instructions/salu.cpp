// Scalar arithmetic, logic, comparisons and bit operations. SemanticsTable lines work as in lanes.h: a `bool& scc` parameter gives the
// function the condition code; a void result writes nothing else.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/wave.h"
#include "isa_checks/exec/numbers/float_ops.h"
#include <type_traits>
#include <utility>

namespace kiln::exec {
namespace {

template <class T> constexpr Type type_of = sizeof(T) == 8 ? Type::u64 : Type::u32;

template <class R> void write(Wave& wave, const Inst& inst, R value) {
  if constexpr (sizeof(R) == 8) wave.set_pair(inst.dst.reg, static_cast<u64>(value));
  else wave.s[inst.dst.reg] = static_cast<u32>(value);
}

template <auto F, class Function = decltype(+F)> struct ScalarFunction;
template <auto F, class R, class... A> struct ScalarFunction<F, R (*)(bool&, A...)> {
  template <std::size_t... I> static void run(Wave& wave, const Inst& inst, std::index_sequence<I...>) {
    bool scc = wave.scc;
    if constexpr (std::is_void_v<R>) {
      F(scc, static_cast<A>(read_scalar(wave, inst.src[I]))...);
    } else {
      const R result = F(scc, static_cast<A>(read_scalar(wave, inst.src[I]))...);
      write<R>(wave, inst, result);
    }
    wave.scc = scc;
  }
  static void handle(Wave& wave, const Inst& inst) { run(wave, inst, std::index_sequence_for<A...>{}); }
  static constexpr Signature signature() {
    Signature s;
    s.scalar_result = true;
    if constexpr (!std::is_void_v<R>) s.result = type_of<R>;
    ((s.source[s.source_count++] = type_of<A>), ...);
    return s;
  }
};

template <auto F> constexpr Semantics scalar(std::string_view name) {
  return {name, &ScalarFunction<F>::handle, ScalarFunction<F>::signature()};
}

// The last parameter is what the destination holds.
template <auto F> constexpr Semantics scalar_keeping(std::string_view name) {
  Semantics entry = scalar<F>(name);
  entry.signature.accumulates = true;
  return entry;
}

// The result sets SCC when it is not zero.
template <auto F, class Function = decltype(+F)> struct SetsScc;
template <auto F, class R, class... A> struct SetsScc<F, R (*)(A...)> {
  static R call(bool& scc, A... a) {
    const R r = F(a...);
    scc = r != 0;
    return r;
  }
};
template <auto F> constexpr Semantics sets_scc(std::string_view name) { return scalar<&SetsScc<F>::call>(name); }
template <auto F, class T> T logic(T a, T b) { return static_cast<T>(F(a, b)); }
constexpr auto op_and = [](auto a, auto b) { return a & b; };
constexpr auto op_or = [](auto a, auto b) { return a | b; };
constexpr auto op_xor = [](auto a, auto b) { return a ^ b; };
constexpr auto op_andn2 = [](auto a, auto b) { return a & ~b; };
constexpr auto op_orn2 = [](auto a, auto b) { return a | ~b; };
constexpr auto op_nand = [](auto a, auto b) { return ~(a & b); };
constexpr auto op_nor = [](auto a, auto b) { return ~(a | b); };
constexpr auto op_xnor = [](auto a, auto b) { return ~(a ^ b); };

// s_OP_saveexec: D = EXEC, EXEC = OP(source, EXEC).
template <auto F> void saveexec(Wave& wave, const Inst& inst) {
  const u64 old = wave.exec(), source = read_scalar(wave, inst.src[0]);
  const u64 now = F(source, old);
  wave.set_pair(inst.dst.reg, old);
  wave.set_pair(code::exec, now);
  wave.scc = now != 0;
}
// s_OP_wrexec: EXEC = D = OP(source, EXEC).
template <auto F> void wrexec(Wave& wave, const Inst& inst) {
  const u64 now = F(read_scalar(wave, inst.src[0]), wave.exec());
  wave.set_pair(code::exec, now);
  wave.set_pair(inst.dst.reg, now);
  wave.scc = now != 0;
}
constexpr auto reversed_andn2 = [](u64 s, u64 e) { return ~s & e; };
constexpr auto reversed_orn2 = [](u64 s, u64 e) { return ~s | e; };
u32 add(bool& scc, u32 a, u32 b) {
  const u64 sum = u64{a} + b;
  scc = sum >> 32 != 0;
  return static_cast<u32>(sum);
}
u32 add_signed(bool& scc, u32 a, u32 b) {
  const u32 r = a + b;
  scc = ((a ^ r) & (b ^ r)) >> 31 != 0;
  return r;
}
u32 sub_signed(bool& scc, u32 a, u32 b) {
  const u32 r = a - b;
  scc = ((a ^ b) & (a ^ r)) >> 31 != 0;
  return r;
}
i32 absolute(i32 x) { return x < 0 ? static_cast<i32>(0U - static_cast<u32>(x)) : x; }
template <class T> T bit_field(T x, u32 control) {
  constexpr u32 bits = sizeof(T) * 8;
  const u32 offset = control & (bits - 1), width = std::min(control >> 16 & 0x7fU, bits);
  if (width == 0) return 0;
  const auto shifted = static_cast<std::make_unsigned_t<T>>(x >> offset) << (bits - width); // a signed field may reach beyond the sign
  return static_cast<T>(static_cast<T>(shifted) >> (bits - width));
}
// SCC says whether the first was taken.
template <auto better, class T> T first_if(bool& scc, T a, T b) {
  scc = better(a, b);
  return scc ? a : b;
}
template <int n> u32 shift_add(bool& scc, u32 a, u32 b) {
  const u64 r = (u64{a} << n) + b;
  scc = ((r >> 32) != 0);
  return static_cast<u32>(r);
}
// A run of n ones: the whole-quad mask.
u64 whole_quads(u64 x) {
  u64 r = 0;
  for (int i = 0; i < 64; i += 4)
    if ((x >> i & 0xfU) != 0) r |= 0xfULL << i;
  return r;
}
u64 doubled_bits(u32 x) {
  u64 r = 0;
  for (int i = 0; i < 32; ++i)
    if ((x >> i & 1U) != 0) r |= 3ULL << (2 * i);
  return r;
}
// A bit for each group of four that is not all zero.
template <class T> T quads(T x) {
  T r = 0;
  for (unsigned i = 0; i < sizeof(T) * 2; ++i)
    if ((x >> (4 * i) & 0xfU) != 0) r |= T{1} << i;
  return r;
}
template <class T> T reverse(T x) {
  T r = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; ++i) r = static_cast<T>(r << 1 | (x >> i & 1U));
  return r;
}
template <class T> i32 sign_run(T x) {
  const T y = x < 0 ? static_cast<T>(~x) : x;
  return y == 0 ? -1 : std::countl_zero(static_cast<std::make_unsigned_t<T>>(y));
}

constexpr Semantics arithmetic[] = {
    scalar<add>("s_add_u32"),
    scalar<[](bool& scc, u32 a, u32 b) -> u32 {
      scc = (b > a);
      return a - b;
    }>("s_sub_u32"),
    scalar<add_signed>("s_add_i32"),
    scalar<sub_signed>("s_sub_i32"),
    scalar<[](bool& scc, u32 a, u32 b) -> u32 {
      const u64 r = u64{a} + b + (scc ? 1U : 0U);
      scc = ((r >> 32) != 0);
      return static_cast<u32>(r);
    }>("s_addc_u32"),
    scalar<[](bool& scc, u32 a, u32 b) -> u32 {
      const u32 c = scc ? 1 : 0;
      scc = (u64{b} + c > a);
      return a - b - c;
    }>("s_subb_u32"),
    scalar<first_if<[](i32 a, i32 b) { return a < b; }, i32>>("s_min_i32"),
    scalar<first_if<[](u32 a, u32 b) { return a < b; }, u32>>("s_min_u32"),
    scalar<first_if<[](i32 a, i32 b) { return a > b; }, i32>>("s_max_i32"),
    scalar<first_if<[](u32 a, u32 b) { return a > b; }, u32>>("s_max_u32"),
    scalar<[](bool&, u32 a, u32 b) -> u32 { return a * b; }>("s_mul_i32"),
    scalar<[](bool&, u32 a, u32 b) -> u32 { return static_cast<u32>((u64{a} * b >> 32)); }>("s_mul_hi_u32"),
    scalar<[](bool&, i32 a, i32 b) -> i32 { return static_cast<i32>((i64{a} * b >> 32)); }>("s_mul_hi_i32"),
    sets_scc<[](i32 a, i32 b) -> u32 {
      return (a > b) ? static_cast<u32>(a) - static_cast<u32>(b) : static_cast<u32>(b) - static_cast<u32>(a);
    }>("s_absdiff_i32"),
    sets_scc<absolute>("s_abs_i32"),
    scalar<[](bool& scc, u32 a, u32 b) -> u32 { return scc ? a : b; }>("s_cselect_b32"),
    scalar<[](bool& scc, u64 a, u64 b) -> u64 { return scc ? a : b; }>("s_cselect_b64"),
    scalar<[](bool&, u32 a) -> u32 { return a; }>("s_mov_b32"),
    scalar<[](bool&, u64 a) -> u64 { return a; }>("s_mov_b64"),
    scalar<[](bool&, u32, u32 k) -> u32 { return k; }>("s_movk_i32"),
    scalar<[](bool& scc, u32 d, u32 k) -> u32 { return scc ? k : d; }>("s_cmovk_i32"),
    scalar_keeping<[](bool& scc, u32 a, u32 d) -> u32 { return scc ? a : d; }>("s_cmov_b32"),
    scalar_keeping<[](bool& scc, u64 a, u64 d) -> u64 { return scc ? a : d; }>("s_cmov_b64"),
    scalar<add_signed>("s_addk_i32"),
    scalar<[](bool&, u32 d, u32 k) -> u32 { return d * k; }>("s_mulk_i32"),
    scalar<[](bool&, u32 a, u32 b) -> u32 { return (a & 0xffffU) | b << 16; }>("s_pack_ll_b32_b16"),
    scalar<[](bool&, u32 a, u32 b) -> u32 { return (a & 0xffffU) | (b & 0xffff0000U); }>("s_pack_lh_b32_b16"),
    scalar<[](bool&, u32 a, u32 b) -> u32 { return (a >> 16) | (b & 0xffff0000U); }>("s_pack_hh_b32_b16"),
    scalar<shift_add<1>>("s_lshl1_add_u32"),
    scalar<shift_add<2>>("s_lshl2_add_u32"),
    scalar<shift_add<3>>("s_lshl3_add_u32"),
    scalar<shift_add<4>>("s_lshl4_add_u32"),
};

// A function of two bits, of words, of pairs, and with EXEC.
#define KILN_LOGIC(name, f)                                                                                                                \
  sets_scc<logic<f, u32>>("s_" name "_b32"), sets_scc<logic<f, u64>>("s_" name "_b64"),                                                    \
      entry("s_" name "_saveexec_b64", saveexec<f>, Type::u64, {Type::u64})

constexpr Semantics bits[] = {
    KILN_LOGIC("and", op_and),
    KILN_LOGIC("or", op_or),
    KILN_LOGIC("xor", op_xor),
    KILN_LOGIC("andn2", op_andn2),
    KILN_LOGIC("orn2", op_orn2),
    KILN_LOGIC("nand", op_nand),
    KILN_LOGIC("nor", op_nor),
    KILN_LOGIC("xnor", op_xnor),
    sets_scc<[](u32 a) -> u32 { return ~a; }>("s_not_b32"),
    sets_scc<[](u64 a) -> u64 { return ~a; }>("s_not_b64"),
    sets_scc<[](u64 a) -> u64 { return whole_quads(a); }>("s_wqm_b64"),
    sets_scc<[](u32 a) -> u32 { return static_cast<u32>(whole_quads(a)); }>("s_wqm_b32"),
    sets_scc<[](u32 a) -> u32 { return quads(a); }>("s_quadmask_b32"),
    sets_scc<[](u64 a) -> u64 { return quads(a); }>("s_quadmask_b64"),
    scalar<[](bool&, u32 a) -> u64 { return doubled_bits(a); }>("s_bitreplicate_b64_b32"),
    sets_scc<[](u32 a, u32 n) -> u32 { return a << (n & 31U); }>("s_lshl_b32"),
    sets_scc<[](u64 a, u32 n) -> u64 { return a << (n & 63U); }>("s_lshl_b64"),
    sets_scc<[](u32 a, u32 n) -> u32 { return a >> (n & 31U); }>("s_lshr_b32"),
    sets_scc<[](u64 a, u32 n) -> u64 { return a >> (n & 63U); }>("s_lshr_b64"),
    sets_scc<[](i32 a, u32 n) -> i32 { return a >> (n & 31U); }>("s_ashr_i32"),
    sets_scc<[](i64 a, u32 n) -> i64 { return a >> (n & 63U); }>("s_ashr_i64"),
    sets_scc<bit_field<u32>>("s_bfe_u32"),
    sets_scc<bit_field<i32>>("s_bfe_i32"),
    sets_scc<bit_field<u64>>("s_bfe_u64"),
    sets_scc<bit_field<i64>>("s_bfe_i64"),
    scalar<[](bool&, u32 width, u32 offset) -> u32 { return ((1U << (width & 31U)) - 1) << (offset & 31U); }>("s_bfm_b32"),
    scalar<[](bool&, u32 width, u32 offset) -> u64 { return ((1ULL << (width & 63U)) - 1) << (offset & 63U); }>("s_bfm_b64"),
    scalar_keeping<[](bool&, u32 n, u32 d) -> u32 { return d & ~(1U << (n & 31U)); }>("s_bitset0_b32"),
    scalar_keeping<[](bool&, u32 n, u32 d) -> u32 { return d | 1U << (n & 31U); }>("s_bitset1_b32"),
    scalar_keeping<[](bool&, u32 n, u64 d) -> u64 { return d & ~(1ULL << (n & 63U)); }>("s_bitset0_b64"),
    scalar_keeping<[](bool&, u32 n, u64 d) -> u64 { return d | 1ULL << (n & 63U); }>("s_bitset1_b64"),
    scalar<[](bool&, u32 a) -> u32 { return reverse(a); }>("s_brev_b32"),
    scalar<[](bool&, u64 a) -> u64 { return reverse(a); }>("s_brev_b64"),
    sets_scc<[](u32 a) -> u32 { return static_cast<u32>(std::popcount(a)); }>("s_bcnt1_i32_b32"),
    sets_scc<[](u64 a) -> u32 { return static_cast<u32>(std::popcount(a)); }>("s_bcnt1_i32_b64"),
    sets_scc<[](u32 a) -> u32 { return static_cast<u32>(std::popcount(~a)); }>("s_bcnt0_i32_b32"),
    sets_scc<[](u64 a) -> u32 { return static_cast<u32>(std::popcount(~a)); }>("s_bcnt0_i32_b64"),
    scalar<[](bool&, u32 a) -> i32 { return a == 0 ? -1 : std::countr_zero(a); }>("s_ff1_i32_b32"),
    scalar<[](bool&, u64 a) -> i32 { return a == 0 ? -1 : std::countr_zero(a); }>("s_ff1_i32_b64"),
    scalar<[](bool&, u32 a) -> i32 { return ~a == 0 ? -1 : std::countr_one(a); }>("s_ff0_i32_b32"),
    scalar<[](bool&, u64 a) -> i32 { return ~a == 0 ? -1 : std::countr_one(a); }>("s_ff0_i32_b64"),
    scalar<[](bool&, u32 a) -> i32 { return a == 0 ? -1 : std::countl_zero(a); }>("s_flbit_i32_b32"),
    scalar<[](bool&, u64 a) -> i32 { return a == 0 ? -1 : std::countl_zero(a); }>("s_flbit_i32_b64"),
    scalar<[](bool&, i32 a) -> i32 { return sign_run(a); }>("s_flbit_i32"),
    scalar<[](bool&, i64 a) -> i32 { return sign_run(a); }>("s_flbit_i32_i64"),
    scalar<[](bool&, u32 a) -> i32 { return static_cast<std::int8_t>(a); }>("s_sext_i32_i8"),
    scalar<[](bool&, u32 a) -> i32 { return static_cast<std::int16_t>(a); }>("s_sext_i32_i16"),
    entry("s_andn1_saveexec_b64", saveexec<reversed_andn2>, Type::u64, {Type::u64}),
    entry("s_orn1_saveexec_b64", saveexec<reversed_orn2>, Type::u64, {Type::u64}),
    entry("s_andn1_wrexec_b64", wrexec<reversed_andn2>, Type::u64, {Type::u64}),
    entry("s_andn2_wrexec_b64", wrexec<op_andn2>, Type::u64, {Type::u64}),
};

#define KILN_SCALAR_COMPARE(name, T, condition)                                                                                            \
  scalar<[](bool& scc, T a, T b) -> void { scc = (condition); }>("s_cmp_" name),                                                           \
      scalar<[](bool& scc, T a, T b) -> void { scc = (condition); }>("s_cmpk_" name)

constexpr Semantics compares[] = {
    KILN_SCALAR_COMPARE("eq_i32", i32, a == b),
    KILN_SCALAR_COMPARE("lg_i32", i32, a != b),
    KILN_SCALAR_COMPARE("gt_i32", i32, a > b),
    KILN_SCALAR_COMPARE("ge_i32", i32, a >= b),
    KILN_SCALAR_COMPARE("lt_i32", i32, a < b),
    KILN_SCALAR_COMPARE("le_i32", i32, a <= b),
    KILN_SCALAR_COMPARE("eq_u32", u32, a == b),
    KILN_SCALAR_COMPARE("lg_u32", u32, a != b),
    KILN_SCALAR_COMPARE("gt_u32", u32, a > b),
    KILN_SCALAR_COMPARE("ge_u32", u32, a >= b),
    KILN_SCALAR_COMPARE("lt_u32", u32, a < b),
    KILN_SCALAR_COMPARE("le_u32", u32, a <= b),
    scalar<[](bool& scc, u64 a, u64 b) -> void { scc = a == b; }>("s_cmp_eq_u64"),
    scalar<[](bool& scc, u64 a, u64 b) -> void { scc = a != b; }>("s_cmp_lg_u64"),
    scalar<[](bool& scc, u32 a, u32 n) -> void { scc = (a >> (n & 31U) & 1U) == 0; }>("s_bitcmp0_b32"),
    scalar<[](bool& scc, u32 a, u32 n) -> void { scc = (a >> (n & 31U) & 1U) != 0; }>("s_bitcmp1_b32"),
    scalar<[](bool& scc, u64 a, u32 n) -> void { scc = (a >> (n & 63U) & 1U) == 0; }>("s_bitcmp0_b64"),
    scalar<[](bool& scc, u64 a, u32 n) -> void { scc = (a >> (n & 63U) & 1U) != 0; }>("s_bitcmp1_b64"),
};

} // namespace

SemanticsTable scalar_arithmetic_table() { return arithmetic; }
SemanticsTable scalar_bits_table() { return bits; }
SemanticsTable scalar_compare_table() { return compares; }

} // namespace kiln::exec
