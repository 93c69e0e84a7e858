// Ranked rows: what their kernels may compute.
#include "gen/families/common/ranks.h"
#include "gen/error.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {

const Expr& top_of(const Body& body) {
  return std::ranges::find_if(body.values, [](const Value& v) { return v.expr.op() == Op::row_top; })->expr;
}
const TensorPlan& ranked_tensor(const Body& body) { return body.tensor(top_of(body).operands()[0]->name); }

void refuse_ranks(const Body& body, const std::string& fact, const std::string& remedy) {
  throw UserError(fmt::format("kernel '{}'", body.kernel),
                  fmt::format("it ranks {} columns and takes {} of them, and {}", body.cols, top_of(body)->step, fact), remedy);
}

void require_ranked_inputs(const Body& body) {
  for (const Value& v : body.values) {
    const OpKind kind = info(v.expr.op()).kind;
    if ((kind == OpKind::rank || kind == OpKind::pick) && v.expr.operands()[0].op() != Op::input)
      refuse_ranks(body, fmt::format("'{}' takes a '{}'", info(v.expr.op()).name, info(v.expr.operands()[0].op()).name),
                   "give it an input, and compute with what was picked; or at most 16 ranks of 1024 columns");
    if (kind == OpKind::rank && !v.expr.same_node(top_of(body)))
      refuse_ranks(body, "there is another row_top", "rank once in a kernel, or at most 16 of 1024 columns");
  }
  for (const Value& v : body.values) {
    if (v.extent > Extent::ranked && v.expr.op() != Op::input)
      refuse_ranks(body, fmt::format("'{}' is one a {}", info(v.expr.op()).name, to_string(v.extent)),
                   "compute what is one a column in another kernel");
    if (v.extent > Extent::ranked && v.expr.dtype() == boolean) refuse_ranks(body, "an input is bool", "give it numbers");
  }
  for (const TensorPlan& t : body.tensors)
    if ((t.output && (t.extent > Extent::ranked || !t.row_index.empty())) || t.named_rows || is_packed(t.dtype))
      refuse_ranks(body, fmt::format("'{}' is one a {}, or rows by index", t.name, to_string(t.extent)),
                   "compute one value a rank, or one a row; and what is one a column in another kernel");
}

} // namespace kiln
