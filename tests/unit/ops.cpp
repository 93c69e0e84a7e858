// Every operation of ops.def: its references at edge operands, its C++ function, its entry in the registry.
#include "gen/reference/range.h"
#include "gen/spec/math.h"
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <span>
#include <vector>

using namespace kiln;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity(), nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float largest = std::numeric_limits<float>::max(), denormal = 0x1p-149f;

struct Case {
  Op op;
  float a, b, c, expected;
};

const std::vector<Case> cases = {
    {Op::add, 1, 0x1p-24f, 0, 1},
    {Op::add, 1, 0x1.8p-24f, 0, 1 + 0x1p-23f},
    {Op::add, inf, -inf, 0, nan_value},
    {Op::add, largest, largest, 0, inf},
    {Op::sub, 1, 3, 0, -2},
    {Op::sub, inf, inf, 0, nan_value},
    {Op::sub, 0x1.000002p-126f, 0x1p-126f, 0, denormal},
    {Op::mul, 3, -4, 0, -12},
    {Op::mul, 0, inf, 0, nan_value},
    {Op::mul, 0x1p-100f, 0x1p-49f, 0, denormal},
    {Op::mul, 1e30f, 1e30f, 0, inf},
    {Op::div, 1, 3, 0, 1.0f / 3.0f},
    {Op::div, 1, 0, 0, inf},
    {Op::div, 1, -0.0f, 0, -inf},
    {Op::div, 0, 0, 0, nan_value},
    {Op::div, 5, inf, 0, 0},
    {Op::div_exact, 2, 3, 0, 2.0f / 3.0f},
    {Op::div_exact, -1, 0, 0, -inf},
    {Op::div_exact, inf, inf, 0, nan_value},
    {Op::neg, 2, 0, 0, -2},
    {Op::neg, nan_value, 0, 0, nan_value},
    {Op::neg, inf, 0, 0, -inf},
    {Op::abs, -2, 0, 0, 2},
    {Op::abs, -inf, 0, 0, inf},
    {Op::abs, nan_value, 0, 0, nan_value},
    {Op::min, 1, 2, 0, 1},
    {Op::min, nan_value, 2, 0, 2},
    {Op::min, 1, nan_value, 0, 1},
    {Op::min, nan_value, nan_value, 0, nan_value},
    {Op::min, -inf, 5, 0, -inf},
    {Op::max, 1, 2, 0, 2},
    {Op::max, nan_value, 2, 0, 2},
    {Op::max, 1, nan_value, 0, 1},
    {Op::max, inf, 5, 0, inf},
    {Op::clamp, 5, 0, 1, 1},
    {Op::clamp, -5, 0, 1, 0},
    {Op::clamp, 0.5f, 0, 1, 0.5f},
    {Op::clamp, nan_value, 0, 1, 0},
    {Op::clamp, inf, -1, 1, 1},
    {Op::fma, 0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f, 0x1p-46f},
    {Op::fma, 0, inf, 1, nan_value},
    {Op::fma, 2, 3, 4, 10},
    {Op::select, 1, 2, 3, 2},
    {Op::select, 0, 2, 3, 3},
    {Op::select, 0, nan_value, 3, 3},
    {Op::select, 1, nan_value, 3, nan_value},
    {Op::lt, 1, 2, 0, 1},
    {Op::lt, 2, 2, 0, 0},
    {Op::lt, nan_value, 2, 0, 0},
    {Op::lt, -0.0f, 0, 0, 0},
    {Op::le, 2, 2, 0, 1},
    {Op::le, 3, 2, 0, 0},
    {Op::le, 1, nan_value, 0, 0},
    {Op::gt, 3, 2, 0, 1},
    {Op::gt, 2, 2, 0, 0},
    {Op::gt, nan_value, nan_value, 0, 0},
    {Op::ge, 2, 2, 0, 1},
    {Op::ge, 1, 2, 0, 0},
    {Op::ge, nan_value, 2, 0, 0},
    {Op::eq, 2, 2, 0, 1},
    {Op::eq, 0, -0.0f, 0, 1},
    {Op::eq, nan_value, nan_value, 0, 0},
    {Op::eq, inf, inf, 0, 1},
    {Op::ne, 2, 2, 0, 0},
    {Op::ne, 1, 2, 0, 1},
    {Op::ne, nan_value, nan_value, 0, 1},
    {Op::logical_and, 1, 1, 0, 1},
    {Op::logical_and, 1, 0, 0, 0},
    {Op::logical_and, 0, 0, 0, 0},
    {Op::logical_or, 0, 1, 0, 1},
    {Op::logical_or, 0, 0, 0, 0},
    {Op::logical_or, 1, 1, 0, 1},
    {Op::logical_not, 0, 0, 0, 1},
    {Op::logical_not, 1, 0, 0, 0},
    {Op::exp, 0, 0, 0, 1},
    {Op::exp, 1, 0, 0, 2.71828175f},
    {Op::exp, 89, 0, 0, inf},
    {Op::exp, -104, 0, 0, 0},
    {Op::exp, -inf, 0, 0, 0},
    {Op::exp, nan_value, 0, 0, nan_value},
    {Op::exp2, 10, 0, 0, 1024},
    {Op::exp2, -149, 0, 0, denormal},
    {Op::exp2, 128, 0, 0, inf},
    {Op::exp2, -inf, 0, 0, 0},
    {Op::log, 1, 0, 0, 0},
    {Op::log, 0, 0, 0, -inf},
    {Op::log, -1, 0, 0, nan_value},
    {Op::log, inf, 0, 0, inf},
    {Op::log, 10, 0, 0, 2.30258512f},
    {Op::log2, 1024, 0, 0, 10},
    {Op::log2, denormal, 0, 0, -149},
    {Op::log2, 0, 0, 0, -inf},
    {Op::log2, -1, 0, 0, nan_value},
    {Op::sqrt, 2, 0, 0, 1.41421354f},
    {Op::sqrt, 0, 0, 0, 0},
    {Op::sqrt, -1, 0, 0, nan_value},
    {Op::sqrt, inf, 0, 0, inf},
    {Op::rsqrt, 4, 0, 0, 0.5f},
    {Op::rsqrt, 0, 0, 0, inf},
    {Op::rsqrt, inf, 0, 0, 0},
    {Op::rsqrt, -1, 0, 0, nan_value},
    {Op::rsqrt, 2, 0, 0, 0.707106769f},
    {Op::rcp, 4, 0, 0, 0.25f},
    {Op::rcp, 0, 0, 0, inf},
    {Op::rcp, -0.0f, 0, 0, -inf},
    {Op::rcp, 3, 0, 0, 0.333333343f},
    {Op::rcp, -inf, 0, 0, 0},
    {Op::tanh, 0, 0, 0, 0},
    {Op::tanh, 20, 0, 0, 1},
    {Op::tanh, -inf, 0, 0, -1},
    {Op::tanh, 1, 0, 0, 0.761594176f},
    {Op::erf, 0, 0, 0, 0},
    {Op::erf, 6, 0, 0, 1},
    {Op::erf, -inf, 0, 0, -1},
    {Op::erf, 0.5f, 0, 0, 0.520499885f},
    {Op::sigmoid, 0, 0, 0, 0.5f},
    {Op::sigmoid, 40, 0, 0, 1},
    {Op::sigmoid, -inf, 0, 0, 0},
    {Op::sigmoid, 1, 0, 0, 0.731058598f},
    {Op::silu, 0, 0, 0, 0},
    {Op::silu, 1, 0, 0, 0.731058598f},
    {Op::silu, inf, 0, 0, inf},
    {Op::silu, -inf, 0, 0, nan_value},
    {Op::silu, -1000, 0, 0, 0},
    {Op::gelu, 0, 0, 0, 0},
    {Op::gelu, 1, 0, 0, 0.841344774f},
    {Op::gelu, inf, 0, 0, inf},
    {Op::gelu, -inf, 0, 0, nan_value},
    {Op::gelu, -100, 0, 0, 0},
    {Op::gelu_tanh, 0, 0, 0, 0},
    {Op::gelu_tanh, 1, 0, 0, 0.841192007f},
    {Op::gelu_tanh, inf, 0, 0, inf},
    {Op::gelu_tanh, -inf, 0, 0, nan_value},
    {Op::relu, 2, 0, 0, 2},
    {Op::relu, -2, 0, 0, 0},
    {Op::relu, nan_value, 0, 0, 0},
    {Op::relu, -inf, 0, 0, 0},
    {Op::softplus, 0, 0, 0, 0.693147182f},
    {Op::softplus, 100, 0, 0, 100},
    {Op::softplus, -inf, 0, 0, 0},
    {Op::softplus, inf, 0, 0, inf},
    {Op::sin, 0, 0, 0, 0},
    {Op::sin, 1, 0, 0, 0.841470957f},
    {Op::sin, inf, 0, 0, nan_value},
    {Op::sin, -1, 0, 0, -0.841470957f},
    {Op::cos, 0, 0, 0, 1},
    {Op::cos, 1, 0, 0, 0.540302277f},
    {Op::cos, -inf, 0, 0, nan_value},
    {Op::pow, 2, 10, 0, 1024},
    {Op::pow, 2, -1, 0, 0.5f},
    {Op::pow, -2, 2, 0, nan_value},
    {Op::pow, 0, 2, 0, 0},
    {Op::pow, 0, 0, 0, nan_value},
    {Op::pow, 4, 0.5f, 0, 2},
    {Op::round, 2.5f, 0, 0, 2},
    {Op::round, 3.5f, 0, 0, 4},
    {Op::round, -0.4f, 0, 0, 0},
    {Op::round, inf, 0, 0, inf},
    {Op::round, nan_value, 0, 0, nan_value},
    {Op::floor, -0.5f, 0, 0, -1},
    {Op::floor, 2.9f, 0, 0, 2},
    {Op::floor, -inf, 0, 0, -inf},
};

