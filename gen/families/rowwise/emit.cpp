// Rowwise: the text of kernels that walk rows, in passes with reductions between them.
#include "gen/emit/row_text.h"
#include "gen/emit/values.h"
#include "gen/families/rowwise/cluster.h"
#include "gen/families/rowwise/rowwise.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace kiln {
namespace {

class RowEmitter {
public:
  RowEmitter(const Body& body, const RowwiseConfig& config, const Target& target)
      : body_(body), config_(config), passes_(rowwise_passes(body, config)), values_(body, target, passes_, "row"),
        cluster_(is_cluster(body, config)) {}

  // `row` and `leave`: see rows_text. `workspace`: the name of that argument, if workgroups share rows that are reduced.
  std::string kernel_body(const std::string& row, const std::string& leave, const std::string& workspace) {
    const std::string shared = cluster_ ? fmt::format(", {}, {}", workspace, cluster_reductions(body_)) : "";
    std::string text = fmt::format("  const Row<config> row({}{});\n", row, shared);
    if (config_.rows_per_block > 1) text += fmt::format("  if (row.beyond()) {};\n", leave);
    text += outer_indices(body_);
    text += values_.load_lane_inputs();
    for (const Output& output : body_.outputs) // of a workgroup's own tile
      if (const TensorPlan& t = body_.tensor(output.name); t.extent == Extent::element)
        text += fmt::format("  const auto {} = {};\n", values_.unique_name("to_" + t.name), row_stream(body_, t));
    if (!cluster_) return text + rings(0) + turn();
    text += rings(0) + "  row.ask_generation();\n";
    text += fmt::format("  while (true) {{\n{}    break;\n  }}\n", indented(turn()));
    if (places_ > cluster_reductions(body_)) throw InternalError("a cluster with more reductions than its workspace has places for");
    return text;
  }

private:
  // All passes over a row, or over one tile of it, behind the first rings.
  std::string turn() {
    std::string text;
    for (int p = 0; p < passes(); ++p) {
      const auto& pass = passes_[static_cast<std::size_t>(p)];
      if (!cluster_) text += values_.section_outputs(p);
      if (!pass.roots.empty()) text += pass_text(p);
      text += rings(p + 1);
      for (const std::string& pieces : values_.running(p)) text += fmt::format("  {}.meet();\n", pieces);
      for (const std::string& ranking : values_.rankings(p)) text += fmt::format("  row.rank({});\n", ranking);
      for (const std::string& finder : values_.finders(p)) text += verb("find", {finder}, p);
      if (!values_.accumulators(p).empty()) text += verb("reduce", values_.accumulators(p), p);
    }
    for (int level = cluster_ ? 0 : passes(); level <= passes(); ++level) text += values_.section_outputs(level);
    return text;
  }

  // A reduction behind pass p. The turn of a cluster may end with it: then the first rings are those of another tile.
  std::string verb(std::string_view name, const std::vector<std::string>& accumulators, int p) {
    if (!cluster_) return fmt::format("  row.{}<{}>({});\n", name, reductions_++, fmt::join(accumulators, ", "));
    const int place = std::exchange(places_, places_ + static_cast<int>(accumulators.size()));
    std::string text = fmt::format("  if (row.{}<{}, {}, {}>({})) [[unlikely]] {{\n", name, reductions_++, place,
                                   places_ == cluster_reductions(body_), fmt::join(accumulators, ", "));
    if (const auto next = ring_names(p + 1); !next.empty()) text += fmt::format("    row.drop({});\n", fmt::join(next, ", "));
    for (const int index : passes_[0].streams) text += fmt::format("    {} = row.ring({});\n", ring_name(index, 0), stream(index));
    if (const auto first = ring_names(0); !first.empty()) text += fmt::format("    row.fetch({});\n", fmt::join(first, ", "));
    return text + "    continue;\n  }\n";
  }

  static std::string indented(const std::string& text) {
    std::string result;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = std::min(text.find('\n', at), text.size() - 1);
      result += "  " + text.substr(at, end + 1 - at);
    }
    return result;
  }

  int passes() const { return static_cast<int>(passes_.size()); }
  const Value& value(int index) const { return body_.value(index); }

