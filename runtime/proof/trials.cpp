// Trials: runs on the CPU model beside the bounds of the reference, and beside each other.
#include "runtime/proof/trials.h"
#include <algorithm>

namespace kiln {

std::string Trial::wrong() const {
  if (!run.result.defects.empty()) return exec::to_text(run.result.defects.front());
  if (!run.result.completed) return "did not complete";
  return mismatch ? to_text(*mismatch) : std::string();
}

Trial try_kernel(const KernelSpec& spec, const BuiltKernel& kernel, const Inputs& inputs, const std::map<std::string, Bounds>& bounds,
                 const exec::ExecOptions& options, int launches) {
  Trial trial{.run = emulate(spec, kernel.source, kernel.object, inputs, options, launches), .mismatch = {}};
  if (trial.run.result.completed) trial.mismatch = find_mismatch(trial.run.outputs, bounds);
  return trial;
}

bool same_bits(const Outputs& a, const Outputs& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    if (x.first != y.first || x.second.size() != y.second.size()) return false;
    for (std::int64_t i = 0; i < x.second.size(); ++i)
      if (x.second.bits(i) != y.second.bits(i)) return false;
    return true;
  });
}

std::optional<OrderFault> try_orders(const KernelSpec& spec, const BuiltKernel& kernel, const Inputs& inputs, const OrderOptions& options) {
  const auto bounds = evaluate_bounds(spec, inputs, bounds_options(kernel.schedule));
  std::optional<Outputs> first;
  for (std::uint64_t seed = 1; seed <= options.count; ++seed) {
    exec::ExecOptions run;
    run.seed = seed;
    run.measure = options.measure;
    run.preload = seed != 2 || options.measure; // static analyses know the other entry
    run.in_turns = options.side_by_side && seed % 2 == 0;
    Trial trial = try_kernel(spec, kernel, inputs, bounds, run, options.launches);
    std::string wrong = trial.wrong();
    if (wrong.empty() && options.also) wrong = options.also(trial.run);
    if (wrong.empty() && first && !same_bits(trial.run.outputs, *first)) wrong = "its bits differ from the first interleaving's";
    if (!wrong.empty()) return OrderFault{seed, std::move(wrong)};
    if (!first) first = std::move(trial.run.outputs);
  }
  return {};
}

} // namespace kiln
