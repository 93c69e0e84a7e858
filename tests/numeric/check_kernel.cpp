// check_kernel: a spec is built, executed on the CPU model and compared with its bounds.
#include "tests/numeric/check_kernel.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
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

std::optional<std::string> check_kernel(const KernelSpec& spec, const Target& target, std::uint64_t seed, const CheckOptions& options) {
  CompileOptions compile;
  compile.environment = process_environment();
  compile.warnings_as_errors = true;
  const BuiltKernel built = build_kernel(spec, target, compile, options.settings);
  const Inputs inputs = random_inputs(spec, seed, {.dynamic_size = options.rows, .special_values = options.special_values});
  exec::ExecOptions run;
  run.seed = seed;
  run.measure = compares_everything();
  const EmulatedRun done = emulate(spec, built.source, built.object, inputs, run);
  const auto where = fmt::format("seed {} {}\n{}{}", seed, target.arch(), to_text(built.schedule), to_text(spec));
  if (!done.result.defects.empty()) return fmt::format("{}\n{}", exec::to_text(done.result.defects.front()), where);
  if (!done.result.completed) return "did not complete: " + where;
  if (const std::string wrong = disagreement_if_asked(built.object, done.result); !wrong.empty())
    return fmt::format("{}\n{}", wrong, where);
  const auto bounds = evaluate_bounds(spec, inputs, bounds_options(built.schedule));
  if (const auto mismatch = find_mismatch(done.outputs, bounds)) return fmt::format("{}\n{}", to_text(*mismatch), where);
  return {};
}

} // namespace kiln::testing
