// The text of a KernelSpec, read back by recursive descent. docs/guide.md has the grammar; tests/unit/guide.cpp holds it against this.
#include "gen/error.h"
#include "gen/spec/attention.h"
#include "gen/spec/graph.h"
#include "gen/spec/lexer.h"
#include "gen/spec/math.h"
#include "gen/spec/names.h"
#include "gen/spec/operations/helpers.h"
#include "gen/spec/spec.h"
#include <charconv>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <set>

namespace kiln {
namespace {

template <class Number> bool read_whole(std::string_view text, Number& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stop == text.data() + text.size();
}

constexpr int max_nesting = 200; // of parentheses, calls and signs: the parser recurses

std::vector<std::string_view> type_names() {
  std::vector<std::string_view> names;
  for (const DType type : all_dtypes()) names.push_back(to_string(type));
  return names;
}

std::vector<std::string_view> operation_names() {
  std::vector<std::string_view> names;
  for (const Op op : all_ops())
    if (info(op).arity > 0 || info(op).kind == OpKind::position) names.push_back(info(op).name);
  names.push_back("cast_nonsaturating");
  for (const Helper& helper : helpers()) names.push_back(helper.name);
  return names;
}

class SpecParser {
public:
  explicit SpecParser(std::string_view text) : tokens_(tokenize(text)) {}

  KernelSpec parse() {
    expect("kernel");
    const Token kernel = expect_name("the kernel's name");
    KernelSpec spec = at(kernel, [&] { return KernelSpec(std::string(kernel.text)); });
    while (current().kind != Token::Kind::end) statement(spec);
    require_used(spec);
    return spec;
  }

private:
  struct Declared {
    Token token;
    Expr value;
  };

  // --- tokens
  const Token& current() const { return tokens_[next_]; }
  bool at_text(std::string_view text) const { return current().kind != Token::Kind::end && current().text == text; }
  Token take() { return current().kind == Token::Kind::end ? current() : tokens_[next_++]; }
  bool accept(std::string_view text) {
    if (!at_text(text)) return false;
    take();
    return true;
  }
  [[noreturn]] void refuse(const Token& token, std::string fact, std::string remedy) const {
    throw UserError(place(token), std::move(fact), std::move(remedy));
  }
  void expect(std::string_view text) {
    if (!accept(text))
      refuse(current(), fmt::format("{} stands where '{}' belongs", quoted(current()), text), "docs/guide.md has the grammar");
  }
  Token expect_name(std::string_view what) {
    if (current().kind != Token::Kind::name)
      refuse(current(), fmt::format("{} stands where {} belongs", quoted(current()), what), "write a name");
    return take();
  }
  std::int64_t expect_integer() {
    const Token token = take();
    std::int64_t value = 0;
    if (token.kind != Token::Kind::number || !read_whole(token.text, value))
      refuse(token, fmt::format("{} stands where a whole number belongs", quoted(token)), "write digits, at most 9223372036854775807");
    return value;
  }
  DType expect_type() {
    const Token token = expect_name("a type");
    const auto type = parse_dtype(token.text);
    if (!type) refuse(token, fmt::format("there is no type '{}'", token.text), did_you_mean(token.text, type_names()));
    return *type;
  }
  // Runs `build`, and puts the place of `token` before the subject of a UserError.
  template <typename Build> auto at(const Token& token, Build build) const -> decltype(build()) {
    try {
      return build();
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: {}", place(token), error.subject), error.fact, error.remedy);
    }
  }

  // --- statements
  void statement(KernelSpec& spec) {
    const Token token = take();
    if (token.text == "dim") return dim();
    if (token.text == "input") return input_statement();
    if (token.text == "scalar") return scalar_statement();
    if (token.text == "let") return let();
    if (token.text == "output") return output(spec);
    refuse(token, fmt::format("{} begins no statement", quoted(token)), "begin with dim, input, scalar, let or output");
  }

