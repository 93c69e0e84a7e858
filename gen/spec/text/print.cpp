// The canonical text of a KernelSpec. Grammar: gen/spec/text/parse.cpp.
#include "gen/spec/graph.h"
#include "gen/spec/spec.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kiln {
namespace {

constexpr int max_levels = 100; // half of what the parser takes

// How tightly an expression holds together; an operand that holds less tightly than its place demands gets parentheses.
enum Precedence { sum = 1, product = 2, unary = 3, primary = 4 };

struct Printed {
  std::string text;
  int precedence;
};

class SpecPrinter {
public:
  // SpecGraph merges equal nodes, so that the text does not depend on how often an expression was spelled.
  explicit SpecPrinter(const KernelSpec& spec) : graph_(spec) {
    for (const Expr& node : graph_.nodes)
      for (const Expr& operand : node.operands()) ++uses_[&operand.node()];
    for (const Output& output : graph_.spec.outputs()) ++uses_[&output.value.node()];
    name_deep_ones();
  }

  std::string print() {
    out_ = fmt::format("kernel {}\n", graph_.spec.name());
    std::vector<Dim> dims = graph_.dynamic_dims;
    for (const Expr& node : graph_.nodes) // an iota may have one that no input has, which make_plan refuses
      for (const Dim& dim : node.shape())
        if (dim.is_dynamic() && std::ranges::find(dims, dim) == dims.end()) dims.push_back(dim);
    for (const Dim& dim : dims) out_ += fmt::format("dim {}\n", dim.text());
    for (const Expr& input : graph_.inputs)
      out_ += fmt::format("input {}: {}{}\n", input->name, declared_type(input.dtype(), input.shape()), suffix(input->layout));
    for (const Expr& scalar : graph_.scalars) out_ += fmt::format("scalar {}: {}\n", scalar->name, to_string(scalar.dtype()));
    for (const Expr& node : graph_.nodes) {
      if (!is_shared(node)) continue;
      begin_line();
      const std::string value = expression(node).text;
      const std::string let = fresh_name();
      out_ += fmt::format("let {} = {}\n", let, value);
      lets_.emplace(&node.node(), let);
    }
    for (const Output& output : graph_.spec.outputs()) print_output(output);
    return out_;
  }

  // The spec of which print() gave the text, with the line of each node.
  KernelSpec numbered() const {
    std::unordered_map<const Node*, Expr> copies;
    for (const Expr& node : graph_.nodes) {
      Node copy = node.node();
      if (const auto line = lines_.find(&node.node()); line != lines_.end()) copy.line = line->second;
      for (Expr& operand : copy.operands) operand = copies.at(&operand.node());
      copies.emplace(&node.node(), Expr(std::move(copy)));
    }
    KernelSpec result(graph_.spec.name());
    for (const Output& output : graph_.spec.outputs())
      result.output(output.name, output.dtype, copies.at(&output.value.node()),
                    {.in_place_of = output.in_place_of, .layout = output.layout});
    return result;
  }

private:
  void name_deep_ones() {
    std::unordered_map<const Node*, int> levels; // below each node, down to those that have names
    for (const Expr& node : graph_.nodes) {
      int below = 0;
      for (const Expr& operand : node.operands())
        if (!is_shared(operand)) below = std::max(below, 1 + levels.at(&operand.node()));
      levels[&node.node()] = below;
      if (below == max_levels) deep_.insert(&node.node());
    }
  }

  // What is used twice has a name, and what would nest deeper than the parser takes.
  bool is_shared(const Expr& node) const {
    return (info(node.op()).arity > 0 && uses_.at(&node.node()) > 1) || deep_.contains(&node.node());
  }

  void begin_line() { line_ = 1 + static_cast<int>(std::ranges::count(out_, '\n')); }

  std::string fresh_name() {
    while (true)
      if (auto name = fmt::format("t{}", ++last_let_); !graph_.names.contains(name)) return name;
  }

  // Dims by name alone: their bounds are in their declarations.
  static std::string extents(const Shape& shape) {
    std::string dims;
    for (const Dim& dim : shape) dims += (dims.empty() ? "" : ", ") + (dim.is_dynamic() ? dim.name() : dim.text());
    return fmt::format("[{}]", dims);
  }
  static std::string declared_type(DType type, const Shape& shape) { return fmt::format("{}{}", to_string(type), extents(shape)); }

