// Conversions between number types, and comparisons of every type, against formulas.
#include "tests/exec/exact_float.h"
#include "tests/exec/instruction_cases.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace convert_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

double d(In v, int k) { return static_cast<double>(float_in(v, k)); }
double hv(In v, int k) { return half_value(v[k] & 0xffffU); }
u64 single(double x) { return as_bits(static_cast<float>(x)); }
u64 half(double x) { return round_half(x, nearest, false); }
// Toward zero, kept within [low, high]; NaN is 0.
u64 whole(double x, double low, double high) {
  return std::isnan(x) ? 0 : static_cast<u32>(static_cast<i64>(std::trunc(x < low ? low : x > high ? high : x)));
}
constexpr double max_i32 = 2147483647.0, min_i32 = -2147483648.0, max_u32 = 4294967295.0;
u64 normalized(double x, double low, double scale) { // [-1, 1] or [0, 1] to an integer, ties to even; the product is rounded to f32 first
  const double limited = std::isnan(x) ? 0 : x < low ? low : x > 1 ? 1 : x;
  return static_cast<u32>(static_cast<i64>(std::rint(static_cast<double>(static_cast<float>(limited * scale))))) & 0xffffU;
}
u64 bfloat(u32 x) { // to nearest even by hand
  if (x % (1U << 31) > 0x7f800000U) return x >> 16 | 0x40U;
  const u32 rest = x % 65536, kept = x / 65536;
  return kept + (rest > 32768 || (rest == 32768 && kept % 2 == 1) ? 1 : 0);
}
u64 toward_zero(double x) { return round_half(x, zero, false); }
u64 byte_of(double x) { return std::isnan(x) || x < 0 ? 0 : x > 255 ? 255 : static_cast<u64>(std::rint(x)); }

constexpr VectorCase conversions[] = {
    {"v_cvt_i32_f32 @, v1", [](In v) -> u64 { return whole(d(v, 1), min_i32, max_i32); }},
    {"v_cvt_u32_f32 @, v1", [](In v) -> u64 { return whole(d(v, 1), 0, max_u32); }},
    {"v_cvt_rpi_i32_f32 @, v1",
     [](In v) -> u64 { return whole(std::floor(static_cast<double>(static_cast<float>(d(v, 1) + 0.5))), min_i32, max_i32); }},
    {"v_cvt_flr_i32_f32 @, v1", [](In v) -> u64 { return whole(std::floor(d(v, 1)), min_i32, max_i32); }},
    {"v_cvt_f32_i32 @, v1", [](In v) -> u64 { return single(static_cast<std::int32_t>(v[1])); }},
    {"v_cvt_f32_u32 @, v1", [](In v) -> u64 { return single(v[1]); }},
    {"v_cvt_f32_ubyte0 @, v1", [](In v) -> u64 { return single(v[1] % 256); }},
    {"v_cvt_f32_ubyte1 @, v1", [](In v) -> u64 { return single(v[1] / 256 % 256); }},
    {"v_cvt_f32_ubyte2 @, v1", [](In v) -> u64 { return single(v[1] / 65536 % 256); }},
    {"v_cvt_f32_ubyte3 @, v1", [](In v) -> u64 { return single(v[1] / 16777216); }},
    {"v_cvt_off_f32_i4 @, v1", [](In v) -> u64 { return single((static_cast<double>(v[1] % 16) - (v[1] % 16 > 7 ? 16 : 0)) / 16); }},
    {"v_cvt_i32_f64 @, v[2:3]", [](In v) -> u64 { return whole(double_in(v, 2), min_i32, max_i32); }},
    {"v_cvt_u32_f64 @, v[2:3]", [](In v) -> u64 { return whole(double_in(v, 2), 0, max_u32); }},
    {"v_cvt_f64_i32 @@, v1", [](In v) -> u64 { return as_bits(static_cast<double>(static_cast<std::int32_t>(v[1]))); }, Compare::f64},
    {"v_cvt_f64_u32 @@, v1", [](In v) -> u64 { return as_bits(static_cast<double>(v[1])); }, Compare::f64},
    {"v_cvt_f32_f64 @, v[2:3]", [](In v) -> u64 { return single(double_in(v, 2)); }, Compare::f32},
    {"v_cvt_f64_f32 @@, v1", [](In v) -> u64 { return as_bits(d(v, 1)); }, Compare::f64},
    {"v_cvt_f16_f32 @, v1", [](In v) -> u64 { return half(d(v, 1)); }, Compare::f16},
    {"v_cvt_f32_f16 @, v1", [](In v) -> u64 { return single(hv(v, 1)); }, Compare::f32},
    {"v_cvt_f16_u16 @, v1", [](In v) -> u64 { return half(v[1] % 65536); }, Compare::f16},
    {"v_cvt_f16_i16 @, v1", [](In v) -> u64 { return half(static_cast<std::int16_t>(v[1])); }, Compare::f16},
    {"v_cvt_u16_f16 @, v1", [](In v) -> u64 { return whole(hv(v, 1), 0, 65535); }},
    {"v_cvt_i16_f16 @, v1", [](In v) -> u64 { return whole(hv(v, 1), -32768, 32767) & 0xffffU; }},
    {"v_cvt_norm_i16_f16 @, v1", [](In v) -> u64 { return normalized(hv(v, 1), -1, 32767); }},
    {"v_cvt_norm_u16_f16 @, v1", [](In v) -> u64 { return normalized(hv(v, 1), 0, 65535); }},
    {"v_cvt_pkrtz_f16_f32 @, v1, v2", [](In v) -> u64 { return toward_zero(d(v, 1)) | toward_zero(d(v, 2)) << 16; }, Compare::two_f16},
    {"v_cvt_pknorm_i16_f32 @, v1, v2", [](In v) -> u64 { return normalized(d(v, 1), -1, 32767) | normalized(d(v, 2), -1, 32767) << 16; }},
    {"v_cvt_pknorm_u16_f32 @, v1, v2", [](In v) -> u64 { return normalized(d(v, 1), 0, 65535) | normalized(d(v, 2), 0, 65535) << 16; }},
    {"v_cvt_pknorm_i16_f16 @, v1, v2", [](In v) -> u64 { return normalized(hv(v, 1), -1, 32767) | normalized(hv(v, 2), -1, 32767) << 16; }},
    {"v_cvt_pknorm_u16_f16 @, v1, v2", [](In v) -> u64 { return normalized(hv(v, 1), 0, 65535) | normalized(hv(v, 2), 0, 65535) << 16; }},
    {"v_cvt_pk_u8_f32 @, v1, v2, v3",
     [](In v) -> u64 {
       const u32 at = v[2] % 4 * 8;
       return (v[3] & ~(0xffU << at)) | byte_of(d(v, 1)) << at;
     }},
    {"v_cvt_pkaccum_u8_f32 @, v1, v2",
     [](In v) -> u64 {
       const u32 at = v[2] % 4 * 8;
       return (v[6] & ~(0xffU << at)) | byte_of(d(v, 1)) << at;
     }},
};
constexpr VectorCase newer_conversions[] = {
    // gfx950 only
    {"v_cvt_f32_bf16 @, v1", [](In v) -> u64 { return v[1] % 65536 * 65536; }, Compare::f32},
    {"v_cvt_pk_f16_f32 @, v1, v2", [](In v) -> u64 { return half(d(v, 1)) | half(d(v, 2)) << 16; }, Compare::two_f16},
    {"v_cvt_pk_bf16_f32 @, v1, v2", [](In v) -> u64 { return bfloat(v[1]) | bfloat(v[2]) << 16; }},
};

