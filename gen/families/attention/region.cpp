// Region: the keys that a score expression gives no weight, by what it compares the key's position with.
#include "gen/error.h"
#include "gen/families/attention/attention.h"
#include "gen/spec/attention.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace kiln {
namespace {

// key * the position of the key + constant + the sum of factors times leaves that are one number for a sequence and token.
struct Linear {
  double key = 0, constant = 0;
  std::map<std::string, double> factors = {}; // by device text
};

Linear plus(Linear a, const Linear& b, double sign) {
  a.key += sign * b.key;
  a.constant += sign * b.constant;
  for (const auto& [text, factor] : b.factors) a.factors[text] += sign * factor;
  return a;
}

class Region {
public:
  Region(const AttentionParts& attention, const std::string& length)
      : a_(attention), length_(fmt::format("static_cast<f32>({})", length)) {}

  // Lower bounds of the keys with a weight, as device text of an f32 each. Throws UserError when no key can have one.
  std::vector<std::string> bounds() {
    collect(a_.score_body.outputs.front().value);
    return bounds_;
  }

private:
  static bool is_none(const Expr& e) { return e.op() == Op::constant && e->value < min_score; }

  // Places where minus infinity makes the score that.
  void collect(const Expr& x) {
    switch (x.op()) {
    case Op::select:
      if (is_none(x.operands()[2])) {
        holds(x.operands()[0]);
        collect(x.operands()[1]);
      }
      break;
    case Op::add:
    case Op::min:
      for (const Expr& operand : x.operands()) collect(operand);
      break;
    case Op::sub: collect(x.operands()[0]); break;
    case Op::mul:
      for (const int i : {0, 1})
        if (const Expr& other = x.operands()[static_cast<std::size_t>(1 - i)]; other.op() == Op::constant && other->value > 0)
          collect(x.operands()[static_cast<std::size_t>(i)]);
      break;
    default: break;
    }
  }

  // Keys for which the condition does not hold have no weight.
  void holds(const Expr& condition) {
    const auto operand = [&](std::size_t i) -> const Expr& { return condition.operands()[i]; };
    switch (condition.op()) {
    case Op::logical_and: holds(operand(0)), holds(operand(1)); break;
    case Op::ge: at_least_zero(operand(0), operand(1), false, condition); break;
    case Op::gt: at_least_zero(operand(0), operand(1), true, condition); break;
    case Op::le: at_least_zero(operand(1), operand(0), false, condition); break;
    case Op::lt: at_least_zero(operand(1), operand(0), true, condition); break;
    default: break;
    }
  }

  // a >= b, or a > b, which `condition` spells.
  void at_least_zero(const Expr& a, const Expr& b, bool strict, const Expr& condition) {
    if (strict && a.same_node(b)) refuse(condition);
    const std::optional<Linear> left = linear(a), right = linear(b);
    if (!left || !right) return;
    const Linear difference = plus(*left, *right, -1);
    const auto varies = [](const auto& leaf) { return leaf.second != 0; };
    if (difference.key == 0 && std::ranges::none_of(difference.factors, varies) &&
        (strict ? difference.constant <= 0 : difference.constant < 0))
      refuse(condition);
    if (difference.key != 1) return; // key + rest >= 0: key >= -rest
    std::string text = fmt::format("{:.1f}f", strict ? 1 - difference.constant : -difference.constant);
    for (const auto& [leaf, factor] : difference.factors) {
      if (factor == 0) continue;
      // The least over the tokens.
      const std::string value = leaf != token ? leaf : factor < 0 ? "0.0f" : fmt::format("{}.0f", a_.tokens() - 1);
      text += fmt::format(" + {:.1f}f * {}", -factor, value);
    }
    bounds_.push_back(text);
  }

  // The compiler would leave out the keys of such a kernel, and its loop would keep too little in flight.
  [[noreturn]] void refuse(const Expr& condition) const {
    throw UserError(fmt::format("attention of kernel '{}'", a_.scores.name()),
                    fmt::format("its score expression gives no key a weight: a condition with '{}' never holds", info(condition.op()).name),
                    "compare values that can differ, or leave the condition out");
  }

  static bool is_whole(double number) { return number == std::floor(number) && std::fabs(number) < 0x1p24; }

  std::optional<Linear> linear(const Expr& e) const {
    switch (e.op()) {
    case Op::constant:
      return is_whole(static_cast<double>(e->value)) ? std::optional(Linear{.constant = static_cast<double>(e->value)}) : std::nullopt;
    case Op::scalar:
      return e.dtype() == i32 ? std::optional(Linear{.factors = {{fmt::format("static_cast<f32>({})", e->name), 1}}}) : std::nullopt;
    case Op::input:
      if (e->name == a_.lengths->name) return Linear{.factors = {{length_, 1}}};
      return std::nullopt;
    case Op::iota: return position(e.shape());
    case Op::neg: return negated(linear(e.operands()[0]));
    case Op::add:
    case Op::add_i32:
    case Op::sub:
    case Op::sub_i32: {
      const std::optional<Linear> left = linear(e.operands()[0]), right = linear(e.operands()[1]);
      if (!left || !right) return std::nullopt;
      return plus(*left, *right, e.op() == Op::add || e.op() == Op::add_i32 ? 1 : -1);
    }
    default: return std::nullopt;
    }
  }
  static std::optional<Linear> negated(const std::optional<Linear>& x) { return x ? std::optional(plus({}, *x, -1)) : std::nullopt; }

  // For iota: along keys, or along tokens.
  std::optional<Linear> position(const Shape& shape) const {
    const std::size_t rank = a_.score_body.space.size();
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (same_size(shape[i], 1)) continue;
      const std::size_t dim = rank - shape.size() + i;
      if (dim == rank - 1) return Linear{.key = 1};
      if (rank == 4 && dim == 1) return Linear{.factors = {{std::string(token), 1}}};
    }
    return std::nullopt;
  }

  static constexpr std::string_view token = "token";
  const AttentionParts& a_;
  std::string length_;
  std::vector<std::string> bounds_;
};

} // namespace

void require_some_weight(const AttentionParts& attention) { Region(attention, "length").bounds(); }

std::string first_key_text(const AttentionParts& attention, const std::string& length) {
  std::string text;
  for (const std::string& bound : Region(attention, length).bounds()) {
    const auto first = fmt::format("first_key_from({}, {})", bound, length);
    text = text.empty() ? first : fmt::format("later_key({}, {})", text, first);
  }
  return text.empty() ? "0u" : text;
}

} // namespace kiln
