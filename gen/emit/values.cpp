// ValueEmitter: operations as device text, with the rewrites that the hardware rewards.
#include "gen/emit/values.h"
#include "gen/emit/device_text.h"
#include "gen/emit/line_marks.h"
#include "gen/emit/row_text.h"
#include "gen/error.h"
#include "gen/spec/math.h"
#include "gen/spec/names.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

// Operations whose device function begins with a product by a constant, which takes f16 operands without conversion.
bool takes_f16(Op op) { return op == Op::exp || op == Op::sigmoid || op == Op::silu; }

} // namespace

std::string_view device_type(DType type) { return type == boolean ? "bool" : to_string(type); }

// One factor of a chain of products: a value, or the sigmoid of a value (from silu(x) = x * sigmoid(x)).
struct ValueEmitter::Factor {
  Expr expr;
  bool sigmoid = false;
};

ValueEmitter::ValueEmitter(const Body& body, const Target& target, const std::vector<Pass>& passes, std::string space)
    : body_(body), target_(target), passes_(passes), walker_(std::move(space)), feeds_sum_(body.values.size(), false),
      accumulators_(std::max(passes.size(), static_cast<std::size_t>(body.passes))), finders_(accumulators_), rankings_(accumulators_),
      running_(accumulators_) {
  for (const Value& v : body.values)
    if (v.expr.op() == Op::add || v.expr.op() == Op::sub)
      for (const Expr& operand : v.expr.operands())
        if (value(operand).uses == 1) feeds_sum_[static_cast<std::size_t>(index_of(operand))] = true;
}

std::string ValueEmitter::load_lane_inputs() {
  std::string text;
  outside_ = &text;
  for (const std::string& index : indices()) {
    const RowArguments at = row_arguments(body_, body_.tensor(index));
    text += fmt::format("  const NamedRow {} = row.named({});\n", named_row(body_, index), at.text());
  }
  for (const Value& v : body_.values) {
    if (v.expr.op() == Op::input && v.uses == 0) continue; // an index, or what only views read
    if (v.extent == Extent::row && v.uses > 0 && (v.expr.op() == Op::iota || view_of(v.expr))) load_of_row(v);
    if (v.expr.op() != Op::input || v.extent > Extent::row) continue;
    const TensorPlan& t = body_.tensor(v.expr->name);
    const std::string* const variable = loaded(t.name);
    const std::string load = variable                     ? *variable
                             : v.extent == Extent::scalar ? fmt::format("{}.scalar({})", walker_, beginning(t))
                                                          : fmt::format("row.of_row({})", row_arguments(body_, t).text());
    known_in_kernel_[&v.expr.node()] = line(lane_type(v.expr), v.expr, v.expr.dtype() == boolean ? load + " != 0.0f" : load);
  }
  outside_ = nullptr;
  return text;
}

// The inputs that name rows, each once.
std::vector<std::string> ValueEmitter::indices() const {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const Value& v : body_.values)
    if (const auto view = view_of(v.expr); view && v.uses > 0) add(view->index);
  for (const TensorPlan& t : body_.tensors) add(t.row_index);
  return names;
}

// The index of the row that an iota over rows counts.
std::string ValueEmitter::row_of_iota(const Value& v) const {
  if (v.extent == Extent::ranked) return "row.rank_index()";
  return body_.general_rows() ? outer_index(body_, static_cast<std::size_t>(v.counts)) : "row.index()";
}

// What a row has one of, and no input lies where the row does.
void ValueEmitter::load_of_row(const Value& v) {
  if (v.expr.op() == Op::iota) {
    known_in_kernel_[&v.expr.node()] = line("f32", v.expr, fmt::format("static_cast<f32>({})", row_of_iota(v)));
    return;
  }
  const View view = *view_of(v.expr);
  const RowArguments at = named_row_arguments(body_, body_.tensor(view.tensor), gathered_row(body_, view));
  known_in_kernel_[&v.expr.node()] =
      line(lane_type(v.expr), v.expr, fmt::format("{}.is_named ? row.of_row({}) : 0", named_row(body_, view.index), at.text()));
}