  void dim() {
    const Token token = expect_name("the dimension's name");
    std::optional<std::int64_t> min, max;
    if (accept("[")) {
      if (!at_text("..")) min = expect_integer();
      expect("..");
      if (!at_text("]")) max = expect_integer();
      expect("]");
    }
    const Dim declared = at(token, [&] { return dynamic(std::string(token.text), min, max); });
    if (!dims_.try_emplace(std::string(token.text), declared).second)
      refuse(token, fmt::format("dimension '{}' is declared twice", token.text), "remove one of the declarations");
  }

  Shape shape() {
    Shape result;
    expect("[");
    while (!at_text("]")) {
      if (!result.empty()) expect(",");
      if (current().kind == Token::Kind::number) {
        result.push_back(expect_integer());
        continue;
      }
      const Token token = expect_name("a size");
      const auto known = dims_.find(std::string(token.text));
      if (known == dims_.end())
        refuse(token, fmt::format("dimension '{}' is not declared", token.text), fmt::format("write 'dim {}' above", token.text));
      result.push_back(known->second);
    }
    expect("]");
    return result;
  }

  void declare(const Token& token, Expr value) {
    const auto [known, is_new] = values_.try_emplace(std::string(token.text), Declared{token, std::move(value)});
    if (!is_new)
      refuse(token, fmt::format("'{}' is declared twice, first in line {}", token.text, known->second.token.line), "rename one of them");
  }

  void input_statement() {
    const Token token = expect_name("the input's name");
    expect(":");
    const DType type = expect_type();
    const Shape extents = shape();
    const Layout layout = accept("strided") ? Layout::strided : accept("preshuffled") ? Layout::preshuffled : Layout::contiguous;
    declare(token, at(token, [&] { return input(std::string(token.text), type, extents, layout); }));
  }

  void scalar_statement() {
    const Token token = expect_name("the scalar's name");
    expect(":");
    const DType type = expect_type();
    declare(token, at(token, [&] { return scalar(std::string(token.text), type); }));
  }

  void let() {
    const Token token = expect_name("the value's name");
    at(token, [&] { require_name("value", token.text); });
    expect("=");
    declare(token, sum());
  }

  void output(KernelSpec& spec) {
    const Token token = expect_name("the output's name");
    expect(":");
    const DType type = expect_type();
    const Token shape_token = current();
    const Shape declared = shape();
    expect("=");
    const Expr value = sum();
    if (declared != value.shape())
      refuse(
          shape_token,
          fmt::format("output '{}' is declared as {}, but its value has shape {}", token.text, to_text(declared), to_text(value.shape())),
          fmt::format("write {}{}", to_string(type), to_text(value.shape())));
    OutputOptions options;
    if (accept("in_place_of")) options.in_place_of = expect_name("the input's name").text;
    if (accept("strided")) options.layout = Layout::strided;
    at(token, [&] { spec.output(std::string(token.text), type, value, options); });
  }

  // Reports the first declaration in the text that no output reaches, which is a slip more often than not.
  void require_used(const KernelSpec& spec) const {
    std::set<const Node*> reached;
    for (const Expr& node : nodes_in_order(spec)) reached.insert(&node.node());
    const Declared* unused = nullptr;
    for (const auto& [name, declared] : values_) {
      const bool earlier = !unused || declared.token.text.data() < unused->token.text.data(); // both point into the text
      if (!reached.contains(&declared.value.node()) && earlier) unused = &declared;
    }
    if (unused) refuse(unused->token, fmt::format("'{}' is used by no output", unused->token.text), "use it or remove it");
  }

  // --- expressions
  Expr infix(const Expr& left, const Token& token, Expr (SpecParser::*operand)()) {
    const Expr right = (this->*operand)();
    return at(token, [&] {
      switch (token.text.front()) {
      case '+': return left + right;
      case '-': return left - right;
      case '*': return left * right;
      default: return left / right;
      }
    });
  }

