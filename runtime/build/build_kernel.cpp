// build_kernel: the whole way from a spec to a code object that keeps its ISA contract, with the time of every stage.
#include "runtime/build/build_kernel.h"
#include "gen/families/common/family.h"
#include "gen/families/schedule.h"
#include "runtime/build/inspect.h"
#include "runtime/stopwatch.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

// Runs one stage and adds its time.
template <typename Stage> auto timed(double& milliseconds, const Stage& stage) {
  const Stopwatch watch;
  auto result = stage();
  milliseconds += watch.milliseconds();
  return result;
}

// The fault of packed f32 in the code, and nothing else: code of another form may do.
bool breaks_packed_f32_alone(const isa::IsaReport& report) {
  return !report.met() && std::ranges::all_of(report.results, [](const auto& result) {
    return result.met || (result.name == "no_errata" && result.found.ends_with(" ERR001") && result.found.find(',') == std::string::npos);
  });
}

std::string first_broken(const isa::IsaReport& report) {
  for (const isa::ExpectationResult& result : report.results) {
    if (result.met) continue;
    std::string text = fmt::format("{}: expected {}, found {}", result.name, result.expected, result.found);
    if (!result.evidence.empty()) text += "\n      " + result.evidence.front();
    return text;
  }
  return "nothing";
}

// `tried` has at least one schedule, as candidates() always have.
std::string rejection_text(const std::string& kernel, const std::string& arch, const std::vector<RejectedSchedule>& tried) {
  std::string text = fmt::format("kernel '{}' for {}: no schedule keeps its ISA contract", kernel, arch);
  for (const RejectedSchedule& r : tried) text += fmt::format("\n  {}\n    {}", to_text(r.schedule), first_broken(r.report));
  return text + fmt::format("\n{}", tried.front().schedule.family->remedy);
}

} // namespace

RejectedError::RejectedError(const std::string& kernel, const std::string& arch, std::vector<RejectedSchedule> tried)
    : Error(rejection_text(kernel, arch, tried)), rejected(std::move(tried)) {}

std::optional<BuiltKernel> build_schedule(const Plan& plan, const Schedule& schedule, const Target& target, const CompileOptions& options,
                                          std::vector<RejectedSchedule>& rejected, BuildTimes& times) {
  KernelSource source = timed(times.emit, [&] { return emit_source(plan, schedule, target); });
  CodeObject object;
  Inspection seen;
  const auto build = [&](const CompileOptions& with) {
    object = timed(times.compile, [&] { return compile(source, target, with); });
    times.library += object.milliseconds;
    seen = timed(times.check, [&] { return inspect(object, promises(plan, schedule, target)); });
  };
  build(options);
  if (breaks_packed_f32_alone(seen.report)) {
    CompileOptions unpacked = options;
    unpacked.packed_f32 = false;
    build(unpacked);
    object.log += "kiln: note: compiled without packed f32 instructions, of which one had a form that gfx950 executes wrongly (ERR001)\n";
  }
  if (!seen.report.met()) {
    rejected.push_back({schedule, std::move(seen.report)});
    return {};
  }
  return BuiltKernel{plan, schedule, std::move(source), std::move(object), std::move(seen.facts), std::move(seen.report), {}, times};
}

BuiltKernel build_kernel(const KernelSpec& spec, const Target& target, const CompileOptions& options,
                         const std::vector<std::string>& overrides) {
  BuildTimes times;
  const Plan plan = timed(times.plan, [&] { return make_plan(spec, target); });
  const std::vector<Schedule> schedules = timed(times.schedule, [&] { return candidates(plan, target, overrides); });
  std::vector<RejectedSchedule> rejected;
  for (const Schedule& schedule : schedules)
    if (std::optional<BuiltKernel> built = build_schedule(plan, schedule, target, options, rejected, times)) {
      built->rejected = std::move(rejected);
      return std::move(*built);
    }
  throw RejectedError(plan.spec.name(), target.arch(), std::move(rejected));
}

} // namespace kiln
