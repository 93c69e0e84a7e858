// Arithmetic modulo 2^32 with an unknown base that is the same in all lanes.
#include "isa_checks/analysis/lanes/lane_value.h"
#include <algorithm>

namespace kiln::isa {
namespace {

using u32 = std::uint32_t;

u32 from_bit(int bit) { return bit >= 32 ? 0 : ~u32{0} << bit; }

// Bits that the sum of two bases may have: without a common bit nothing is carried.
u32 sum_mask(u32 a, u32 b) { return (a & b) == 0 ? a | b : from_bit(std::countr_zero(a | b)); }

template <class F> LaneValue each(const LaneValue& a, const LaneValue& b, u32 mask, F f) {
  LaneValue result;
  for (std::size_t i = 0; i < result.lane.size(); ++i) result.lane[i] = f(a.lane[i], b.lane[i]);
  result.mask = mask;
  return result;
}

bool disjoint(const LaneValue& v) {
  return std::all_of(v.lane.begin(), v.lane.end(), [&](u32 x) { return (x & v.mask) == 0; });
}

// The same value with lanes that have no bit where the base may have one, so that base + lane is base | lane: what all lanes
// have in common moves into the base. Nothing when that does not suffice.
Maybe apart(const LaneValue& v) {
  if (disjoint(v)) return v;
  u32 common = ~u32{0};
  for (const u32 x : v.lane) common &= x;
  common &= from_bit(v.zeros());
  LaneValue moved = v;
  for (u32& x : moved.lane) x -= common;
  moved.mask = sum_mask(v.mask, common);
  return disjoint(moved) ? Maybe(moved) : std::nullopt;
}

// Or and xor of two values that are apart.
template <class F> Maybe combine_bits(const LaneValue& a, const LaneValue& b, F f) {
  if (a.known() && b.known()) return each(a, b, 0, f);
  if (a.uniform() && b.uniform()) return uniform_value(a.mask | b.mask | a.lane[0] | b.lane[0]);
  Maybe x = apart(a), y = apart(b);
  if (!x || !y) return std::nullopt;
  const u32 mask = x->mask | y->mask;
  x->mask = y->mask = mask; // a known value may have uniform bits where the other's base has some
  x = apart(*x);
  y = apart(*y);
  if (!x || !y || (x->mask | y->mask) != mask) return std::nullopt;
  return each(*x, *y, mask, f);
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

LaneValue uniform_value(u32 mask) {
  LaneValue v;
  v.mask = mask;
  return v;
}

Maybe add(const LaneValue& a, const LaneValue& b) {
  return each(a, b, sum_mask(a.mask, b.mask), [](u32 x, u32 y) { return x + y; });
}

Maybe subtract(const LaneValue& a, const LaneValue& b) {
  const u32 mask = b.mask == 0 ? a.mask : from_bit(std::countr_zero(a.mask | b.mask));
  return each(a, b, mask, [](u32 x, u32 y) { return x - y; });
}

Maybe multiply(const LaneValue& a, const LaneValue& b) {
  if (a.known() && b.known()) return each(a, b, 0, [](u32 x, u32 y) { return x * y; });
  const auto with_constant = [](const LaneValue& v, u32 c) {
    const u32 mask = std::has_single_bit(c) ? v.mask << std::countr_zero(c) : from_bit(v.zeros() + std::countr_zero(c));
    return each(v, v, c == 0 ? 0 : mask, [c](u32 x, u32) { return x * c; });
  };
  if (const auto c = b.constant()) return with_constant(a, *c);
  if (const auto c = a.constant()) return with_constant(b, *c);
  if (!a.uniform() || !b.uniform()) return std::nullopt;
  const auto zeros = [](const LaneValue& v) { return std::countr_zero(v.mask | v.lane[0]); };
  return uniform_value(from_bit(zeros(a) + zeros(b)));
}

Maybe shift_left(const LaneValue& a, const LaneValue& count) {
  if (const auto n = count.constant()) return multiply(a, constant_value(u32{1} << (*n & 31U)));
  if (a.known() && count.known()) return each(a, count, 0, [](u32 x, u32 n) { return x << (n & 31U); });
  return a.uniform() && count.uniform() ? Maybe(uniform_value(from_bit(std::countr_zero(a.mask | a.lane[0])))) : std::nullopt;
}

Maybe shift_right(const LaneValue& a, const LaneValue& count, bool arithmetic) {
  const auto shifted = [arithmetic](u32 x, u32 n) {
    n &= 31U;
    return arithmetic ? static_cast<u32>(static_cast<std::int32_t>(x) >> n) : x >> n;
  };
  if (a.known() && count.known()) return each(a, count, 0, shifted);
  const auto n = count.constant();
  if (!n) return a.uniform() && count.uniform() ? Maybe(uniform_value()) : std::nullopt;
  const Maybe x = apart(a);
  if (!x) return a.uniform() ? Maybe(uniform_value()) : std::nullopt;
  return each(*x, count, shifted(x->mask, *n), shifted); // the sign bit is in the mask or in the lanes
}

Maybe bit_and(const LaneValue& a, const LaneValue& b) {
  if (a.known() && b.known()) return each(a, b, 0, [](u32 x, u32 y) { return x & y; });
  for (const auto& [v, with] : {std::pair(&a, b.constant()), std::pair(&b, a.constant())}) {
    if (!with) continue;
    const u32 m = *with;
    const auto keep = [m](u32 x, u32) { return x & m; };
    if (m <= ~from_bit(v->zeros())) return each(*v, *v, 0, keep); // below all of the base
    if (const Maybe x = apart(*v)) return each(*x, *x, x->mask & m, keep);
    return v->uniform() ? Maybe(uniform_value(m)) : std::nullopt;
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
  const u32 difference = a.lane[0] - b.lane[0];
  for (std::size_t i = 1; i < a.lane.size(); ++i)
    if (a.lane[i] - b.lane[i] != difference) return std::nullopt;
  LaneValue result = a;
  result.mask = difference == 0 ? a.mask | b.mask : from_bit(std::countr_zero(a.mask | b.mask | difference));
  return result;
}

} // namespace kiln::isa