// Every operand that an operation of this arity can trip over. Operations that take truth values have 0 and 1 among them.
std::vector<std::array<float, 3>> edge_operands(const OpInfo& facts) {
  constexpr float edges[] = {0, -0.0f, 1, -1, 0.5f, -2.5f, 87, -104, denormal, -0x1p-126f, largest, -largest, inf, -inf, nan_value};
  constexpr float truths[] = {0, 1};
  std::vector<std::array<float, 3>> tuples = {{}};
  for (int operand = 0; operand < facts.arity; ++operand) {
    const bool truth = facts.kind == OpKind::logic || (facts.kind == OpKind::select && operand == 0);
    std::vector<std::array<float, 3>> longer;
    for (std::array<float, 3> tuple : tuples)
      for (const float edge : truth ? std::span<const float>(truths) : edges) {
        tuple[static_cast<std::size_t>(operand)] = edge;
        longer.push_back(tuple);
      }
    tuples = std::move(longer);
  }
  return tuples;
}

} // namespace

TEST_CASE("references at known values") {
  for (const Case& each : cases) {
    CAPTURE(info(each.op).name);
    CAPTURE(each.a);
    CAPTURE(each.b);
    const float result = info(each.op).reference(each.a, each.b, each.c);
    if (std::isnan(each.expected)) CHECK(std::isnan(result));
    else CHECK(result == each.expected);
  }
}

