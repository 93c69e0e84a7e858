// Rowwise: whether outputs may overwrite what is read.
#include "gen/families/rowwise/rowwise.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

// What a pass reads a stream from.
std::string tensor_of(const Expr& stream) { return view_of(stream) ? view_of(stream)->tensor : stream->name; }

// Another lane's elements, or another row's, are read before they are overwritten only if one wave has all of them at once.
std::optional<Refusal> why_no_views_in_wave(const Plan& plan, const RowwiseConfig& c, const TensorPlan& output) {
  if (c.threads_per_row <= wave_size && c.chunks() == 1 && c.tiles == 1) return {};
  for (const Value& v : plan.body.values)
    if (const auto view = view_of(v.expr);
        view && v.uses > 0 && view->tensor == output.in_place_of && (view->index.empty() || !view->keeps_columns()))
      return refuse_schedule(
          plan,
          fmt::format(
              "output '{}' is in place of '{}', of which '{}' reads other columns, and a row takes {} workgroups of {} lanes and {} chunks",
              output.name, output.in_place_of, info(v.expr.op()).name, c.tiles, c.threads_per_row, c.chunks()),
          "give the output memory of its own; rows of up to 64 lanes of one chunk may be in place");
  return {};
}

} // namespace

std::optional<Refusal> why_no_in_place_reads(const Plan& plan, const RowwiseConfig& c) {
  const Body& body = plan.body;
  const std::vector<Pass> passes = rowwise_passes(body, c);
  for (const TensorPlan& output : body.tensors) {
    if (output.in_place_of.empty()) continue;
    if (auto why = why_no_views_in_wave(plan, c, output)) return why;
    const auto at = std::ranges::find(body.outputs, output.name, &Output::name) - body.outputs.begin();
    const auto stores = [&](const Pass& pass) { return std::ranges::find(pass.stores, static_cast<int>(at)) != pass.stores.end(); };
    const auto written = std::ranges::find_if(passes, stores) - passes.begin(); // none of what is one a row: behind all passes
    for (auto p = static_cast<std::size_t>(written) + 1; p < passes.size(); ++p)
      for (const int index : passes[p].streams)
        if (tensor_of(body.value(index).expr) == output.in_place_of)
          return refuse_schedule(plan,
                                 fmt::format("output '{}' is in place of '{}', which pass {} reads from memory after pass {} wrote it",
                                             output.name, output.in_place_of, p, written),
                                 "give the output memory of its own, or use a residency that keeps the row on the chip");
  }
  return {};
}

} // namespace kiln