// Comparisons: the operands as numbers, by type.
template <class T> T number(In v, int operand) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<T>(pair_in(v, 2 * operand));
  else if constexpr (sizeof(T) == 4) return std::bit_cast<T>(v[2 * operand]);
  else return static_cast<T>(v[2 * operand]);
}
struct HalfTag {};
template <class T, int relation> u64 integer_relation(In v) { // 0 false, 1 less, 2 equal, 4 greater; the sum of those that hold
  const T a = number<T>(v, 1), b = number<T>(v, 2);
  return (relation & (a < b ? 1 : a == b ? 2 : 4)) != 0 ? 1 : 0;
}
template <class T, int relation> u64 float_relation(In v) { // also 8: unordered
  double a = 0, b = 0;
  if constexpr (std::is_same_v<T, HalfTag>) a = half_value(v[2] & 0xffffU), b = half_value(v[4] & 0xffffU);
  else a = static_cast<double>(number<T>(v, 1)), b = static_cast<double>(number<T>(v, 2));
  const int held = std::isnan(a) || std::isnan(b) ? 8 : a < b ? 1 : a > b ? 4 : 2;
  return (relation & held) != 0 ? 1 : 0;
}
struct Relation {
  const char* name;
  u64 (*expected)(In v);
};
template <class T> const std::vector<Relation>& integer_relations() {
  static const std::vector<Relation> all = {{"f", integer_relation<T, 0>},  {"lt", integer_relation<T, 1>}, {"eq", integer_relation<T, 2>},
                                            {"le", integer_relation<T, 3>}, {"gt", integer_relation<T, 4>}, {"ne", integer_relation<T, 5>},
                                            {"ge", integer_relation<T, 6>}, {"t", integer_relation<T, 7>}};
  return all;
}
template <class T> const std::vector<Relation>& float_relations() {
  static const std::vector<Relation> all = {
      {"f", float_relation<T, 0>},    {"lt", float_relation<T, 1>},   {"eq", float_relation<T, 2>},   {"le", float_relation<T, 3>},
      {"gt", float_relation<T, 4>},   {"lg", float_relation<T, 5>},   {"ge", float_relation<T, 6>},   {"o", float_relation<T, 7>},
      {"u", float_relation<T, 8>},    {"nge", float_relation<T, 9>},  {"nlg", float_relation<T, 10>}, {"ngt", float_relation<T, 11>},
      {"nle", float_relation<T, 12>}, {"neq", float_relation<T, 13>}, {"nlt", float_relation<T, 14>}, {"tru", float_relation<T, 15>}};
  return all;
}
// Under both names: into VCC, and into EXEC, which then lets a move through.
int check_relations(const std::vector<Relation>& relations, const char* type, const std::vector<Pairs>& sets) {
  const bool wide = std::string_view(type).ends_with("64");
  const std::string operands = wide ? "v[2:3], v[4:5]" : "v2, v4";
  std::vector<std::string> texts;
  std::vector<VectorCase> cases;
  texts.reserve(2 * relations.size());
  for (const Relation& r : relations) {
    texts.push_back(fmt::format("v_cmp_{}_{} vcc, {}\n s_nop 4\n v_cndmask_b32 @, 0, 1, vcc", r.name, type, operands));
    cases.push_back({texts.back().c_str(), r.expected});
    texts.push_back(fmt::format("v_mov_b32 @, 0\n v_cmpx_{}_{} vcc, {}\n s_nop 4\n v_mov_b32 @, 1\n s_mov_b64 exec, -1\n s_nop 4", r.name,
                                type, operands));
    cases.push_back({texts.back().c_str(), r.expected});
  }
  return check_vector(cases, sets);
}