  Expr sum() {
    Expr left = product();
    while (at_text("+") || at_text("-")) left = infix(left, take(), &SpecParser::product);
    return left;
  }

  Expr product() {
    Expr left = unary();
    while (at_text("*") || at_text("/")) left = infix(left, take(), &SpecParser::unary);
    return left;
  }

  Expr unary() {
    if (++nesting_ > max_nesting)
      refuse(current(), fmt::format("expressions nest deeper than {} levels", max_nesting), "name parts of it with let");
    Expr result = at_text("-") ? negation() : primary();
    --nesting_;
    return result;
  }

  Expr negation() {
    const Token token = take();
    const Expr operand = unary();
    return at(token, [&] { return -operand; });
  }

  Expr primary() {
    const Token token = take();
    if (token.kind == Token::Kind::number) return number(token);
    if (token.kind == Token::Kind::symbol && token.text == "(") {
      Expr inner = sum();
      expect(")");
      return inner;
    }
    if (token.kind != Token::Kind::name)
      refuse(token, fmt::format("{} stands where a value belongs", quoted(token)), "write a number, a name, a call or parentheses");
    if (token.text == "inf") return constant(std::numeric_limits<float>::infinity());
    if (token.text == "nan") return constant(std::numeric_limits<float>::quiet_NaN());
    if (at_text("(")) return call(token);
    const auto known = values_.find(std::string(token.text));
    if (known != values_.end()) return known->second.value;
    std::vector<std::string_view> names;
    for (const auto& [name, declared] : values_) names.push_back(name);
    refuse(token, fmt::format("'{}' is not declared", token.text),
           names.empty() ? "declare it above with input, scalar or let" : did_you_mean(token.text, names));
  }

  Expr number(const Token& token) const {
    float value = 0;
    if (!read_whole(token.text, value))
      refuse(token, fmt::format("{} is no f32 number", quoted(token)), "magnitudes go from 1e-45 to 3.4028235e+38, or write inf");
    return constant(value);
  }

  Expr call(const Token& token) {
    expect("(");
    const bool saturating = token.text == "cast";
    if (saturating || token.text == "cast_nonsaturating") {
      const DType type = expect_type();
      expect(",");
      const Expr operand = sum();
      expect(")");
      return at(token, [&] { return saturating ? cast(type, operand) : cast_nonsaturating(type, operand); });
    }
    if (const Helper* const helper = find_helper(token.text)) return written_out(token, *helper);
    const auto op = parse_op(token.text);
    if (op == Op::iota) {
      const Shape extents = shape();
      expect(")");
      return at(token, [&] { return iota(extents); });
    }
    if (op == Op::pair_sign) {
      const std::int64_t cols = expect_integer();
      expect(",");
      const std::int64_t distance = expect_integer();
      expect(")");
      return at(token, [&] { return pair_sign(cols, distance); });
    }
    if (!op || info(*op).arity == 0)
      refuse(token, fmt::format("there is no operation '{}'", token.text), did_you_mean(token.text, operation_names()));
    std::vector<Expr> of = {sum()};
    // pointwise() says how many operands it takes.
    const bool counts_itself = info(*op).reference != nullptr;
    while (counts_itself ? at_text(",") : static_cast<int>(of.size()) < info(*op).arity) {
      expect(",");
      of.push_back(sum());
    }
    std::int64_t numbers[2] = {};
    for (int i = 0; i < count_of_numbers(*op); ++i) {
      expect(",");
      numbers[i] = expect_integer();
    }
    const IndexOptions options = *op == Op::gather || *op == Op::scatter ? index_options(*op) : IndexOptions{};
    expect(")");
    return at(token, [&] { return build(*op, of, numbers[0], numbers[1], options); });
  }

