// Ranks and running sums: construction of their nodes, and what their operands must be.
#include "gen/error.h"
#include "gen/spec/math.h"
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace kiln {
namespace {

std::string rank_subject(Op op) { return fmt::format("operation '{}'", info(op).name); }

// The columns of a row, which are a number.
std::int64_t row_columns(Op op, const Expr& x) {
  if (x.shape().empty())
    throw UserError(rank_subject(op), "its operand has shape [], one value for all", "give it a value of shape [rows, cols]");
  if (x.dtype() == boolean) throw UserError(rank_subject(op), "its operand is bool", "use cast(f32, ...) to compute with 0 and 1");
  const Dim& last = x.shape().back();
  if (last.is_dynamic())
    throw UserError(rank_subject(op), fmt::format("the last dimension of {} is known only at launch", to_text(x.shape())),
                    "give it a number: kernels are specialised for their columns");
  return last.size();
}

} // namespace

Expr row_top(Expr x, std::int64_t k) {
  const std::int64_t cols = row_columns(Op::row_top, x);
  if (cols > max_ranked_columns)
    throw UserError(rank_subject(Op::row_top), fmt::format("a row has {} columns", cols),
                    fmt::format("use at most {}", max_ranked_columns));
  if (k < 1 || k > cols)
    throw UserError(rank_subject(Op::row_top), fmt::format("it takes {} of {} columns", k, cols), fmt::format("use 1 to {}", cols));
  Shape shape = x.shape();
  shape.back() = k;
  return Expr(Node{.op = Op::row_top, .dtype = f32, .shape = std::move(shape), .operands = {std::move(x)}, .step = k});
}

Expr pick(Expr x, Expr top) {
  if (top.op() != Op::row_top)
    throw UserError(rank_subject(Op::pick), fmt::format("its second operand is a '{}'", info(top.op()).name),
                    "give it a row_top: columns are known to the kernel only from there");
  const std::int64_t cols = row_columns(Op::pick, x);
  const Expr& ranked = top.operands()[0];
  if (!same_size(ranked.shape().back(), cols))
    throw UserError(rank_subject(Op::pick),
                    fmt::format("its operand has {} columns, and the row_top is of {}", cols, to_text(ranked.shape())),
                    "give both the same columns");
  Shape shape = broadcast(info(Op::pick).name, x.shape(), ranked.shape());
  shape.back() = top.shape().back();
  return Expr(Node{.op = Op::pick, .dtype = f32, .shape = std::move(shape), .operands = {std::move(x), std::move(top)}});
}

Expr row_cumsum(Expr x) {
  row_columns(Op::row_cumsum, x);
  Shape shape = x.shape();
  return Expr(Node{.op = Op::row_cumsum, .dtype = f32, .shape = std::move(shape), .operands = {std::move(x)}});
}

Expr row_logsumexp(const Expr& x) {
  constexpr double largest = std::numeric_limits<float>::max();
  const Expr most = clamp(row_max(x), -largest, largest); // an infinite one would make NaN of itself
  return log(row_sum(exp(x - most))) + most;
}

} // namespace kiln
