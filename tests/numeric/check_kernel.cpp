// check_kernel: a spec is built, executed on the CPU model and compared with its bounds.
#include "tests/numeric/check_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "runtime/launch/kernel_buffers.h"
#include "tests/exec/agreement.h"
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fmt/format.h>

namespace kiln::testing {

bool compares_everything() { return std::getenv("KILN_LINT_ALL") != nullptr; }

bool runs_here(const Target& target, std::uint64_t number) {
  const auto place = std::ranges::find(known_archs(), target.arch()) - known_archs().begin();
  return compares_everything() || std::popcount(number) % static_cast<int>(known_archs().size()) == place;
}

std::string disagreement_if_asked(const CodeObject& kernel, const exec::ExecResult& run) {
  if (!compares_everything()) return {};
  return first_disagreement(isa::load_code_object(kernel.bytes, kernel.name), kernel.name, run).value_or("");
}

namespace {

std::string what_ran(std::uint64_t seed, const KernelSpec& spec, const BuiltKernel& kernel) {
  return fmt::format("seed {} {}\n{}{}", seed, kernel.source.arch, to_text(kernel.schedule), to_text(spec));
}

// What is wrong with a run; empty when nothing is.
std::string wrong_run(const BuiltKernel& kernel, const exec::ExecResult& run) {
  if (!run.defects.empty()) return exec::to_text(run.defects.front());
  if (!run.completed) return "did not complete";
  return disagreement_if_asked(kernel.object, run);
}

// What is wrong with the kernel on the device that KILN_TEST_DEVICE names; empty when nothing is, or it is of another architecture. A GPU
// is compared with the reference; other bits than the model's are right where sums come in another order.
std::string wrong_on_device(const KernelSpec& spec, const Target& target, const CheckOptions& check, const CompileOptions& compile,
                            const BuiltKernel& built, const Inputs& inputs) {
  static const std::optional<Device> device = [] {
    const char* const name = std::getenv("KILN_TEST_DEVICE");
    return name == nullptr ? std::nullopt : std::optional(Device::open(name));
  }();
  if (!device || device->target().arch() != target.arch()) return {};
  const Kernel kernel = kernel_of(spec, target, check.settings, compile, built);
  const auto bounds = evaluate_bounds(spec, inputs, bounds_options(built.schedule));
  const auto mismatch = find_mismatch(run_on(*device, kernel, spec, inputs), bounds);
  return mismatch ? fmt::format("on {}: {}", device->description(), to_text(*mismatch)) : std::string();
}

bool same_bits(const Outputs& a, const Outputs& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    if (x.first != y.first || x.second.size() != y.second.size()) return false;
    for (std::int64_t i = 0; i < x.second.size(); ++i)
      if (x.second.bits(i) != y.second.bits(i)) return false;
    return true;
  });
}

} // namespace

std::optional<std::string> check_orders(const KernelSpec& spec, const BuiltKernel& kernel, const Inputs& inputs,
                                        const OrderOptions& options) {
  const auto bounds = evaluate_bounds(spec, inputs, bounds_options(kernel.schedule));
  std::optional<Outputs> first;
  for (std::uint64_t seed = 1; seed <= options.count; ++seed) {
    exec::ExecOptions run;
    run.seed = seed;
    run.measure = compares_everything();
    run.preload = seed != 2 || compares_everything(); // the static analysis knows the other entry
    run.in_turns = options.side_by_side && seed % 2 == 0;
    const EmulatedRun done = emulate(spec, kernel.source, kernel.object, inputs, run, options.launches);
    std::string wrong = wrong_run(kernel, done.result);
    if (wrong.empty() && first && !same_bits(done.outputs, *first)) wrong = "its bits differ from the first interleaving's";
    if (const auto mismatch = find_mismatch(done.outputs, bounds); wrong.empty() && mismatch) wrong = to_text(*mismatch);
    if (!wrong.empty()) return fmt::format("{}\n{}", wrong, what_ran(seed, spec, kernel));
    if (!first) first = done.outputs;
  }
  return {};
}

std::optional<std::string> check_kernel(const KernelSpec& spec, const Target& target, std::uint64_t seed, const CheckOptions& options) {
  CompileOptions compile = own_process_options(process_environment());
  compile.warnings_as_errors = true;
  const BuiltKernel built = build_kernel(spec, target, compile, options.settings);
  const Inputs inputs = random_inputs(spec, seed, {.dynamic_size = options.rows, .special_values = options.special_values});
  exec::ExecOptions run;
  run.seed = seed;
  run.measure = compares_everything();
  const EmulatedRun done = emulate(spec, built.source, built.object, inputs, run);
  std::string wrong = wrong_run(built, done.result);
  if (wrong.empty())
    if (const auto mismatch = find_mismatch(done.outputs, evaluate_bounds(spec, inputs, bounds_options(built.schedule))))
      wrong = to_text(*mismatch);
  if (wrong.empty()) wrong = wrong_on_device(spec, target, options, compile, built, inputs);
  if (!wrong.empty()) return fmt::format("{}\n{}", wrong, what_ran(seed, spec, built));
  return {};
}

} // namespace kiln::testing
