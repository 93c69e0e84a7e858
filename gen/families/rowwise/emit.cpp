// Rowwise: the text of kernels that walk rows, in passes with reductions between them.
#include "gen/emit/row_text.h"
#include "gen/emit/values.h"
#include "gen/families/rowwise/cluster.h"
#include "gen/families/rowwise/rowwise.h"
#include <fmt/ranges.h>
#include <utility>

namespace kiln {
namespace {

class RowEmitter {
public:
  RowEmitter(const Body& body, const RowwiseConfig& config, const Target& target)
      : body_(body), config_(config), target_(target), passes_(rowwise_passes(body, config.residency)) {}

  // `row` and `leave`: see rows_text. `workspace`: the name of that argument, if workgroups share rows that are reduced.
  std::string kernel_body(const std::string& row, const std::string& leave, const std::string& workspace) {
    ValueEmitter values(body_, target_, passes_, "row");
    const bool cluster = is_cluster(body_, config_);
    std::string text;
    if (config_.rows_per_block > 1) text += fmt::format("  if (row.beyond()) {};\n", leave);
    text += outer_indices(body_);
    text += values.load_lane_inputs();
    for (const Output& output : body_.outputs)
      if (const TensorPlan& t = body_.tensor(output.name); t.extent == Extent::element)
        text += fmt::format("  const auto {} = {};\n", values.fresh("to_" + t.name), row_stream(body_, t));
    text += rings(values, 0);
    int reductions = 0, places = 0;
    const auto verb = [&](std::string_view name, std::size_t count) {
      const std::string place = cluster ? fmt::format(", {}", std::exchange(places, places + static_cast<int>(count))) : "";
      return fmt::format("  row.{}<{}{}>", name, reductions++, place);
    };
    for (int p = 0; p < body_.passes; ++p) {
      const auto& pass = passes_[static_cast<std::size_t>(p)];
      text += values.section_outputs(p);
      if (!pass.roots.empty()) text += pass_text(values, p);
      std::vector<std::string> accumulators = values.accumulators(p);
      if (p + 1 < body_.passes) text += rings(values, p + 1);
      for (const std::string& ranking : values.rankings(p)) text += fmt::format("  row.rank({});\n", ranking);
      for (const std::string& finder : values.finders(p)) text += fmt::format("{}({});\n", verb("find", 1), finder);
      if (!accumulators.empty()) text += fmt::format("{}({});\n", verb("reduce", accumulators.size()), fmt::join(accumulators, ", "));
    }
    text += values.section_outputs(body_.passes);
    const std::string shared = cluster ? fmt::format(", {}, {}", workspace, cluster_reductions(body_)) : "";
    if (cluster && places > cluster_reductions(body_))
      throw InternalError("a cluster with more reductions than its workspace has places for");
    return fmt::format("  const Row<config> row({}{});\n", row, shared) + text;
  }

private:
  const Value& value(int index) const { return body_.value(index); }

  // Rings for what pass p reads, with their first loads: issued before the reduction of the pass before is waited for.
  std::string rings(const ValueEmitter& values, int p) const {
    std::string text;
    std::vector<std::string> names;
    for (const int index : passes_[static_cast<std::size_t>(p)].streams) {
      names.push_back(ring_name(values, index, p));
      text += fmt::format("  auto {} = row.ring({});\n", names.back(), stream(index));
    }
    if (!names.empty()) text += fmt::format("  row.fetch({});\n", fmt::join(names, ", "));
    return text;
  }
  std::string stream(int index) const {
    const Expr& expr = value(index).expr;
    return expr.op() == Op::input ? row_stream(body_, body_.tensor(expr->name)) : view_stream(body_, expr);
  }
  std::string ring_name(const ValueEmitter& values, int index, int p) const {
    const std::string name = values.stream_name(index);
    return values.fresh(p == 0 ? fmt::format("from_{}", name) : fmt::format("from_{}_{}", name, p));
  }

  std::string pass_text(ValueEmitter& values, int p) {
    const Pass& pass = passes_[static_cast<std::size_t>(p)];
    std::vector<std::string> parameters, sources;
    for (const int index : pass.streams) {
      parameters.push_back("auto " + values.stream_name(index));
      sources.push_back(ring_name(values, index, p));
    }
    for (const int index : pass.takes) {
      parameters.push_back("auto " + values.kept_chunk(index));
      sources.push_back(values.fresh(fmt::format("kept{}", index)));
    }
    const PassText body = values.pass_body(p);
    std::string text = body.before;
    for (const int index : pass.keeps)
      text += fmt::format("  auto {} = row.keep<{}, {}>();\n", values.fresh(fmt::format("kept{}", index)),
                          device_type(value(index).expr.dtype()), index);
    text += fmt::format("  row.pass([&](At at{}{}) KILN_LAMBDA {{\n{}  }}{}{});\n", parameters.empty() ? "" : ", ",
                        fmt::join(parameters, ", "), body.inside, sources.empty() ? "" : ", ", fmt::join(sources, ", "));
    return text;
  }

  const Body& body_;
  const RowwiseConfig& config_;
  const Target& target_;
  std::vector<Pass> passes_;
};

} // namespace

std::string rows_text(const Body& body, const RowwiseConfig& config, const Target& target, const std::string& row,
                      const std::string& leave) {
  return RowEmitter(body, config, target).kernel_body(row, leave, "");
}

KernelParts Rowwise::parts(const Plan& plan, const Config& c, const Target& target, const std::string& block) {
  const std::string rows = size_text(plan.body.outer_dims) + (block.empty() ? "" : ", " + block);
  return {.door = std::string(name),
          .config = config_text(c, "RowwiseConfig"),
          .threads = "config.threads()",
          .attributes = waves_per_eu_attribute(c.waves_per_eu),
          .body = RowEmitter(plan.body, c, target).kernel_body(rows, "return", workspace_name(plan)),
          .access = {.vec = c.vec, .ragged = c.ragged()},
          .threads_per_block = c.threads(),
          .units_per_block = c.rows_per_block,
          .blocks_per_unit = c.tiles,
          .workspace_bytes = is_cluster(plan.body, c) ? cluster_workspace_bytes(plan.body, c) : 0,
          .shares_rows = c.tiles > 1};
}

KernelSource Rowwise::emit(const Plan& plan, const Config& c, const Target& target) {
  return assemble(plan, target, parts(plan, c, target));
}

} // namespace kiln
