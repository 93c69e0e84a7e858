// The text of a KernelSpec, read back by recursive descent. docs/guide.md has the grammar; tests/unit/guide.cpp holds it against this.
#include "gen/spec/attention.h"
#include "gen/spec/characters.h"
#include "gen/spec/graph.h"
#include "gen/spec/math.h"
#include "gen/spec/names.h"
#include "gen/spec/text/call_form.h"
#include "gen/spec/text/spec_writer.h"
#include "gen/spec/text/token_reader.h"
#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace kiln {
namespace {

constexpr int max_nesting = 200; // of parentheses, calls and signs: the parser recurses

std::vector<std::string_view> call_names() {
  std::vector<std::string_view> names;
  for (const CallForm& form : call_forms()) names.push_back(form.name);
  return names;
}

} // namespace

class SpecParser : private TokenReader {
public:
  static KernelSpec parse(std::string_view text) {
    SpecParser parser;
    parser.read(text);
    parser.expect("kernel");
    const Token kernel = parser.expect_name("the kernel's name");
    parser.spec_ = parser.at(kernel, [&] { return KernelSpec(std::string(kernel.text)); });
    while (!parser.at_end()) parser.statement();
    parser.require_used();
    return std::move(parser.spec_);
  }

  explicit SpecParser(KernelSpec spec = KernelSpec("unnamed")) : spec_(std::move(spec)) {}

  // Statements more. Tokens of declarations point into their text, which is kept.
  std::optional<Expr> add(std::string statements) {
    read(texts_.emplace_back(std::move(statements)));
    nesting_ = 0;
    std::optional<Expr> last;
    while (!at_end()) last = statement();
    return last;
  }
  const KernelSpec& spec() const { return spec_; }

private:
  struct Declared {
    Token token;
    Expr value;
  };