  // Rings for what pass p reads, with their first loads: issued before the reduction of the pass before is waited for.
  std::string rings(int p) const {
    std::string text;
    const std::vector<std::string> names = ring_names(p);
    for (std::size_t i = 0; i < names.size(); ++i)
      text += fmt::format("  auto {} = row.ring({});\n", names[i], stream(passes_[static_cast<std::size_t>(p)].streams[i]));
    if (!names.empty()) text += fmt::format("  row.fetch({});\n", fmt::join(names, ", "));
    return text;
  }
  std::string stream(int index) const {
    const Expr& expr = value(index).expr;
    return expr.op() == Op::input ? row_stream(body_, body_.tensor(expr->name)) : view_stream(body_, expr);
  }
  std::vector<std::string> ring_names(int p) const {
    std::vector<std::string> names;
    if (p < passes()) // behind the last one there are none
      for (const int index : passes_[static_cast<std::size_t>(p)].streams) names.push_back(ring_name(index, p));
    return names;
  }
  std::string ring_name(int index, int p) const {
    const std::string name = values_.stream_name(index);
    return values_.unique_name(p == 0 ? fmt::format("from_{}", name) : fmt::format("from_{}_{}", name, p));
  }

  std::string pass_text(int p) {
    const Pass& pass = passes_[static_cast<std::size_t>(p)];
    std::vector<std::string> parameters, sources;
    for (const int index : pass.streams) {
      parameters.push_back("auto " + values_.stream_name(index));
      sources.push_back(ring_name(index, p));
    }
    for (const int index : pass.takes) {
      parameters.push_back("auto " + values_.kept_chunk(index));
      sources.push_back(values_.unique_name(fmt::format("kept{}", index)));
    }
    const PassText body = values_.pass_body(p);
    std::string text = body.before;
    for (const int index : pass.keeps)
      text += fmt::format("  auto {} = row.keep<{}, {}>();\n", values_.unique_name(fmt::format("kept{}", index)),
                          device_type(value(index).expr.dtype()), index);
    text += fmt::format("  row.pass([&](At at{}{}) KILN_LAMBDA {{\n{}  }}{}{});\n", parameters.empty() ? "" : ", ",
                        fmt::join(parameters, ", "), body.inside, sources.empty() ? "" : ", ", fmt::join(sources, ", "));
    return text;
  }

  const Body& body_;
  const RowwiseConfig& config_;
  std::vector<Pass> passes_;
  ValueEmitter values_;
  bool cluster_;
  int reductions_ = 0, places_ = 0; // emitted so far
};

} // namespace

std::string rows_text(const Body& body, const RowwiseConfig& config, const Target& target, const std::string& row,
                      const std::string& leave) {
  return RowEmitter(body, config, target).kernel_body(row, leave, "");
}

RowwiseConfig Rowwise::with_threads(Config c, int threads, const Plan&, const Target&) {
  if (c.threads() == threads) return c;
  if (c.threads_per_row <= wave_size) {
    c.rows_per_block = threads / c.threads_per_row;
  } else {
    c.threads_per_row = threads;
    c.tiles = 1;
    c.prefetch_depth = std::min(c.prefetch_depth, c.chunks());
  }
  return c;
}

KernelParts Rowwise::parts(const Plan& plan, const Config& c, const Target& target, const ProblemPlace& place) {
  const std::string rows = size_text(plan.body.outer_dims) + (place.block.empty() ? "" : ", " + place.block);
  return {.header = std::string(name),
          .config = config_text(c, "RowwiseConfig"),
          .threads = "config.threads()",
          .attributes = waves_per_eu_attribute(c.waves_per_eu),
          .body = RowEmitter(plan.body, c, target).kernel_body(rows, "return", place.workspace),
          .access = {.vec = c.vec, .ragged = c.ragged()},
          .threads_per_block = c.threads(),
          .units_per_block = c.rows_per_block,
          .blocks_per_unit = c.tiles,
          .workspace_bytes = is_cluster(plan.body, c) ? cluster_workspace_bytes(plan.body, c) : 0,
          .shares_rows = c.tiles > 1};
}

} // namespace kiln
