// build_kernel: the whole way from a spec to a code object and its facts, with the time of every stage.
#include "runtime/build_kernel.h"
#include "gen/emit.h"
#include "runtime/inspect.h"
#include "runtime/stopwatch.h"

namespace kiln {
namespace {

// Runs one stage and notes its time.
template <typename Stage> auto timed(double& milliseconds, const Stage& stage) {
  const Stopwatch watch;
  auto result = stage();
  milliseconds = watch.milliseconds();
  return result;
}

} // namespace

BuiltKernel build_kernel(const KernelSpec& spec, const Target& target, const CompileOptions& options,
                         const std::vector<std::string>& overrides) {
  BuildTimes times;
  Plan plan = timed(times.plan, [&] { return make_plan(spec, target); });
  Schedule schedule = timed(times.schedule, [&] {
    Schedule chosen = choose_schedule(plan, target);
    return overrides.empty() ? chosen : with_overrides(std::move(chosen), overrides, plan, target);
  });
  KernelSource source = timed(times.emit, [&] { return emit_source(plan, schedule, target); });
  CodeObject object = timed(times.compile, [&] { return compile(source, target, options); });
  isa::KernelFacts facts = timed(times.check, [&] { return inspect(object); });
  return {std::move(plan), std::move(schedule), std::move(source), std::move(object), std::move(facts), times};
}

} // namespace kiln