  void print_output(const Output& output) {
    // The rounding to the output's type goes without saying, unless it is shared or special.
    const Expr& value = output.value;
    begin_line();
    lines_.try_emplace(&value.node(), line_);
    const bool implied = value.op() == Op::cast && value->saturate && !is_shared(value);
    out_ += fmt::format("output {}: {} = {}", output.name, declared_type(output.dtype, value.shape()),
                        reference(implied ? value.operands()[0] : value).text);
    if (!output.in_place_of.empty()) out_ += fmt::format(" in_place_of {}", output.in_place_of);
    out_ += fmt::format("{}\n", suffix(output.layout));
  }

  // A node where it is used: by its name if it has one.
  Printed reference(const Expr& node) {
    if (const auto let = lets_.find(&node.node()); let != lets_.end()) return {let->second, primary};
    return expression(node);
  }

  std::string operand(const Expr& node, int demanded) {
    const Printed printed = reference(node);
    return printed.precedence < demanded ? fmt::format("({})", printed.text) : printed.text;
  }

  Printed infix(const Expr& node, char symbol, Precedence level) {
    // Operators group to the left, so the right operand has to hold more tightly.
    const std::string left = operand(node.operands()[0], level), right = operand(node.operands()[1], level + 1);
    return {fmt::format("{} {} {}", left, symbol, right), level};
  }

  static Printed constant_text(float value) {
    if (std::isnan(value)) return {"nan", primary};
    return {fmt::format("{}", value), std::signbit(value) ? unary : primary};
  }

  Printed expression(const Expr& node) {
    lines_.try_emplace(&node.node(), line_);
    switch (node.op()) {
    case Op::input:
    case Op::scalar: return {node->name, primary};
    case Op::constant:
      return node.dtype() == i32 ? Printed{fmt::format("{}", node->whole), node->whole < 0 ? unary : primary} : constant_text(node->value);
    case Op::add: return infix(node, '+', sum);
    case Op::sub: return infix(node, '-', sum);
    case Op::mul: return infix(node, '*', product);
    case Op::div: return infix(node, '/', product);
    case Op::neg: return {"-" + operand(node.operands()[0], unary), unary};
    default: return call(node);
    }
  }

  Printed call(const Expr& node) {
    std::string arguments;
    if (node.op() == Op::cast) arguments = to_string(node.dtype());
    for (const Expr& each : node.operands()) arguments += (arguments.empty() ? "" : ", ") + reference(each).text;
    if (node.op() == Op::iota) arguments = extents(node.shape());
    if (node.op() == Op::pair_sign) arguments = node.shape().back().text();
    if (node->step != 0) arguments += fmt::format(", {}", node->step);
    if (node->checked) arguments += ", checked";
    if (node->duplicates) arguments += ", duplicates";
    if (node->group != 0) arguments += fmt::format(", {}", node->group);
    if (node.op() == Op::columns) arguments += fmt::format(", {}, {}", node->first, node.shape().back().size());
    if (node.op() == Op::ungroup_rows) arguments += fmt::format(", {}", (node.shape().end() - 2)->text());
    if (node.op() == Op::unstack) arguments += fmt::format(", {}", node->first);
    if (node.op() == Op::ungroup) arguments += fmt::format(", {}", node.shape().back().size());
    const std::string_view function = node.op() == Op::cast && !node->saturate ? "cast_nonsaturating" : info(node.op()).name;
    return {fmt::format("{}({})", function, arguments), primary};
  }

  SpecGraph graph_;
  std::unordered_map<const Node*, int> uses_;
  std::unordered_set<const Node*> deep_;
  std::unordered_map<const Node*, std::string> lets_;
  std::unordered_map<const Node*, int> lines_; // each node's first
  int line_ = 1;                               // the one that is being printed
  int last_let_ = 0;
  std::string out_;
};

} // namespace

std::string to_text(const KernelSpec& spec) { return SpecPrinter(spec).print(); }

KernelSpec with_lines(const KernelSpec& spec) {
  SpecPrinter printer(spec);
  printer.print();
  return printer.numbered();
}

} // namespace kiln