TEST_CASE("at every edge operand the reference lies in the range that the accuracy and the curve of ops.def give") {
  for (const Op op : pointwise_ops()) {
    const OpInfo& facts = info(op);
    for (const auto& [a, b, c] : edge_operands(facts)) {
      if (op == Op::clamp && !(b <= c)) continue; // the order of the limits is the caller's promise
      const Range operands[] = {Range::exactly(static_cast<double>(a)), Range::exactly(static_cast<double>(b)),
                                Range::exactly(static_cast<double>(c))};
      const Range range = pointwise_range(op, std::span(operands, static_cast<std::size_t>(facts.arity)));
      const float reference = facts.reference(a, b, c);
      if (!range.contains(static_cast<double>(reference)))
        FAIL_CHECK(facts.name << " of " << a << ", " << b << ", " << c << ": " << reference << " is outside " << to_text(range));
    }
  }
}

// A curve that is declared wrongly ("rising" of a function that turns) leaves an edge between the ends outside.
TEST_CASE("a range of operands from edge to edge holds the reference of every edge between") {
  for (const Op op : pointwise_ops()) {
    const OpInfo& facts = info(op);
    if (facts.arity != 1) continue;
    for (const auto& low : edge_operands(facts))
      for (const auto& high : edge_operands(facts)) {
        if (!(low[0] <= high[0])) continue;
        const Range operand[] = {{static_cast<double>(low[0]), static_cast<double>(high[0]), false}};
        const Range range = pointwise_range(op, operand);
        for (const auto& x : edge_operands(facts))
          if (low[0] <= x[0] && x[0] <= high[0] && !range.contains(static_cast<double>(facts.reference(x[0], 0, 0))))
            FAIL_CHECK(facts.name << " of " << x[0] << " is outside " << to_text(range) << ", that of " << to_text(operand[0]));
      }
  }
}

