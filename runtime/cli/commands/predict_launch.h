// PredictLaunch: what `kiln predict` is asked to launch, and how long that is predicted to take.
#pragma once
#include "isa_checks/timing/predict.h"
#include "runtime/cli/kernel_choice.h"
#include "runtime/cli/run_object.h"
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kiln::cli {

struct PredictLaunch {
  KernelChoice kernel;
  std::int64_t rows = 4;
  std::vector<std::string> overrides, sizes;
  ObjectRun object; // arguments may also be out:BYTES:- for a buffer of zeros
};

void add_launch_options(CLI::App& app, PredictLaunch& launch);

timing::CacheState parse_cache_state(const std::string& name); // throws UserError
// Empty: of a spec's kernel graph; of an object eager, but graph for caches that the same launch before it has filled. Throws UserError.
timing::LaunchKind parse_launch(const std::string& name, const PredictLaunch& launch, timing::CacheState cache);

// Builds the kernel for the chip when it is a spec, and executes what the prediction needs. Throws UserError and isa::Error.
timing::Prediction predict_launch(const PredictLaunch& launch, const timing::Chip& chip, bool batch_invariant,
                                  const timing::PredictOptions& options);

} // namespace kiln::cli
