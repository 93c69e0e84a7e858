// GroupedGemm: the text of a kernel. The product is a verb, the epilogue its argument.
#include "gen/emit/line_marks.h"
#include "gen/emit/row_text.h"
#include "gen/emit/values.h"
#include "gen/families/grouped_gemm/grouped_gemm.h"
#include "gen/families/skinny_gemm/register_model.h"
#include "gen/families/skinny_gemm/skinny_gemm.h"
#include <fmt/ranges.h>

namespace kiln {
namespace {

std::string grouped_body(const Plan& plan, const Target& target) {
  const std::vector<Pass> passes = split_passes(plan.body);
  ValueEmitter values(plan.body, target, passes, "row");
  const Product& first = plan.products.front();
  const Dim& tokens = first.a.shape()[0];
  const std::string gemm = values.fresh("gemm");
  std::string text =
      fmt::format("  GroupedGemm<config, {}, {}> {}({}, {}, {}, {}, {}, {}, {});\n", device_type(first.a.dtype()), weights_type(first),
                  gemm, first.a->name, tokens.is_dynamic() ? tokens.name() : fmt::format("{}u", tokens.size()), first.sorted[0]->name,
                  first.sorted[1]->name, workspace_name(plan), first.sums_experts() ? first.sorted[2]->name : "nullptr",
                  first.has_a_scale() ? first.scales[0]->name : "nullptr");
  std::vector<std::string> products, matrices;
  for (const Product& p : plan.products) {
    products.push_back("auto kiln_" + p.placeholder);
    matrices.push_back(weights_text(p));
  }
  return text + fmt::format("  {}.run([&](const auto& row, {}) KILN_LAMBDA {{{}\n{}  }}, {});\n", gemm, fmt::join(products, ", "),
                            line_mark(first.line), tile_epilogue(plan, values), fmt::join(matrices, ", "));
}

} // namespace

KernelSource GroupedGemm::emit(const Plan& plan, const Config& c, const Target& target) {
  constexpr std::int64_t all = max_dim_size; // the grid does not depend on the number of tokens
  return assemble(plan, target,
                  {.door = std::string(name),
                   .config = config_text(c, "GroupedGemmConfig"),
                   .threads = "config.threads()",
                   .attributes = gemm_without_agprs(c.tile) ? "KILN_VGPRS_ONLY " : "",
                   .body = grouped_body(plan, target),
                   .access = {.vec = c.tile.vec},
                   .threads_per_block = c.threads(),
                   .units_per_block = all,
                   .blocks_per_unit = c.tile.workgroups,
                   .workspace_bytes = c.workspace_bytes()});
}

} // namespace kiln