TEST_CASE("the registry's entries are complete") {
  for (const Op op : pointwise_ops()) {
    const OpInfo& facts = info(op);
    CAPTURE(facts.name);
    CHECK(parse_op(facts.name) == op);
    CHECK(facts.cost > 0);
    CHECK(!facts.note.empty());
    for (int operand = 0; operand < 3; ++operand) {
      const std::string placeholder = "{" + std::to_string(operand) + "}";
      CHECK((facts.device.find(placeholder) != facts.device.npos) == (operand < facts.arity));
    }
    // A call has the operation's own name, which the device header overloads.
    if (const auto paren = facts.device.find('('); paren != facts.device.npos) CHECK(facts.device.substr(0, paren) == facts.name);
  }
  CHECK(!parse_op("plus"));
  CHECK(parse_op("row_mean") == Op::row_mean);
}

TEST_CASE("the C++ function of every operation builds that operation") {
  const Expr x = input("x", f16, {4}), y = input("y", f32, {4}), z = input("z", f32, {4}), p = x < y, q = y < z;
  const Expr numbers[] = {x, y, z}, truths[] = {p, q, p}, choice[] = {p, x, y};
  const auto check = [&](Op op, const auto& function) {
    const OpInfo& facts = info(op);
    CAPTURE(facts.name);
    const auto& operands = facts.kind == OpKind::logic ? truths : facts.kind == OpKind::select ? choice : numbers;
    const Expr built = function(operands);
    CHECK(built.op() == op);
    CHECK(built.dtype() == (facts.kind == OpKind::compare || facts.kind == OpKind::logic ? boolean : f32));
    REQUIRE(static_cast<int>(built.operands().size()) == facts.arity);
    for (std::size_t i = 0; i < built.operands().size(); ++i) CHECK(built.operands()[i].same_node(operands[i]));
  };
#define KILN_CALL_1(id) id(of[0])
#define KILN_CALL_2(id) id(of[0], of[1])
#define KILN_CALL_3(id) id(of[0], of[1], of[2])
#define KILN_OP(id, arity, ...) check(Op::id, [](const Expr(&of)[3]) { return KILN_CALL_##arity(id); });
#include "gen/spec/ops.def"
}

TEST_CASE("operators are operations") {
  const Expr x = input("x", f16, {4}), y = input("y", f32, {4});
  const std::pair<Op, Expr> spelled[] = {{Op::add, x + y}, {Op::sub, x - y}, {Op::mul, x * y}, {Op::div, x / y}, {Op::neg, -x},
                                         {Op::lt, x < y},  {Op::le, x <= y}, {Op::gt, x > y},  {Op::ge, x >= y}};
  for (const auto& [op, expr] : spelled) {
    CAPTURE(info(op).name);
    CHECK(expr.op() == op);
    CHECK(expr.operands()[0].same_node(x));
    if (op != Op::neg) CHECK(expr.operands()[1].same_node(y));
  }
}

TEST_CASE("numbers become constants, and a negated number is a number") {
  const Expr x = input("x", f32, {4});
  CHECK((x * 2.0).operands()[1].op() == Op::constant);
  CHECK((2 - x).operands()[0]->value == 2.0f);
  CHECK((x + 1e-6).operands()[1]->value == 1e-6f);
  const Expr minus = -Expr(2);
  CHECK(minus.op() == Op::constant);
  CHECK(minus->value == -2.0f);
}

TEST_CASE("shapes broadcast from the right") {
  const Dim rows = dynamic("rows");
  const Expr full = input("full", f32, {rows, 8}), row = input("per_row", f32, {8}), column = input("column", f32, {rows, 1}),
             one = input("one", f32, {1});
  CHECK((full + row).shape() == Shape{rows, 8});
  CHECK((row + column).shape() == Shape{rows, 8});
  CHECK((one * row).shape() == Shape{8});
  CHECK((scalar("s") * column).shape() == Shape{rows, 1});
  CHECK(row_sum(full).shape() == Shape{rows, 1});
  CHECK(group_max(full, 2).shape() == Shape{rows, 4});
  CHECK(ungroup(group_max(input("odd", f32, {rows, 9}), 4), 4, 9).shape() == Shape{rows, 9});
}