PassText ValueEmitter::pass_body(int p) {
  PassText text;
  outside_ = states_ = &text.before;
  inside_ = &text.inside;
  known_in_pass_.clear();
  const Pass& pass = passes_[static_cast<std::size_t>(p)];
  for (const int index : pass.takes) known_in_pass_[&body_.value(index).expr.node()] = kept_chunk(index);
  for (const Value& v : body_.values) {
    if (const OpKind kind = info(v.expr.op()).kind; v.level == p + 1 && (kind == OpKind::rank || kind == OpKind::pick))
      rank_in_pass(v.expr, text);
    if (sums_pieces(v) && v.level == p + 1) scan_pieces_in_pass(v.expr, text);
    if (info(v.expr.op()).kind == OpKind::row_reduce && v.level == p + 1 && value(v.expr.operands()[0]).level <= p) {
      const std::string accumulator = unique_name(fmt::format("acc{}", index_of(v.expr)));
      (finds_column(v.expr.op()) ? finders_ : accumulators_)[static_cast<std::size_t>(p)].push_back(accumulator);
      text.before +=
          fmt::format("  {}<{}> {};\n", finds_column(v.expr.op()) ? "ArgAccumulator" : "Accumulator", reducer(v.expr.op()), accumulator);
      reduce_in_pass(v.expr);
    }
  }
  for (const int stored_here : pass.stores) {
    const Output& output = body_.outputs[static_cast<std::size_t>(stored_here)];
    const TensorPlan& t = body_.tensor(output.name);
    if (t.extent == Extent::element)
      text.inside += fmt::format("    {}.store(at, {});{}\n", unique_name("to_" + t.name), stored(output.value, t.dtype),
                                 line_mark(output.value->line));
    else {
      const std::string number = stored_number(output.value);
      const RowArguments to = row_arguments(body_, t);
      const std::string verb = t.transposed ? "store_of_group_transposed" : "store_of_group";
      text.inside += fmt::format("    {}row.{}<{}>(at, {}, {}{});{}\n", condition(t), verb, t.group, to.pointer, number,
                                 t.transposed ? ", " + size_text(body_.outer_dims) : to.rest, line_mark(output.value->line));
    }
  }
  for (const int index : pass.keeps) {
    const Expr& expr = body_.value(index).expr;
    text.inside += fmt::format("    {}.put(at, {});\n", unique_name(fmt::format("kept{}", index)), chunk(expr));
  }
  inside_ = nullptr;
  outside_ = nullptr;
  return text;
}

std::string ValueEmitter::section_outputs(int level) {
  std::string text;
  outside_ = &text;
  for (const Output& output : body_.outputs) {
    const TensorPlan& t = body_.tensor(output.name);
    if ((t.extent != Extent::row && t.extent != Extent::ranked) || value(output.value).level != level) continue;
    const std::string number = stored_number(output.value);
    const RowArguments to = row_arguments(body_, t);
    if (t.extent == Extent::ranked) {
      text += fmt::format("  {}row.store_ranks<{}>({}, {}{});{}\n", condition(t), t.group, to.pointer, number, to.rest,
                          line_mark(output.value->line));
      continue;
    }
    text += fmt::format("  {}row.store_of_row({}, {}{});{}\n", condition(t), to.pointer, number, to.rest, line_mark(output.value->line));
  }
  outside_ = nullptr;
  return text;
}

std::string ValueEmitter::condition(const TensorPlan& output) const {
  return output.row_index.empty() ? "" : fmt::format("if ({}) ", scatters(body_, output));
}

std::string ValueEmitter::kept_chunk(int index) const {
  const Expr& expr = body_.value(index).expr;
  return expr.op() == Op::input ? expr->name : variable(expr);
}

std::string ValueEmitter::variable(const Expr& expr) const { return unique_name(fmt::format("v{}", index_of(expr))); }

std::string ValueEmitter::unique_name(std::string base) const { return unused_name(std::move(base), body_.names); }

std::string ValueEmitter::line(std::string_view type, const Expr& expr, const std::string& text) {
  const bool in_pass = value(expr).extent > Extent::ranked;
  std::string& place = in_pass ? *inside_ : *outside_;
  place += fmt::format("{}const {} {} = {};{}\n", in_pass ? "    " : "  ", type, variable(expr), text, line_mark(expr->line));
  return variable(expr);
}

std::string_view ValueEmitter::lane_type(const Expr& expr) const {
  return expr.dtype() == boolean ? lane_truth_ : expr.dtype() == i32 ? "i32" : "f32";
}

bool ValueEmitter::has_memory_type(const Expr& expr) const {
  if (is_lane(expr) || expr.dtype() == boolean) return false;
  if (expr.dtype() == i32) return true;
  if (pairs_in_lane(expr) || pairs_in_wave(expr)) return has_memory_type(expr.operands()[0]);
  return expr.op() == Op::input || expr.op() == Op::cast || view_of(expr);
}
bool ValueEmitter::is_f16_chunk(const Expr& expr) const { return has_memory_type(expr) && expr.dtype() == f16; }

