// kiln predict: how long a kernel would take on a chip, from its code object and a launch; needs no GPU.
#include "isa_checks/timing/predict.h"
#include "gen/error.h"
#include "isa_checks/timing/chip_fields.h"
#include "runtime/cli/command.h"
#include "runtime/cli/commands/predict_launch.h"
#include "runtime/cli/output.h"
#include "runtime/cli/target_choice.h"
#include "runtime/environment.h"
#include <fmt/format.h>
#include <memory>

namespace kiln::cli {
namespace {

struct PredictRequest {
  PredictLaunch launch;
  TargetChoice target;
  std::string chip_file, cache = "cold", how, html;
  bool json = false, quick = false;
};

int run(const PredictRequest& request) {
  if (!request.chip_file.empty() && !(request.target.chip + request.target.arch).empty())
    throw UserError("--chip-file " + request.chip_file, "--chip or --arch was given too", "give one of them");
  const timing::Chip chip =
      request.chip_file.empty() ? *chosen_target(request.target).chip : timing::read_chip(read_file(request.chip_file));
  const timing::CacheState cache = parse_cache_state(request.cache);
  const timing::LaunchKind how = parse_launch(request.how, request.launch, cache);
  const timing::Prediction p = predict_launch(request.launch, chip, request.target.batch_invariant || process_environment().batch_invariant,
                                              {.cache = cache, .launch = how, .changes = !request.quick, .spans = !request.html.empty()});
  if (!request.html.empty()) write_file(request.html, timing::to_html(p));
  if (request.json) fmt::print("{}\n", timing::to_json(p));
  else fmt::print("{}", timing::to_text(p));
  return ok;
}

} // namespace

Command make_predict(CLI::App& root) {
  CLI::App* app =
      root.add_subcommand("predict", "Predict how long a kernel takes on a chip, from its code object and a launch; needs no GPU");
  const auto request = std::make_shared<PredictRequest>();
  add_launch_options(*app, request->launch);
  add_target_options(*app, request->target);
  app->add_option("--chip-file", request->chip_file,
                  "In place of --chip: a file that kiln calibrate wrote, whose measured constants are taken");
  app->add_option("--cache", request->cache, "Where the data lie before: cold (HBM), mall or l2, as far as they fit")
      ->capture_default_str();
  app->add_option(
      "--launch", request->how,
      "How it is launched and timed: graph (its period in a graph) or eager (on its own, by a profiler's clock). Default: graph; "
      "with --object eager, unless --cache is l2");
  app->add_flag("--quick", request->quick, "Leave out what changes would give");
  app->add_flag("--json", request->json, "Print one JSON document");
  app->add_option("--html", request->html, "Write a page with a timeline of one CU to this file");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli
