// Arithmetic modulo 2^32 with an unknown base that is the same in all lanes.
#include "isa_checks/lane_value.h"
#include <algorithm>
#include <bit>

namespace kiln::isa {
namespace {

using u32 = std::uint32_t;

u32 below(std::uint8_t bits) { return bits >= 32 ? ~u32{0} : (u32{1} << bits) - 1; }

std::uint8_t trailing_zeros(u32 x) { return static_cast<std::uint8_t>(std::countr_zero(x)); } // 32 for 0

// Moves what lane 0 has above the base's zero bits into the base, which makes equal values equal to compare.
LaneValue canonical(LaneValue v) {
  if (v.known()) return v;
  const u32 excess = v.lane[0] & ~below(v.zeros);
  if (excess != 0)
    for (u32& x : v.lane) x -= excess;
  return v;
}

// Of a canonical value: no lane reaches into the base's bits, so that base + lane is base | lane.
bool disjoint(const LaneValue& v) {
  const u32 most = below(v.zeros);
  return std::all_of(v.lane.begin(), v.lane.end(), [most](u32 x) { return x <= most; });
}

template <class F> LaneValue each(const LaneValue& a, const LaneValue& b, std::uint8_t zeros, F f) {
  LaneValue result;
  for (std::size_t i = 0; i < 64; ++i) result.lane[i] = f(a.lane[i], b.lane[i]);
  result.zeros = zeros;
  return canonical(result);
}

// Or and xor: below the unknown bases' zero bits lane by lane, above them uniform.
template <class F> Maybe combine_bits(const LaneValue& a, const LaneValue& b, F f) {
  if (a.known() && b.known()) return each(a, b, 32, f);
  if (a.uniform() && b.uniform()) {
    const std::uint8_t zeros = std::min({a.zeros, b.zeros, trailing_zeros(a.lane[0]), trailing_zeros(b.lane[0])});
    return uniform_value(zeros);
  }
  const std::uint8_t zeros = std::min(a.zeros, b.zeros);
  LaneValue x = a, y = b;
  x.zeros = y.zeros = zeros;
  x = canonical(x);
  y = canonical(y);
  if (!disjoint(x) || !disjoint(y)) return std::nullopt;
  return each(x, y, zeros, f);
}

} // namespace

bool LaneValue::uniform() const {
  return std::all_of(lane.begin(), lane.end(), [this](u32 x) { return x == lane[0]; });
}

std::optional<u32> LaneValue::constant() const { return known() && uniform() ? std::optional(lane[0]) : std::nullopt; }

std::optional<std::int32_t> LaneValue::step() const {
  const u32 first = lane[1] - lane[0];
  for (std::size_t i = 2; i < lane.size(); ++i)
    if (lane[i] - lane[i - 1] != first) return std::nullopt;
  return static_cast<std::int32_t>(first);
}

LaneValue constant_value(u32 number) {
  LaneValue v;
  v.lane.fill(number);
  return v;
}

LaneValue uniform_value(std::uint8_t zeros) {
  LaneValue v;
  v.zeros = zeros;
  return v;
}

Maybe add(const LaneValue& a, const LaneValue& b) {
  return each(a, b, std::min(a.zeros, b.zeros), [](u32 x, u32 y) { return x + y; });
}

Maybe subtract(const LaneValue& a, const LaneValue& b) {
  return each(a, b, std::min(a.zeros, b.zeros), [](u32 x, u32 y) { return x - y; });
}

Maybe multiply(const LaneValue& a, const LaneValue& b) {
  if (a.known() && b.known()) return each(a, b, 32, [](u32 x, u32 y) { return x * y; });
  const auto with_constant = [](const LaneValue& v, u32 c) {
    const int zeros = std::min(32, v.zeros + trailing_zeros(c));
    return each(v, v, static_cast<std::uint8_t>(zeros), [c](u32 x, u32) { return x * c; });
  };
  if (const auto c = b.constant()) return with_constant(a, *c);
  if (const auto c = a.constant()) return with_constant(b, *c);
  if (!a.uniform() || !b.uniform()) return std::nullopt;
  const auto zeros_of = [](const LaneValue& v) { return std::min(v.zeros, trailing_zeros(v.lane[0])); };
  return uniform_value(static_cast<std::uint8_t>(std::min(31, zeros_of(a) + zeros_of(b))));
}

Maybe shift_left(const LaneValue& a, const LaneValue& count) {
  if (const auto n = count.constant()) return multiply(a, constant_value(u32{1} << (*n & 31U)));
  if (a.known() && count.known()) return each(a, count, 32, [](u32 x, u32 n) { return x << (n & 31U); });
  return a.uniform() && count.uniform() ? Maybe(uniform_value(std::min(a.zeros, trailing_zeros(a.lane[0])))) : std::nullopt;
}

Maybe shift_right(const LaneValue& a, const LaneValue& count, bool arithmetic) {
  const auto shifted = [arithmetic](u32 x, u32 n) {
    n &= 31U;
    return arithmetic ? static_cast<u32>(static_cast<std::int32_t>(x) >> n) : x >> n;
  };
  if (a.known() && count.known()) return each(a, count, 32, shifted);
  if (a.uniform() && count.uniform()) return uniform_value();
  const auto n = count.constant();
  if (!n || !disjoint(a)) return std::nullopt;
  const u32 places = *n & 31U;
  if (places > a.zeros) return uniform_value();
  return each(a, count, static_cast<std::uint8_t>(a.zeros - places), [places](u32 x, u32) { return x >> places; });
}

Maybe bit_and(const LaneValue& a, const LaneValue& b) {
  if (a.known() && b.known()) return each(a, b, 32, [](u32 x, u32 y) { return x & y; });
  for (const auto& [v, mask] : {std::pair(&a, b.constant()), std::pair(&b, a.constant())}) {
    if (!mask) continue;
    if (*mask <= below(v->zeros)) // the base has no bit in it
      return each(*v, *v, 32, [m = *mask](u32 x, u32) { return x & m; });
    if (!v->uniform() && !disjoint(*v)) return std::nullopt;
    if (v->uniform()) return uniform_value(std::max(trailing_zeros(*mask), std::min(v->zeros, trailing_zeros(v->lane[0]))));
    return each(*v, *v, v->zeros, [m = *mask](u32 x, u32) { return x & m; });
  }
  return a.uniform() && b.uniform() ? Maybe(uniform_value()) : std::nullopt;
}

Maybe bit_or(const LaneValue& a, const LaneValue& b) {
  for (const LaneValue* v : {&a, &b}) // whatever the other is
    if (v->constant() == ~u32{0}) return *v;
  return combine_bits(a, b, [](u32 x, u32 y) { return x | y; });
}

Maybe bit_xor(const LaneValue& a, const LaneValue& b) {
  return combine_bits(a, b, [](u32 x, u32 y) { return x ^ y; });
}

Maybe join(const LaneValue& a, const LaneValue& b) {
  const u32 apart = a.lane[0] - b.lane[0];
  for (std::size_t i = 1; i < a.lane.size(); ++i)
    if (a.lane[i] - b.lane[i] != apart) return std::nullopt;
  LaneValue result = a;
  result.zeros = std::min({a.zeros, b.zeros, trailing_zeros(apart)});
  return canonical(result);
}

} // namespace kiln::isa