// ---- representations

std::string ValueEmitter::lane(const Expr& expr) {
  if (expr.op() == Op::constant) return expr.dtype() == i32 ? whole_literal(expr->whole) : literal(expr->value);
  auto& known = value(expr).extent > Extent::ranked ? known_in_pass_ : known_in_kernel_;
  if (const auto found = known.find(&expr.node()); found != known.end()) return found->second;
  const std::string result = compute_lane(expr);
  return known[&expr.node()] = result;
}

std::string ValueEmitter::chunk(const Expr& expr) {
  if (const auto found = known_in_pass_.find(&expr.node()); found != known_in_pass_.end()) return found->second;
  const std::string result = compute_chunk(expr);
  return known_in_pass_[&expr.node()] = result;
}

std::string ValueEmitter::numbers(const Expr& expr) {
  if (expr.dtype() == boolean) throw InternalError("a bool where a number is needed");
  if (is_lane(expr)) return expr.dtype() == i32 ? fmt::format("static_cast<f32>({})", lane(expr)) : lane(expr);
  if (pairs_in_lane(expr) && !known_in_pass_.contains(&expr.node()))
    return fmt::format("swap_partners<{}>({})", expr->step, numbers(expr.operands()[0])); // names of registers
  const std::string text = chunk(expr);
  return has_memory_type(expr) && expr.dtype() != f32 ? fmt::format("to<f32>({})", text) : text;
}

std::string ValueEmitter::integers(const Expr& expr) { return is_lane(expr) ? lane(expr) : chunk(expr); }

std::string ValueEmitter::stored_number(const Expr& expr) {
  if (expr.dtype() == i32) return lane(expr);
  return expr.dtype() == boolean ? fmt::format("{} ? 1.0f : 0.0f", lane(expr)) : numbers(expr);
}

std::string ValueEmitter::truth(const Expr& expr) {
  if (is_lane(expr)) return lane(expr);
  const std::string text = chunk(expr);
  return expr.op() == Op::input ? fmt::format("ne(to<f32>({}), 0.0f)", text) : text;
}

std::string ValueEmitter::vector(const Expr& expr) {
  return is_lane(expr) ? fmt::format("Vec<f32, config.vec>({})", numbers(expr)) : numbers(expr);
}

std::string ValueEmitter::stored(const Expr& expr, DType type) {
  if (type == boolean) {
    if (!is_lane(expr)) return expr.op() == Op::input ? chunk(expr) : fmt::format("to<bool>({})", chunk(expr));
    return fmt::format("to<bool>(Vec<f32, config.vec>({} ? 1.0f : 0.0f))", lane(expr));
  }
  if (has_memory_type(expr) && expr.dtype() == type) return chunk(expr);
  if (expr.dtype() == i32 && type == i32) return fmt::format("Vec<i32, config.vec>({})", lane(expr));
  return type == f32 ? vector(expr) : fmt::format("to<{}>({})", device_type(type), vector(expr));
}

// ---- values

std::string ValueEmitter::compute_lane(const Expr& expr) {
  switch (info(expr.op()).kind) {
  case OpKind::leaf: {
    if (expr.op() == Op::scalar) return expr->name;
    const TensorPlan& t = body_.tensor(expr->name); // a group input; the others are loaded at the start
    const std::string load = fmt::format("row.of_group<{}>(at, {})", t.group, row_arguments(body_, t).text());
    return line(lane_type(expr), expr, expr.dtype() == boolean ? load + " != 0.0f" : load);
  }
  case OpKind::cast: {
    const Expr& from = expr.operands()[0];
    if (expr.dtype() == boolean) return line(lane_truth_, expr, fmt::format("!({} == 0.0f)", numbers(from)));
    if (const auto rule = scale_rule(expr))
      return line("f32", expr, fmt::format("power_over<{}>({})", rule->exponent, numbers(rule->magnitude)));
    const std::string number = from.dtype() == boolean ? fmt::format("({} ? 1.0f : 0.0f)", truth(from)) : numbers(from);
    if (expr.dtype() == f32) return line("f32", expr, number);
    if (expr.dtype() == i32 && from.op() == Op::iota)
      return line("i32", expr, fmt::format("static_cast<i32>({})", row_of_iota(value(from))));
    return line(lane_type(expr), expr,
                fmt::format("rounded{}<{}>({})", expr->saturate ? "" : "_nonsaturating", device_type(expr.dtype()), number));
  }
  case OpKind::view: // a partner, of the same group or another one
    if (value(expr).group % (2 * expr->step) == 0) return lane(expr.operands()[0]);
    return line(lane_type(expr), expr, fmt::format("partners_of_group<{}, config.vec>({})", expr->step, lane(expr.operands()[0])));
  case OpKind::ungroup: return lane(expr.operands()[0]);
  case OpKind::group_reduce: return line("f32", expr, group_reduction(expr));
  case OpKind::scaled: return line("f32", expr, scaled(expr));
  case OpKind::row_reduce: return reduction_of_row(expr);
  case OpKind::position: return line("f32", expr, "static_cast<f32>(row.rank_index())"); // one a rank: those of rows are loaded
  case OpKind::scan:
    if (value(expr).extent == Extent::row) return line("f32", expr, numbers(expr.operands()[0])); // one rank
    return line("f32", expr, fmt::format("row.sum_up_to_rank<{}>({})", value(expr).group, numbers(expr.operands()[0])));
  case OpKind::rank: return unique_name(fmt::format("top{}", index_of(expr))) + ".columns";
  case OpKind::pick: {
    const std::string from = unique_name(fmt::format("picked{}", index_of(expr)));
    return line("f32", expr, fmt::format("{}.at({})", from, lane(expr.operands()[1])));
  }
  default: return line(lane_type(expr), expr, operation(expr));
  }
}

std::string ValueEmitter::compute_chunk(const Expr& expr) {
  switch (info(expr.op()).kind) {
  case OpKind::leaf: return expr->name; // a stream of this pass: a parameter of its body
  case OpKind::cast: return cast_chunk(expr);
  case OpKind::ungroup: return chunk(expr.operands()[0]);
  case OpKind::position: return line("auto", expr, position(expr, 0));
  case OpKind::scaled: return line("auto", expr, scaled(expr));
  case OpKind::scan: return scan(expr);
  case OpKind::view: // a stream of this pass, unless it is a partner
    if (pairs_in_lane(expr)) return line("auto", expr, fmt::format("swap_partners<{}>({})", expr->step, chunk(expr.operands()[0])));
    if (pairs_in_wave(expr)) return line("auto", expr, fmt::format("partners<{}>({})", expr->step, chunk(expr.operands()[0])));
    if (pairs_positions(expr)) return line("auto", expr, position(expr.operands()[0], expr->step));
    return variable(expr);
  default: return line("auto", expr, expr.op() == Op::mul ? product(expr) : operation(expr));
  }
}

// A function of the column, or of that of its partner.
std::string ValueEmitter::position(const Expr& expr, std::int64_t partner) {
  const std::string map = partner ? fmt::format("ColumnMap{{.partner = {}}}", partner) : "ColumnMap{}";
  return expr.op() == Op::iota ? fmt::format("row.columns_at<{}>(at)", map) : fmt::format("row.signs_at<{}, {}>(at)", expr->step, map);
}

std::string ValueEmitter::cast_chunk(const Expr& expr) {
  const Expr& from = expr.operands()[0];
  if (from.dtype() == boolean) {
    const std::string number = fmt::format("to<f32>({})", truth(from));
    return line("auto", expr, expr.dtype() == f32 ? number : fmt::format("to<{}>({})", device_type(expr.dtype()), number));
  }
  if (expr.dtype() == boolean) return line("auto", expr, fmt::format("logical_not(eq({}, 0.0f))", numbers(from)));
  if (expr.dtype() == i32 && from.op() == Op::iota) return line("auto", expr, "row.integer_columns_at(at)");
  // f16 arithmetic rounds once where f32 arithmetic and the cast round twice, to the same number: 24 >= 2 * 11 + 2 bits.
  const bool packed = expr.dtype() == f16 && value(from).uses == 1 &&
                      (from.op() == Op::add || from.op() == Op::sub || from.op() == Op::mul) && is_f16_chunk(from.operands()[0]) &&
                      is_f16_chunk(from.operands()[1]) && !known_in_pass_.contains(&from.node());
  if (packed) return line("auto", expr, call(from, {chunk(from.operands()[0]), chunk(from.operands()[1])}));
  if (expr.dtype() == f32) return line("auto", expr, numbers(from));
  if (from.op() == Op::scale_down && is_mx_element(expr.dtype()) && expr->saturate) {
    const std::string x = vector(from.operands()[0]), scale = numbers(from.operands()[1]);
    const char* const rule = is_scale_of_blocks(from.operands()[1], from.operands()[0]) ? ", by_rule" : "";
    return line("auto", expr, fmt::format("to_scaled<{}{}>({}, {})", device_type(expr.dtype()), rule, x, scale));
  }
  return line("auto", expr, fmt::format("to{}<{}>({})", expr->saturate ? "" : "_nonsaturating", device_type(expr.dtype()), numbers(from)));
}

