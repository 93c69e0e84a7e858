// check_kernel: a spec is built, executed on the CPU model and compared with its bounds.
#include "tests/numeric/check_kernel.h"
#include "runtime/launch/kernel_buffers.h"
#include "tests/exec/agreement.h"
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fmt/format.h>

namespace kiln::testing {

bool compares_everything() { return std::getenv("KILN_LINT_ALL") != nullptr; }

namespace {
std::ptrdiff_t place_of(const Target& target) { return std::ranges::find(known_archs(), target.arch()) - known_archs().begin(); }
} // namespace

bool runs_here(const Target& target, std::uint64_t number) {
  return compares_everything() || std::popcount(number) % std::ssize(known_archs()) == place_of(target);
}

bool runs_in_slice(const Target& target, std::uint64_t number) {
  return runs_here(target, number) && (compares_everything() || std::popcount(number & number >> 1) % 2 == 0);
}

std::string disagreement_if_asked(const CodeObject& kernel, const exec::ExecResult& run) {
  if (!compares_everything()) return {};
  return first_disagreement(isa::load_code_object(kernel.bytes, kernel.name), kernel.name, run).value_or("");
}

namespace {

std::string what_ran(std::uint64_t seed, const KernelSpec& spec, const BuiltKernel& kernel) {
  return fmt::format("seed {} {}\n{}{}", seed, kernel.source.arch, to_text(kernel.schedule), to_text(spec));
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

} // namespace

std::optional<std::string> check_orders(const KernelSpec& spec, const BuiltKernel& kernel, const Inputs& inputs, OrderOptions options) {
  options.measure = compares_everything();
  options.also = [&](const EmulatedRun& run) { return disagreement_if_asked(kernel.object, run.result); };
  const auto fault = try_orders(spec, kernel, inputs, options);
  if (!fault) return {};
  return fmt::format("{}\n{}", fault->wrong, what_ran(fault->seed, spec, kernel));
}

std::optional<std::string> check_kernel(const KernelSpec& spec, const Target& target, std::uint64_t seed, const CheckOptions& options) {
  CompileOptions compile = own_process_options(process_environment());
  compile.warnings_as_errors = true;
  const BuiltKernel built = build_kernel(spec, target, compile, options.settings);
  const Inputs inputs = random_inputs(
      spec, seed, {.dynamic_size = options.rows, .values = options.special_values ? InputValues::special : InputValues::moderate});
  exec::ExecOptions run;
  run.seed = seed;
  run.measure = compares_everything();
  const Trial trial = try_kernel(spec, built, inputs, evaluate_bounds(spec, inputs, bounds_options(built.schedule)), run);
  std::string wrong = trial.wrong();
  if (wrong.empty()) wrong = disagreement_if_asked(built.object, trial.run.result);
  if (wrong.empty()) wrong = wrong_on_device(spec, target, options, compile, built, inputs);
  if (!wrong.empty()) return fmt::format("{}\n{}", wrong, what_ran(seed, spec, built));
  return {};
}

} // namespace kiln::testing
