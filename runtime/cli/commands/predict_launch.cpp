// A launch for a prediction: a spec's kernel on buffers of zeros, or a kernel of a code object.
#include "runtime/cli/commands/predict_launch.h"
#include "gen/error.h"
#include "gen/reference/random_inputs.h"
#include "isa_checks/timing/predict.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/predict_kernel.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::cli {
namespace {

std::map<std::string, std::int64_t> sizes_of(const PredictLaunch& launch, const KernelSpec& spec) {
  if (launch.rows < 1) throw UserError("--rows", fmt::format("{} is no size to predict", launch.rows), "give 1 or more");
  std::map<std::string, std::int64_t> sizes = named_sizes(launch.sizes, spec);
  for (const Dim& dim : spec.dynamic_dims()) sizes.try_emplace(dim.name(), size_within(dim, launch.rows));
  return sizes;
}

timing::Prediction predict_spec(const PredictLaunch& launch, const timing::Chip& chip, bool batch_invariant,
                                const timing::PredictOptions& options) {
  const Target chosen = target(chip.name).with_batch_invariance(batch_invariant);
  const KernelSpec spec = chosen_spec(launch.kernel, chosen);
  const std::map<std::string, std::int64_t> sizes = sizes_of(launch, spec);
  CompileOptions compile = own_process_options(process_environment());
  const BuiltKernel built = build_kernel(spec, chosen, compile, launch.overrides);
  return predict_kernel(spec, built.source, built.object, sizes, chip, options);
}

} // namespace

timing::CacheState parse_cache_state(const std::string& name) {
  for (const auto state : {timing::CacheState::cold, timing::CacheState::mall, timing::CacheState::l2})
    if (name == timing::to_string(state)) return state;
  throw UserError("--cache " + name, "it is no state of the caches", "use cold, mall or l2");
}

timing::LaunchKind parse_launch(const std::string& name, const PredictLaunch& launch, timing::CacheState cache) {
  if (name.empty())
    return launch.object.object.empty() || cache == timing::CacheState::l2 ? timing::LaunchKind::graph : timing::LaunchKind::eager;
  for (const auto kind : {timing::LaunchKind::graph, timing::LaunchKind::eager})
    if (name == timing::to_string(kind)) return kind;
  throw UserError("--launch " + name, "it is no way to launch", "use graph or eager");
}

void add_launch_options(CLI::App& app, PredictLaunch& launch) {
  add_launched_options(app, launch.kernel, launch.object);
  app.add_option("--rows", launch.rows, "Size of every run-time dimension, clamped to its bounds")->capture_default_str();
  app.add_option("--size", launch.sizes, "Size of one run-time dimension, NAME=SIZE; may be repeated")->delimiter(',');
  app.add_option("--set", launch.overrides, "Schedule field to replace, NAME=VALUE; may be repeated")->delimiter(',');
}

timing::Prediction predict_launch(const PredictLaunch& launch, const timing::Chip& chip, bool batch_invariant,
                                  const timing::PredictOptions& options) {
  if (!is_object("kiln predict", launch.kernel, launch.object)) return predict_spec(launch, chip, batch_invariant, options);
  ObjectLaunch prepared = prepare_object(launch.object);
  timing::check_fits(prepared.object, chip);
  return timing::predict(timing::record(prepared.object, prepared.kernel, prepared.grid, prepared.arguments, prepared.memory), chip,
                         options);
}

} // namespace kiln::cli