// Elements of MX formats as they lie in memory: an instruction converts and scales them at once.
std::string ValueEmitter::scaled(const Expr& expr) {
  const Expr& x = expr.operands()[0];
  const bool as_stored = expr.op() == Op::scale_up && has_memory_type(x) && is_mx_element(x.dtype());
  const std::string scaled = as_stored ? chunk(x) : numbers(x), scale = numbers(expr.operands()[1]);
  return fmt::format("{}({}, {})", info(expr.op()).name, scaled, scale);
}

std::string ValueEmitter::operation(const Expr& expr) {
  const OpInfo& op = info(expr.op());
  const bool whole = takes_integers(expr);
  std::vector<std::string> operands;
  for (std::size_t i = 0; i < expr.operands().size(); ++i) {
    const Expr& operand = expr.operands()[i];
    if (op.kind == OpKind::logic || (op.kind == OpKind::select && i == 0)) operands.push_back(truth(operand));
    else if (whole) operands.push_back(integers(operand));
    else if (takes_f16(expr.op()) && is_f16_chunk(operand)) operands.push_back(chunk(operand));
    else operands.push_back(numbers(operand));
  }
  if (whole && op.kind != OpKind::integer) return fmt::format("{}_i32({})", op.name, fmt::join(operands, ", "));
  return call(expr, operands);
}

// The device text of the operation.
std::string ValueEmitter::call(const Expr& expr, const std::vector<std::string>& operands) {
  const std::string text{info(expr.op()).device};
  const auto at = [&](std::size_t i) { return i < operands.size() ? operands[i] : std::string(); };
  return fmt::format(fmt::runtime(text), at(0), at(1), at(2));
}

// A chain of products with f16 factors: two f16 numbers multiply exactly in f32, without conversion, so they go first.
// Never worse than the order of the spec: an exact product neither rounds nor overflows.
std::string ValueEmitter::product(const Expr& expr) {
  std::vector<Factor> factors;
  collect_factors(expr, true, factors);
  std::vector<std::string> halves, others;
  for (const Factor& f : factors) {
    if (f.sigmoid) others.push_back(fmt::format("sigmoid({})", is_f16_chunk(f.expr) ? chunk(f.expr) : numbers(f.expr)));
    else if (is_f16_chunk(f.expr)) halves.push_back(chunk(f.expr));
    else others.push_back(numbers(f.expr));
  }
  // A single product that is added to something becomes one fma with mixed operands all by itself.
  if (halves.empty() || (factors.size() == 2 && feeds_sum_[static_cast<std::size_t>(index_of(expr))])) return operation(expr);
  std::string text;
  for (std::size_t i = 0; i + 1 < halves.size(); i += 2) {
    const std::string pair = fmt::format("mixed_product({}, {})", halves[i], halves[i + 1]);
    text += text.empty() ? pair : " * " + pair;
  }
  std::size_t next = 0;
  if (halves.size() % 2) {
    if (text.empty()) text = fmt::format("mixed_product({}, {})", halves.back(), others[next++]);
    else text = fmt::format("mixed_product({}, {})", halves.back(), text);
  }
  for (; next < others.size(); ++next) text += " * " + others[next];
  return text;
}

void ValueEmitter::collect_factors(const Expr& expr, bool root, std::vector<Factor>& factors) {
  // Two elements of memory multiply exactly, which a chain through a third one may not.
  const auto is_bare = [&](const Expr& e) { return has_memory_type(e) && e.dtype() != f32; };
  const bool is_exact = expr.op() == Op::mul && std::ranges::all_of(expr.operands(), is_bare) &&
                        !std::ranges::all_of(expr.operands(), [&](const Expr& e) { return is_f16_chunk(e); });
  const bool opens = root || (!is_lane(expr) && value(expr).uses == 1 && !is_exact && !known_in_pass_.contains(&expr.node()));
  if (opens && expr.op() == Op::mul) {
    for (const Expr& operand : expr.operands()) collect_factors(operand, false, factors);
  } else if (opens && expr.op() == Op::silu && is_f16_chunk(expr.operands()[0])) {
    factors.push_back({expr.operands()[0]});
    factors.push_back({expr.operands()[0], true});
  } else {
    factors.push_back({expr});
  }
}

} // namespace kiln
