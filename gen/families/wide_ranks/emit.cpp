// WideRanks: the text of kernels that rank wide rows.
#include "gen/emit/row_text.h"
#include "gen/emit/values.h"
#include "gen/families/rowwise/cluster.h"
#include "gen/families/wide_ranks/wide_ranks.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

std::string row_of(const Body& body, const Expr& input) { return row_stream(body, body.tensor(input->name)); }

std::string kernel_body(const Plan& plan, const WideRanksConfig& c, const Target& target) {
  const Body& body = plan.body;
  const std::vector<Pass> none;
  ValueEmitter values(body, target, none, "row");
  std::string text =
      fmt::format("  const WideRanks<config> row({}, {});\n", size_text(body.outer_dims), c.tiles > 1 ? workspace_name(plan) : "nullptr");
  text += outer_indices(body);
  for (const Value& v : body.values) {
    if (v.expr.op() != Op::row_top) continue;
    text += fmt::format("  if (!row.read({})) return;\n", row_of(body, v.expr.operands()[0]));
    text += values.load_lane_inputs(); // near before they are needed
    text += fmt::format("  const auto {} = row.rank({});\n", values.unique_name(fmt::format("top{}", body.index_of(v.expr))),
                        row_of(body, v.expr.operands()[0]));
  }
  for (const Value& v : body.values)
    if (v.expr.op() == Op::pick)
      text += fmt::format("  [[maybe_unused]] const auto {} = row.picks({});\n",
                          values.unique_name(fmt::format("picked{}", body.index_of(v.expr))), row_of(body, v.expr.operands()[0]));
  text += "  if (row.is_beyond_ranks()) return;\n";
  int levels = 0;
  for (const Value& v : body.values) levels = std::max(levels, v.level);
  for (int level = 0; level <= levels; ++level) text += values.section_outputs(level);
  return text;
}

} // namespace

KernelSource WideRanks::emit(const Plan& plan, const Config& c, const Target& target) {
  return assemble(plan, target,
                  {.header = std::string(name),
                   .config = config_text(c, "WideRanksConfig"),
                   .threads = "config.threads()",
                   .body = kernel_body(plan, c, target),
                   .access = {.vec = c.vec, .ragged = c.streamed().ragged()},
                   .threads_per_block = c.threads(),
                   .units_per_block = 1,
                   .blocks_per_unit = c.tiles,
                   .workspace_bytes = c.tiles > 1 ? max_rows(plan.body).value_or(0) * c.workspace_words() * 4 : 0});
}

} // namespace kiln
