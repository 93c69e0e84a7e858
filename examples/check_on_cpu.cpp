// Check on the CPU: executes a compiled kernel instruction by instruction and compares it with the reference. Needs no GPU.
#include <exception>
#include <fmt/format.h>
#include <kiln/gen/reference/evaluate_bounds.h>
#include <kiln/gen/reference/random_inputs.h>
#include <kiln/gen/spec/math.h>
#include <kiln/runtime/build/build_kernel.h>
#include <kiln/runtime/launch/emulated/emulate.h>

int main() try {
  using namespace kiln;
  const Expr x = input("x", f16, {dynamic("rows"), 1000});
  const Expr e = exp(x - row_max(x));
  const KernelSpec spec = KernelSpec("my_softmax").output("y", f16, e / row_sum(e));

  const BuiltKernel kernel = build_kernel(spec, target("gfx942"));
  const Inputs inputs = random_inputs(spec, /*seed=*/1, {.dynamic_size = 5});
  const EmulatedRun run = emulate(spec, kernel.source, kernel.object, inputs);
  for (const exec::Defect& finding : run.result.defects) fmt::print("{}\n", exec::to_text(finding));
  const auto wrong = find_mismatch(run.outputs, evaluate_bounds(spec, inputs));
  fmt::print("{} wave instructions executed; {}\n", run.result.waves.executed(),
             wrong ? to_text(*wrong) : "all values within their bounds");
  return wrong || !run.result.defects.empty();
} catch (const std::exception& error) { // errors say the subject, the fact and the remedy
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