  Expr written_out(const Token& token, const Helper& helper) {
    const Expr operand = sum();
    std::int64_t numbers[2] = {};
    for (int i = 0; i < helper.numbers; ++i) {
      expect(",");
      numbers[i] = expect_integer();
    }
    expect(")");
    return at(token, [&] { return helper.build(operand, numbers[0], numbers[1]); });
  }

  // The words behind the operands of gather and scatter.
  IndexOptions index_options(Op op) {
    IndexOptions options;
    while (accept(",")) {
      const bool wants_duplicates = op == Op::scatter && at_text("duplicates");
      if (!wants_duplicates && !at_text("checked"))
        refuse(current(), fmt::format("{} is no option of {}", quoted(current()), info(op).name),
               op == Op::scatter ? "write checked or duplicates" : "write checked");
      take();
      (wants_duplicates ? options.duplicates : options.checked) = true;
    }
    return options;
  }

  // Behind the operands of a call.
  static int count_of_numbers(Op op) {
    if (op == Op::ungroup || op == Op::columns) return 2;
    if (op == Op::partner || op == Op::tile || op == Op::repeat || op == Op::row_top || info(op).kind == OpKind::sort) return 1;
    return info(op).kind == OpKind::group_reduce || op == Op::matmul_nt_w4 ? 1 : 0;
  }

  static Expr build(Op op, const std::vector<Expr>& of, std::int64_t first, std::int64_t second, IndexOptions options) {
    switch (op) {
    case Op::matmul_nt: return matmul_nt(of[0], of[1]);
    case Op::matmul_nt_scaled: return matmul_nt_scaled(of[0], of[1], of[2], of[3]);
    case Op::matmul_nt_w4: return matmul_nt_w4(of[0], of[1], of[2], of[3], first);
    case Op::matmul_nt_mx: return matmul_nt_mx(of[0], of[1], of[2]);
    case Op::matmul_nt_mx_mx: return matmul_nt_mx_mx(of[0], of[1], of[2], of[3]);
    case Op::matmul_nt_quantised: return matmul_nt_quantised(of[0], of[1]);
    case Op::matmul_nt_normed: return matmul_nt_normed(of[0], of[1], of[2], of[3], of[4], number_of(of[5]));
    case Op::scale_up: return scale_up(of[0], of[1]);
    case Op::scale_down: return scale_down(of[0], of[1]);
    case Op::attention_scores: return attention_scores(of[0], of[1]);
    case Op::attention_scores_paged: return attention_scores(of[0], of[1], of[2]);
    case Op::attention: return attention(of[0], of[1], of[2]);
    case Op::log_sum_exp: return log_sum_exp(of[0], of[1]);
    case Op::heads_first: return heads_first(of[0]);
    case Op::transpose: return transpose(of[0]);
    case Op::columns: return columns(of[0], first, second);
    case Op::by_expert: return by_expert(of[0], of[1], of[2]);
    case Op::sum_of_experts: return sum_of_experts(of[0], of[1], of[2], of[3]);
    case Op::expert_order: return expert_order(of[0], first);
    case Op::expert_offsets: return expert_offsets(of[0], first);
    case Op::ungroup: return ungroup(of[0], first, second);
    case Op::gather: return gather(of[0], of[1], options);
    case Op::scatter: return scatter(of[0], of[1], of[2], options);
    case Op::partner: return partner(of[0], first);
    case Op::tile: return tile(of[0], first);
    case Op::repeat: return repeat(of[0], first);
    case Op::row_top: return row_top(of[0], first);
    case Op::pick: return pick(of[0], of[1]);
    case Op::row_cumsum: return row_cumsum(of[0]);
    default: return is_reduction(op) ? reduction(op, of[0], first) : pointwise(op, of);
    }
  }

  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  int nesting_ = 0;
  std::map<std::string, Dim> dims_;
  std::map<std::string, Declared> values_;
};

} // namespace

KernelSpec parse_spec(std::string_view text) { return SpecParser(text).parse(); }

} // namespace kiln