  // --- statements
  // Gives what it declares; nothing of a dim.
  std::optional<Expr> statement() {
    const Token token = take();
    if (token.text == "dim") return dim(), std::nullopt;
    if (token.text == "input") return input_statement();
    if (token.text == "scalar") return scalar_statement();
    if (token.text == "let") return let();
    if (token.text == "output") return output();
    if (token.text == "for") return repeated(), std::nullopt;
    refuse(token, fmt::format("{} begins no statement", quoted(token)), "begin with dim, input, scalar, let, for or output");
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

  Expr declare(const Token& token, const Expr& value) {
    const auto [known, is_new] = values_.try_emplace(std::string(token.text), Declared{token, value});
    if (!is_new)
      refuse(token, fmt::format("'{}' is declared twice, first in line {}", token.text, known->second.token.line), "rename one of them");
    return value;
  }

  Expr input_statement() {
    const Token token = expect_name("the input's name");
    expect(":");
    const DType type = expect_type();
    const Shape extents = shape();
    const Layout layout = accept("strided") ? Layout::strided : accept("preshuffled") ? Layout::preshuffled : Layout::contiguous;
    return declare(token, at(token, [&] { return input(std::string(token.text), type, extents, layout); }));
  }

  Expr scalar_statement() {
    const Token token = expect_name("the scalar's name");
    expect(":");
    const DType type = expect_type();
    return declare(token, at(token, [&] { return scalar(std::string(token.text), type); }));
  }

  Expr let() {
    const Token token = expect_name("the value's name");
    at(token, [&] { require_name("value", token.text); });
    expect("=");
    const Expr value = sum();
    const auto known = values_.find(std::string(token.text));
    if (counters_.empty() || known == values_.end() || is_leaf(known->second.value)) return declare(token, value);
    known->second = {token, value};
    return value;
  }
  static bool is_leaf(const Expr& value) { return value.op() == Op::input || value.op() == Op::scalar; }

  // for t: 4 { let ... stack ... }: its statements for t = 0, 1, 2 and 3. A let of a name that is known gives it a new value, other names
  // end with each turn; a stack has the values of all turns.
  void repeated() {
    const Token counter = expect_name("the counter's name");
    at(counter, [&] { require_name("counter", counter.text); });
    expect(":");
    const std::int64_t times = expect_integer();
    if (times < 1 || times > max_stacked)
      refuse(counter, fmt::format("'{}' counts {} turns", counter.text, times), fmt::format("use 1 to {}", max_stacked));
    if (!counters_.try_emplace(std::string(counter.text), 0).second || values_.contains(std::string(counter.text)))
      refuse(counter, fmt::format("'{}' is declared twice", counter.text), "rename one of them");
    expect("{");
    const std::size_t first = position();
    std::map<std::string, std::pair<Token, std::vector<Expr>>> stacks;
    for (std::int64_t turn = 0; turn < times; ++turn) {
      return_to(first);
      counters_[std::string(counter.text)] = turn;
      const std::map<std::string, Declared> before = values_;
      while (!accept("}")) turn_statement(stacks);
      std::erase_if(values_, [&](const auto& each) { return !before.contains(each.first); });
    }
    counters_.erase(std::string(counter.text));
    for (auto& [name, stacked] : stacks)
      declare(stacked.first, at(stacked.first, [&] { return times == 1 ? stacked.second[0] : stack(stacked.second); }));
  }
  void turn_statement(std::map<std::string, std::pair<Token, std::vector<Expr>>>& stacks) {
    const Token token = take();
    if (token.text == "let") return static_cast<void>(let());
    if (token.text != "stack")
      refuse(token, fmt::format("{} begins no statement of a loop", quoted(token)), "use let and stack, and end it with }");
    const Token name = expect_name("the stack's name");
    at(name, [&] { require_name("value", name.text); });
    expect("=");
    stacks.try_emplace(std::string(name.text), name, std::vector<Expr>{}).first->second.second.push_back(sum());
  }

  // A whole number, or the counter of a loop.
  std::int64_t whole_number() {
    if (const auto counter = counters_.find(std::string(current().text)); counter != counters_.end()) return take(), counter->second;
    return accept("-") ? -expect_integer() : expect_integer();
  }

  Expr output() {
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
    at(token, [&] { spec_.output(std::string(token.text), type, value, options); });
    return spec_.outputs().back().value;
  }

  // Reports the first declaration in the text that no output reaches, which is a slip more often than not.
  void require_used() const {
    std::set<const Node*> reached;
    for (const Expr& node : nodes_in_order(spec_)) reached.insert(&node.node());
    for (const Expr& node : nodes_in_order(operands_)) reached.insert(&node.node());
    const auto is_reached = [&](const Expr& value) { // a stack is rounded value by value
      const auto one = [&](const Expr& each) { return reached.contains(&each.node()); };
      return one(value) || (value.op() == Op::stack && std::ranges::all_of(value.operands(), one));
    };
    const Declared* unused = nullptr;
    for (const auto& [name, declared] : values_) {
      const bool earlier = !unused || declared.token.text.data() < unused->token.text.data(); // both point into the text
      if (!is_reached(declared.value) && earlier) unused = &declared;
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
    std::int64_t whole = 0;
    if (read_whole(token.text, whole) && whole <= std::int64_t{1} << 32) return kiln::whole_number(whole);
    float value = 0;
    if (!read_whole(token.text, value))
      refuse(token, fmt::format("{} is no f32 number", quoted(token)), "magnitudes go from 1e-45 to 3.4028235e+38, or write inf");
    return constant(value);
  }

  Expr call(const Token& token) {
    const CallForm* const form = find_call(token.text);
    if (!form) refuse(token, fmt::format("there is no operation '{}'", token.text), did_you_mean(token.text, call_names()));
    expect("(");
    bool is_first = true;
    const auto separate = [&] {
      if (!std::exchange(is_first, false)) expect(",");
    };
    DType type = f32;
    Shape extents;
    std::vector<Expr> of;
    std::int64_t numbers[2] = {};
    if (form->type) separate(), type = expect_type();
    if (form->shape) separate(), extents = shape();
    // pointwise() and stack() say how many operands they take.
    const bool counts_itself = !form->helper && (info(form->op).is_pointwise() || form->op == Op::stack);
    while (counts_itself ? of.empty() || at_text(",") : std::ssize(of) < form->operands) separate(), of.push_back(sum());
    for (int i = 0; i < form->numbers; ++i) separate(), numbers[i] = whole_number();
    const IndexOptions options = index_options(*form);
    expect(")");
    return at(token, [&] {
      if (form->helper) return form->helper->build(of, numbers[0], numbers[1]);
      if (form->type) return form->name == "cast" ? cast(type, of[0]) : cast_nonsaturating(type, of[0]);
      if (form->shape) return iota(extents);
      if (info(form->op).kind == OpKind::product) operands_.insert(operands_.end(), of.begin(), of.end());
      return build(form->op, of, numbers[0], numbers[1], options);
    });
  }

  // The words behind the operands.
  IndexOptions index_options(const CallForm& form) {
    IndexOptions options;
    while (!form.options.empty() && accept(",")) {
      if (std::ranges::find(form.options, current().text) == form.options.end())
        refuse(current(), fmt::format("{} is no option of {}", quoted(current()), form.name),
               fmt::format("write {}", fmt::join(form.options, " or ")));
      (take().text == "duplicates" ? options.duplicates : options.checked) = true;
    }
    return options;
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
    case Op::unpack4: return unpack4(of[0]);
    case Op::ungroup_rows: return ungroup_rows(of[0], first, second);
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
    case Op::shift_columns: return shift_columns(of[0], first);
    case Op::unstack: return unstack(of[0], first);
    case Op::stack: return stack(of);
    case Op::row_top: return row_top(of[0], first);
    case Op::pick: return pick(of[0], of[1]);
    case Op::row_cumsum: return row_cumsum(of[0]);
    case Op::pair_sign: return pair_sign(first, second);
    default: return is_reduction(op) ? reduction(op, of[0], first) : pointwise(op, of);
    }
  }

  KernelSpec spec_;
  std::deque<std::string> texts_; // of add()
  int nesting_ = 0;
  std::map<std::string, Dim> dims_;
  std::map<std::string, Declared> values_;
  std::vector<Expr> operands_;                   // of products, which hold what these stand for
  std::map<std::string, std::int64_t> counters_; // of the loops around a statement
};

KernelSpec parse_spec(std::string_view text) { return SpecParser::parse(text); }

SpecWriter::SpecWriter(std::string_view kernel) : parser_(std::make_unique<SpecParser>(KernelSpec(std::string(kernel)))) {}
SpecWriter::~SpecWriter() = default;
std::optional<Expr> SpecWriter::add(std::string statements) { return parser_->add(std::move(statements)); }
const KernelSpec& SpecWriter::spec() const { return parser_->spec(); }

} // namespace kiln
