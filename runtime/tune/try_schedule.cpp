// try_schedule: one schedule of a plan compiled, judged by its ISA contract, and its time predicted.
#include "runtime/tune/try_schedule.h"
#include "gen/families/make_plan.h"
#include "isa_checks/error.h"
#include "runtime/build/inspect.h"
#include "runtime/launch/predict_kernel.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <new>

namespace kiln {
namespace {

// How far behind the cost model's first a schedule may be by the model, and how large a launch, in issue slots. Executing and simulating
// takes a tenth of a microsecond of the host each, a fifth of that where one XCD of a product is executed: 1e7 take as long as a compile.
// `./dev bench schedule` counts what it gains: where HBM or the lines that L1 waits for bound a launch the model is seldom wrong, and a
// second compile is most of what the choice costs. It is wrong more often if CUs have more than half as long to do as HBM, or wait for all
// that they have in flight before they ask for more. Between methods it is as wrong as where something else bounds, but every large product
// has another method, and few are bound by that.
struct Worth {
  double behind, slots;
};
constexpr Worth bound_by_hbm{.behind = 1.003, .slots = 3e6}, beside_hbm{.behind = 1.03, .slots = 3e6},
    bound_by_lines{.behind = 1.01, .slots = 1e7}, others{.behind = 1.15, .slots = 1e7};
constexpr double beside_hbm_share = 0.5;

const Worth& worth_of(const Cost& cost, const Demand& demand) {
  if (cost.bound_by == "HBM") return cost.cu_share < beside_hbm_share && demand.stage_share < 1 ? bound_by_hbm : beside_hbm;
  return cost.bound_by == "lines that L1 waits for" ? bound_by_lines : others;
}

// Whether two schedules ask for memory alike, as those do of which loads and stages alone differ. By simulation the second of 22 such pairs
// that HBM bounds was 0.9 % quicker at most.
bool ask_alike(const Demand& a, const Demand& b) {
  constexpr double alike = 0.2; // of what is in flight: rings of 16 stages of a load, and of seven of two
  return a.workgroups == b.workgroups && a.waves == b.waves && std::abs(a.in_flight - b.in_flight) < alike * b.in_flight;
}

} // namespace

double TriedSchedule::microseconds() const {
  double sum = 0;
  for (const timing::Prediction& p : predictions) sum += std::log(p.microseconds);
  return predictions.empty() ? 0 : std::exp(sum / static_cast<double>(predictions.size()));
}

TriedSchedule try_schedule(const Plan& plan, const Schedule& schedule, const Target& target, const timing::Chip& chip,
                           const timing::PredictOptions& predict, std::span<const RunTimeSizes> sizes, const CompileOptions& options) {
  TriedSchedule tried{.schedule = schedule,
                      .source = emit_source(plan, schedule, target),
                      .object = {},
                      .facts = {},
                      .report = {},
                      .predictions = {},
                      .too_long = {}};
  tried.object = compile(tried.source, target, options);
  Inspection seen = inspect(tried.object, promises(plan, schedule, target));
  tried.facts = std::move(seen.facts);
  tried.report = std::move(seen.report);
  if (!tried.report.met()) return tried;
  try {
    for (const RunTimeSizes& at : sizes)
      tried.predictions.push_back(predict_kernel(plan.spec, tried.source, tried.object, at, chip, predict));
  } catch (const timing::TooLong& error) {
    tried.predictions.clear();
    tried.too_long = error.what();
  }
  return tried;
}

bool is_worth_simulating(const Plan& plan, const Target& target, std::span<const Schedule> kept, const Schedule& other) {
  const Schedule& first = kept.front();
  const std::vector<RunTimeSizes> sizes = nominal_sizes(plan);
  const bool by_expert = std::ranges::any_of(plan.products, &Product::by_expert); // how many rows an expert has only the launch says
  if (sizes.size() > 1 || by_expert) return false;
  const std::optional<Demand> demand = plan.family->demand(plan, first, target, sizes.front());
  if (!demand) return false;
  const Cost cost = cost_of(*demand, target.chip());
  const auto method = plan.family->method;
  const bool by_hbm = cost.bound_by == "HBM";
  const bool is_another = !by_hbm && method != nullptr && std::ranges::find(kept, method(other), method) == kept.end();
  const Worth& worth = is_another ? others : worth_of(cost, *demand);
  if (demand->workgroups * demand->waves * demand->instructions > worth.slots ||
      nominal_cost(plan, other, target) > worth.behind * nominal_cost(plan, first, target))
    return false;
  const auto demand_of = [&](const Schedule& s) { return plan.family->demand(plan, s, target, sizes.front()).value_or(Demand{}); };
  return !by_hbm || std::ranges::none_of(kept, [&](const Schedule& k) { return ask_alike(demand_of(k), demand_of(other)); });
}

// Infinite for what cannot be simulated, for want of memory say: the first is kept then.
static double simulated_cost(const Plan& plan, BuiltKernel& built, const Target& target) {
  const timing::PredictOptions options{.changes = false, .one_xcd = !plan.products.empty(), .alone = true};
  try {
    double sum = 0;
    for (const RunTimeSizes& at : nominal_sizes(plan))
      sum += std::log(predict_kernel(plan.spec, built.source, built.object, at, target.chip(), options).microseconds);
    return sum;
  } catch (const std::bad_alloc&) {
    built.object.log += "kiln: note: there was no memory to simulate it\n";
  } catch (const isa::Error& error) {
    built.object.log += fmt::format("kiln: note: it was not simulated: {}\n", error.what());
  }
  return std::numeric_limits<double>::infinity();
}

BuiltKernel build_quickest(const KernelSpec& spec, const Target& target, const CompileOptions& options, int simulated) {
  const Plan plan = make_plan(spec, target);
  std::vector<Schedule> kept; // that keep their contract
  std::optional<BuiltKernel> best;
  std::vector<RejectedSchedule> rejected;
  BuildTimes times;
  double least = 0;
  for (const Schedule& schedule : candidates(plan, target)) {
    if (std::ssize(kept) == simulated) break;
    if (!kept.empty() && !is_worth_simulating(plan, target, kept, schedule)) continue;
    std::optional<BuiltKernel> built = build_schedule(plan, schedule, target, options, rejected, times);
    if (!built) continue;
    kept.push_back(schedule);
    if (kept.size() == 1) {
      best = std::move(built);
      continue; // simulated when there is another one
    }
    if (kept.size() == 2) least = simulated_cost(plan, *best, target);
    const double cost = simulated_cost(plan, *built, target);
    if (cost < least) best = std::move(built), least = cost;
  }
  if (!best) return build_kernel(spec, target, options); // with what the cost model has further behind
  best->rejected = std::move(rejected);
  best->times = times;
  return std::move(*best);
}

} // namespace kiln
