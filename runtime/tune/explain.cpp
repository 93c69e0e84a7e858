// explain: every candidate of a plan tried, and the text, JSON and page that show them.
#include "runtime/tune/explain.h"
#include "gen/families/make_plan.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace kiln {
namespace {

std::string first_broken(const isa::IsaReport& report) {
  for (const isa::ExpectationResult& r : report.results)
    if (!r.met) return fmt::format("{}: expected {}, found {}", r.name, r.expected, r.found);
  return "holds";
}

std::string sizes_text(const std::vector<RunTimeSizes>& all) {
  std::vector<std::string> texts;
  for (const RunTimeSizes& sizes : all) {
    std::vector<std::string> names;
    for (const auto& [name, size] : sizes) names.push_back(fmt::format("{}={}", name, size));
    texts.push_back(fmt::format("{}", fmt::join(names, " ")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

ExplainedCandidate explained(const Plan& plan, const TriedSchedule& tried, const Target& target, const std::vector<RunTimeSizes>& sizes) {
  ExplainedCandidate c;
  c.settings = settings_of(tried.schedule);
  c.why = tried.schedule.why;
  double sum = 0;
  for (const RunTimeSizes& at : sizes) {
    c.cost = cost_of(plan, tried.schedule, target, at);
    sum += std::log(c.cost.total());
  }
  c.cost_us = std::exp(sum / static_cast<double>(sizes.size())) / 1e3;
  c.predicted_us = tried.microseconds();
  c.vgprs = static_cast<int>(tried.facts.resources.vgprs);
  c.lds_bytes = static_cast<int>(tried.facts.resources.lds_bytes);
  c.contract = first_broken(tried.report);
  c.too_long = tried.too_long;
  if (tried.predictions.empty()) return c;
  const timing::Prediction& last = tried.predictions.back();
  const timing::Phase& longest = *std::ranges::max_element(last.phases, {}, &timing::Phase::microseconds);
  c.bound_by = fmt::format("{}: {}", longest.name, longest.bound_by);
  c.workgroups = static_cast<int>(last.workgroups);
  return c;
}

// What --batch-invariant changes; empty if it cannot be had.
std::string invariant_choice(const Plan& plan, const Schedule& own, const Target& target) {
  try {
    const Target wanted = target.with_batch_invariance();
    const Schedule chosen = choose_schedule(plan, wanted);
    const std::string text = fmt::format("; --batch-invariant would choose {}", fmt::join(settings_of(chosen), " "));
    const double us = nominal_cost(plan, chosen, wanted) / 1e3;
    return us > 0 ? fmt::format("{}, {:.2f} us for {:.2f} by the cost model", text, us, nominal_cost(plan, own, target) / 1e3) : text;
  } catch (const UserError& error) {
    return fmt::format("; --batch-invariant is refused: {}", error.fact);
  }
}

std::string verdict(const Explanation& e) {
  if (e.chosen == e.candidates.size()) return "no candidate keeps its ISA contract";
  const ExplainedCandidate &c = e.candidates[e.chosen], &q = e.candidates[e.quickest];
  if (!c.too_long.empty())
    return fmt::format("the cost model's first, {}, is not simulated, nothing to compare it with", fmt::join(c.settings, " "));
  if (e.chosen == e.quickest)
    return fmt::format("the cost model's first, {}, is the quickest by the simulation too", fmt::join(c.settings, " "));
  return fmt::format("the cost model's first takes {:.1f} % longer by the simulation than {}; kiln tune would keep that one",
                     100 * (c.predicted_us / q.predicted_us - 1), fmt::join(q.settings, " "));
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

} // namespace

std::string batch_invariance(const Plan& plan, const Schedule& schedule, const Target& target) {
  const SumOrder own = sum_order(plan, schedule, target), wanted = invariant_order(plan, target);
  if (own == wanted && own.depends_on.empty())
    return own.order.empty() ? "holds: nothing is summed over a row"
                             : fmt::format("holds: sums are taken as \"{}\", whatever the batch is", own.order);
  const std::string why =
      own.depends_on.empty() ? fmt::format("the bound of rows decides that sums are taken as \"{}\"", own.order) : own.depends_on;
  return "does not hold: " + why + invariant_choice(plan, schedule, target);
}

Explanation explain(const KernelSpec& spec, const Target& target, const timing::Chip& chip, timing::CacheState cache,
                    const std::vector<RunTimeSizes>& sizes, const CompileOptions& options) {
  const Plan plan = make_plan(spec, target);
  Explanation e;
  e.kernel = spec.name();
  e.arch = target.arch();
  e.chip = chip.name;
  e.cache = timing::to_string(cache);
  const std::vector<RunTimeSizes> at = sizes.empty() ? nominal_sizes(plan) : sizes;
  e.sizes = sizes_text(at);
  const std::vector<Schedule> schedules = candidates(plan, target);
  for (const Schedule& schedule : schedules)
    e.candidates.push_back(explained(
        plan, try_schedule(plan, schedule, target, chip, {.cache = cache, .changes = false, .alone = true}, at, options), target, at));
  const auto holds = [](const ExplainedCandidate& c) { return c.contract == "holds"; };
  e.chosen = e.quickest = static_cast<std::size_t>(std::ranges::find_if(e.candidates, holds) - e.candidates.begin());
  if (e.chosen < schedules.size()) e.batch_invariance = batch_invariance(plan, schedules[e.chosen], target);
  for (std::size_t i = e.chosen; i < e.candidates.size(); ++i)
    if (e.candidates[i].predicted_us > 0 && e.candidates[i].predicted_us < e.candidates[e.quickest].predicted_us) e.quickest = i;
  return e;
}

// "-": not known.
static std::string us_text(double us) { return us > 0 ? fmt::format("{:.2f}", us) : "-"; }

std::string to_text(const Explanation& e) {
  std::string text = fmt::format("{} for {}, predicted on {}, caches {}{}{}: {} candidates, the cost model's first first\n", e.kernel,
                                 e.arch, e.chip, e.cache, e.sizes.empty() ? "" : ", ", e.sizes, e.candidates.size());
  text += fmt::format("  {:>9} {:>9}  {:<28} {:>6} {:>7} {:>10}  {}\n", "MODEL us", "PREDICTED", "BOUND BY", "VGPRS", "LDS", "WORKGROUPS",
                      "SCHEDULE");
  for (std::size_t i = 0; i < e.candidates.size(); ++i) {
    const ExplainedCandidate& c = e.candidates[i];
    text += fmt::format("{} {:>9} {:>9}  {:<28} {:>6} {:>7} {:>10}  {}\n",
                        i == e.chosen     ? "*"
                        : i == e.quickest ? "!"
                                          : " ",
                        us_text(c.cost_us), us_text(c.predicted_us), c.bound_by, c.vgprs, c.lds_bytes, c.workgroups,
                        fmt::join(c.settings, " "));
    if (!c.too_long.empty()) text += fmt::format("    is not simulated: {}\n", c.too_long);
    else if (c.predicted_us == 0) text += fmt::format("    breaks its ISA contract: {}\n", c.contract);
  }
  if (e.chosen < e.candidates.size()) {
    const ExplainedCandidate& c = e.candidates[e.chosen];
    text += fmt::format("* chosen: {}\n", c.why);
    if (c.cost_us > 0)
      text += fmt::format("  the model's terms at the last size: start {:.2f} us, stream {:.2f} us ({}), exit {:.2f} us\n",
                          c.cost.start / 1e3, c.cost.stream / 1e3, c.cost.bound_by, c.cost.exit / 1e3);
    text += fmt::format("  the ISA contract {}\n", c.contract);
    text += fmt::format("batch invariance: {}\n", e.batch_invariance);
  }
  return text + verdict(e) + "\n";
}

std::string to_json(const Explanation& e) {
  nlohmann::ordered_json json{{"kernel", e.kernel},     {"arch", e.arch},        {"predicted_on", e.chip},
                              {"cache", e.cache},       {"sizes", e.sizes},      {"chosen", e.chosen},
                              {"quickest", e.quickest}, {"verdict", verdict(e)}, {"batch_invariance", e.batch_invariance}};
  for (const ExplainedCandidate& c : e.candidates)
    json["candidates"].push_back(
        {{"schedule", c.settings},
         {"why", c.why},
         {"model_us", c.cost_us > 0 ? nlohmann::ordered_json(c.cost_us) : nlohmann::ordered_json()},
         {"model", {{"start_ns", c.cost.start}, {"stream_ns", c.cost.stream}, {"exit_ns", c.cost.exit}, {"bound_by", c.cost.bound_by}}},
         {"predicted_us", c.predicted_us > 0 ? nlohmann::ordered_json(c.predicted_us) : nlohmann::ordered_json()},
         {"bound_by", c.bound_by},
         {"vgprs", c.vgprs},
         {"lds_bytes", c.lds_bytes},
         {"workgroups", c.workgroups},
         {"contract", c.contract},
         {"too_long", c.too_long}});
  return json.dump(2);
}

std::string to_html(const Explanation& e) {
  double longest = 0;
  for (const ExplainedCandidate& c : e.candidates) longest = std::max({longest, c.predicted_us, c.cost_us});
  std::string text = fmt::format(
      "<!doctype html><meta charset=utf-8><title>{0}</title><style>body{{font:14px sans-serif;margin:2em}}td,th{{padding:2px 8px;"
      "text-align:left;border-bottom:1px solid #ddd}}.bar{{height:9px}}</style><h1>{0}</h1><p>{1}, predicted on {2}, caches {3}. {4}</p>"
      "<p>{5}</p><table><tr><th>schedule<th>cost model (grey), predicted (blue), us<th>bound by<th>VGPRs<th>LDS"
      "<th>workgroups<th>ISA contract\n",
      escaped(e.kernel), e.arch, e.chip, e.cache, escaped(e.sizes), escaped(verdict(e)));
  for (std::size_t i = 0; i < e.candidates.size(); ++i) {
    const ExplainedCandidate& c = e.candidates[i];
    const auto bar = [&](double us, const char* colour) {
      return fmt::format("<div class=bar style='width:{:.0f}px;background:{}'></div>", 300 * us / longest, colour);
    };
    text += fmt::format("<tr><td>{}{}{}<td>{} / {}{}{}<td>{}<td>{}<td>{}<td>{}<td>{}\n", i == e.chosen ? "<b>" : "",
                        escaped(fmt::format("{}", fmt::join(c.settings, " "))), i == e.chosen ? "</b>" : "", us_text(c.cost_us),
                        us_text(c.predicted_us), bar(c.cost_us, "#bbb"), bar(c.predicted_us, "#47c"), escaped(c.bound_by), c.vgprs,
                        c.lds_bytes, c.workgroups, escaped(c.contract));
  }
  return text + "</table>\n";
}

} // namespace kiln
