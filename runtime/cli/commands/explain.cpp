// kiln explain: why a kernel has its schedule: its candidates, what each would take and what bounds it.
#include "runtime/tune/explain.h"
#include "gen/error.h"
#include "runtime/cli/command.h"
#include "runtime/cli/commands/predict_launch.h"
#include "runtime/cli/output.h"
#include "runtime/cli/target_choice.h"
#include <algorithm>
#include <fmt/format.h>
#include <memory>

namespace kiln::cli {
namespace {

struct ExplainRequest {
  KernelChoice kernel;
  std::optional<std::int64_t> rows;
  TargetChoice target;
  std::string cache = "cold", html;
  bool json = false;
};

int run(const ExplainRequest& request) {
  const auto [gpu, chip] = chosen_target(request.target);
  const KernelSpec spec = chosen_spec(request.kernel, gpu);
  std::vector<RunTimeSizes> sizes;
  if (request.rows) {
    sizes.emplace_back();
    for (const Dim& dim : spec.dynamic_dims())
      sizes.back()[dim.name()] = std::clamp(*request.rows, dim.min().value_or(1), dim.max().value_or(max_dim_size));
  }
  CompileOptions compile = own_process_options(process_environment());
  const Explanation explanation = explain(spec, gpu, *chip, parse_cache_state(request.cache), sizes, compile);
  if (!request.html.empty()) write_file(request.html, to_html(explanation));
  fmt::print("{}{}", request.json ? to_json(explanation) : to_text(explanation), request.json ? "\n" : "");
  return explanation.chosen < explanation.candidates.size() ? ok : kernel_failed;
}

} // namespace

Command make_explain(CLI::App& root) {
  CLI::App* app = root.add_subcommand("explain", "Say why a kernel has its schedule: its candidates, and what bounds each");
  const auto request = std::make_shared<ExplainRequest>();
  add_kernel_options(*app, request->kernel);
  app->add_option("--rows", request->rows, "Size of every run-time dimension, clamped to its bounds (few to many: 1, 16, 256, 4096)")
      ->check(CLI::PositiveNumber);
  add_target_options(*app, request->target);
  app->add_option("--cache", request->cache, "Where the data lie before: cold (HBM), mall or l2")->capture_default_str();
  app->add_flag("--json", request->json, "Print one JSON document");
  app->add_option("--html", request->html, "Write a page to this file");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli
