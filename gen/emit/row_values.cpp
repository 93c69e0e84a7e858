// ValueEmitter: reductions of rows, groups and ranks, and running sums.
#include "gen/emit/device_text.h"
#include "gen/emit/line_marks.h"
#include "gen/emit/values.h"
#include <fmt/format.h>

namespace kiln {

std::string ValueEmitter::group_reduction(const Expr& expr) {
  const std::string text = fmt::format("reduce_group<{}, {}>(at, {})", reducer(expr.op()), expr->group, vector(expr.operands()[0]));
  if (expr.op() != Op::group_mean) return text;
  if (body_.cols % expr->group == 0) return fmt::format("{} * {}", text, literal(1.0f / static_cast<float>(expr->group)));
  return fmt::format("{} / row.group_size<{}>(at)", text, expr->group);
}

// For the whole row, or for its ranks, which lie in the first lanes.
std::string ValueEmitter::reduction_of_row(const Expr& expr) {
  const Value& from = value(expr.operands()[0]);
  const bool is_mean = expr.op() == Op::row_mean;
  if (from.extent == Extent::ranked) {
    const std::string operand = numbers(from.expr);
    if (expr.op() == Op::row_argmax || expr.op() == Op::row_argmin)
      return line("f32", expr, fmt::format("row.find_rank<{}, {}>({})", reducer(expr.op()), from.group, operand));
    const std::string total = fmt::format("row.reduce_ranks<{}, {}>({})", reducer(expr.op()), from.group, operand);
    return line("f32", expr, is_mean ? fmt::format("{} * {}", total, literal(1.0f / static_cast<float>(from.group))) : total);
  }
  if (from.extent == Extent::row && from.level == value(expr).level) { // one rank
    if (expr.op() == Op::row_argmax || expr.op() == Op::row_argmin) return fmt::format("column_of_one({})", numbers(from.expr));
    return line("f32", expr, expr.op() == Op::row_absmax ? fmt::format("abs({})", numbers(from.expr)) : numbers(from.expr));
  }
  const std::string total = unique_name(fmt::format("acc{}", index_of(expr))) + ".total";
  return is_mean ? line("f32", expr, fmt::format("{} * {}", total, literal(1.0f / static_cast<float>(body_.cols)))) : total;
}

// What a pass collects for ranks: the elements to rank, or those to pick from.
void ValueEmitter::rank_in_pass(const Expr& expr, PassText& text) {
  const bool picks = expr.op() == Op::pick;
  const std::string name = unique_name(fmt::format("{}{}", picks ? "picked" : "top", index_of(expr)));
  if (picks) {
    text.before += fmt::format("  auto {} = row.picks<{}>();\n", name, index_of(expr));
  } else {
    text.before += fmt::format("  auto {} = row.ranking<{}>();\n", name, expr->step);
    rankings_[static_cast<std::size_t>(value(expr).level - 1)].push_back(name);
  }
  text.inside += fmt::format("    {}.put(at, {});{}\n", name, vector(expr.operands()[0]), line_mark(expr->line));
}

bool ValueEmitter::sums_pieces(const Value& v) const {
  return info(v.expr.op()).kind == OpKind::scan && v.extent == Extent::element && v.level > value(v.expr.operands()[0]).level;
}
// What a pass leaves for the running sums of the next one: the sums of a wave's pieces of the row.
void ValueEmitter::scan_pieces_in_pass(const Expr& expr, PassText& text) {
  const std::string name = unique_name(fmt::format("pieces{}", index_of(expr)));
  running_[static_cast<std::size_t>(value(expr).level - 1)].push_back(name);
  text.before += fmt::format("  const auto {} = row.pieces<{}>();\n", name, index_of(expr));
  text.inside += fmt::format("    {}.put(at, {});{}\n", name, vector(expr.operands()[0]), line_mark(expr->line));
}

// A sum that goes from chunk to chunk, in each pass that needs it anew; or one from the piece that a chunk is.
std::string ValueEmitter::scan(const Expr& expr) {
  if (sums_pieces(value(expr)))
    return line("auto", expr,
                fmt::format("{}.next(at, {})", unique_name(fmt::format("pieces{}", index_of(expr))), vector(expr.operands()[0])));
  const std::string state = unique_name(fmt::format("running{}", states_count_++));
  *states_ += fmt::format("  RunningSum {};\n", state);
  return line("auto", expr, fmt::format("{}.next(at, {})", state, vector(expr.operands()[0])));
}

void ValueEmitter::reduce_in_pass(const Expr& reduction) {
  const Expr& x = reduction.operands()[0];
  const std::string accumulator = unique_name(fmt::format("acc{}", index_of(reduction)));
  const bool sums = reduction.op() == Op::row_sum || reduction.op() == Op::row_mean;
  if (sums && x.op() == Op::mul && value(x).uses == 1 && !is_lane(x)) {
    const Expr &a = x.operands()[0], &b = x.operands()[1];
    const bool alike = has_memory_type(a) && has_memory_type(b) && a.dtype() == b.dtype();
    if (alike && (a.dtype() == f16 || (a.dtype() == bf16 && target_.has_dot2_bf16()))) {
      const std::string first = chunk(a), second = chunk(b); // in this order, whatever compiler builds Kiln
      *inside_ += fmt::format("    {}.add_products(at, {}, {});{}\n", accumulator, first, second, line_mark(reduction->line));
      return;
    }
  }
  const std::string columns = finds_column(reduction.op()) ? ", row.column(at)" : "";
  *inside_ += fmt::format("    {}.add(at, {}{});{}\n", accumulator, vector(x), columns, line_mark(reduction->line));
}

} // namespace kiln