constexpr VectorCase classes[] = {
    {"v_cmp_class_f32 vcc, v1, v2\n s_nop 4\n v_cndmask_b32 @, 0, 1, vcc",
     [](In v) -> u64 {
       const float x = float_in(v, 1);
       const bool negative = std::signbit(x), quiet = (v[1] >> 22) % 2 == 1;
       const u32 kind = std::isnan(x)      ? (quiet ? 1 : 0)
                        : std::isinf(x)    ? (negative ? 2 : 9)
                        : x == 0           ? (negative ? 5 : 6)
                        : std::isnormal(x) ? (negative ? 3 : 8)
                        : negative         ? 4
                                           : 7;
       return v[2] >> kind & 1;
     }},
    {"v_mov_b32 @, 0\n v_cmpx_class_f32 vcc, v1, v2\n s_nop 4\n v_mov_b32 @, 1\n s_mov_b64 exec, -1\n s_nop 4",
     [](In v) -> u64 {
       const float x = float_in(v, 1);
       return std::isinf(x)   ? (x < 0 ? v[2] >> 2 : v[2] >> 9) & 1
              : std::isnan(x) ? v[2] >> ((v[1] >> 22) % 2) & 1
              : x == 0        ? v[2] >> (std::signbit(x) ? 5 : 6) & 1
                              : v[2] >> ((std::isnormal(x) ? 3 : 4) + (x > 0 ? (std::isnormal(x) ? 5 : 3) : 0)) & 1;
     }},
    {"v_cmp_class_f16 vcc, v1, v2\n s_nop 4\n v_cndmask_b32 @, 0, 1, vcc",
     [](In v) -> u64 {
       const u32 m = v[1] % 32768, negative = v[1] / 32768 % 2;
       const u32 kind = m > 0x7c00      ? (m % 1024 >= 512 ? 1 : 0)
                        : m == 0x7c00   ? (negative != 0 ? 2 : 9)
                        : m == 0        ? (negative != 0 ? 5 : 6)
                        : m >= 1024     ? (negative != 0 ? 3 : 8)
                        : negative != 0 ? 4
                                        : 7;
       return v[2] >> kind & 1;
     }},
};

std::vector<Pairs> mixed_sets(u64 seed) {
  std::vector<Pairs> sets = pairs_of(interesting_floats(), 4, seed);
  for (const auto* values : {&interesting_halves(), &interesting_integers()})
    for (Pairs& p : pairs_of(*values, 2, seed + 1)) sets.push_back(p);
  return sets;
}

} // namespace

TEST_CASE("conversions over edge values of every type") {
  const auto sets = mixed_sets(31);
  MESSAGE(fmt::format("{} cases of conversions", check_vector(conversions, sets) + check_vector(conversions, sets, "gfx950") +
                                                     check_vector(newer_conversions, sets, "gfx950")));
}

TEST_CASE("comparisons of every type, into VCC and into EXEC") {
  const auto integers = pairs_of(interesting_integers(), 2, 32), singles = pairs_of(interesting_floats(), 2, 33),
             halves16 = pairs_of(interesting_halves(), 2, 34);
  int cases = check_vector(classes, singles) + check_vector(classes, halves16) + check_vector(classes, integers);
  cases += check_relations(integer_relations<std::int16_t>(), "i16", integers) +
           check_relations(integer_relations<std::uint16_t>(), "u16", integers);
  cases += check_relations(integer_relations<std::int32_t>(), "i32", integers) + check_relations(integer_relations<u32>(), "u32", integers);
  cases += check_relations(integer_relations<i64>(), "i64", integers) + check_relations(integer_relations<u64>(), "u64", integers);
  cases += check_relations(float_relations<HalfTag>(), "f16", halves16) + check_relations(float_relations<float>(), "f32", singles) +
           check_relations(float_relations<double>(), "f64", singles);
  MESSAGE(fmt::format("{} cases of comparisons", cases));
}

} // namespace convert_test
