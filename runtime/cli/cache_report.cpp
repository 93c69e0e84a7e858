// Reviewing both builds of each kernel, and ordering what changed.
#include "runtime/cli/cache_report.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/spec.h"
#include "isa_checks/timing/predict.h"
#include "isa_checks/verdict/errata.h"
#include "runtime/build/inspect.h"
#include "runtime/cache/json.h"
#include "runtime/digest.h"
#include "runtime/launch/predict_kernel.h"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace kiln::cli {
namespace {

// ---- facts, kernel by kernel

using Json = nlohmann::ordered_json;

struct Side {
  std::string kernel, arch, key, code;
  std::map<std::string, std::string> facts; // "resources.vgprs" -> "24"
};

void flatten(const Json& json, const std::string& path, std::map<std::string, std::string>& out) {
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) flatten(value, path.empty() ? name : path + "." + name, out);
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      const bool named = json[i].is_object() && json[i].contains("name");
      flatten(json[i], path + "." + (named ? json[i]["name"].get<std::string>() : std::to_string(i)), out);
    }
  } else {
    out[path] = json.is_string() ? json.get<std::string>() : json.dump();
  }
}

// The fields of the key that say what is computed, not by which compiler.
std::string identity_of(const CacheKey& key) {
  std::string text;
  for (const auto& [name, value] : key.fields)
    if (name != "compiler" && name != "generator" && name != "variables") text += name + "\n" + value + "\n";
  return text;
}

std::map<std::string, Side> sides_of(const CacheFolder& layer) {
  std::map<std::string, Side> sides;
  for (const EntryInfo& entry : layer.list()) {
    try {
      const CachedKernel kernel = layer.verify(entry);
      const Json meta = parse_json(kernel.meta);
      Side side{.kernel = kernel.name, .arch = kernel.arch, .key = entry.key, .code = sha256(kernel.object), .facts = {}};
      flatten(meta.at("facts"), "", side.facts);
      flatten(meta.at("contract"), "contract", side.facts);
      side.facts["schedule"] = meta.at("schedule").get<std::string>();
      sides[identity_of(kernel.key)] = std::move(side);
    } catch (const EntryProblem&) { // `kiln cache verify` is the place to learn of it
    }
  }
  return sides;
}

std::vector<FactChange> changes_between(const Side& before, const Side& after) {
  std::set<std::string> names;
  for (const Side* side : {&before, &after})
    for (const auto& [name, value] : side->facts) names.insert(name);
  std::vector<FactChange> changes;
  const auto value = [](const Side& side, const std::string& name) {
    const auto found = side.facts.find(name);
    return found == side.facts.end() ? std::string("-") : found->second;
  };
  for (const std::string& name : names)
    if (value(before, name) != value(after, name)) changes.push_back({name, value(before, name), value(after, name)});
  return changes;
}

// Kernels are the same when spec, architecture, overrides and options are; generator and compiler may differ. If a cache has
// a kernel from several compilers, the last of them by key is taken. Corrupt entries are left out. Sorted by kernel.
std::vector<KernelComparison> compare_folders(const CacheFolder& before_layer, const CacheFolder& after_layer) {
  const std::map<std::string, Side> before = sides_of(before_layer), after = sides_of(after_layer);
  std::vector<KernelComparison> result;
  for (const auto& [identity, old] : before) {
    const auto found = after.find(identity);
    KernelComparison c{.kernel = old.kernel, .arch = old.arch, .before_key = old.key, .after_key = {}, .changes = {}};
    if (found != after.end()) {
      c.after_key = found->second.key;
      c.same_code = old.code == found->second.code;
      c.changes = changes_between(old, found->second);
    }
    result.push_back(std::move(c));
  }
  for (const auto& [identity, added] : after)
    if (!before.contains(identity))
      result.push_back({.kernel = added.kernel, .arch = added.arch, .before_key = {}, .after_key = added.key, .changes = {}});
  std::ranges::stable_sort(result, {}, [](const KernelComparison& c) { return std::pair(c.kernel, c.arch); });
  return result;
}

// ---- what they mean

constexpr double accepted_growth = 1.01; // of the predicted time

// Facts that are worse when they grow, or shrink. The first are registers; those that end with `true` alone are regressions.
struct Direction {
  std::string_view fact;
  int worse;
  bool regression;
};
constexpr Direction directions[] = {{"resources.vgprs", 1, false},         {"resources.sgprs", 1, false},
                                    {"resources.lds_bytes", 1, false},     {"resources.scratch_bytes", 1, true},
                                    {"resources.vgpr_spills", 1, true},    {"resources.sgpr_spills", 1, true},
                                    {"occupancy.waves_per_simd", -1, true}};

const Direction* direction_of(const FactChange& change) {
  const auto at = std::ranges::find(directions, std::string_view(change.fact), &Direction::fact);
  return at == std::end(directions) ? nullptr : &*at;
}

// By how much a fact got worse; 0 or less: it did not, or one side does not say.
double growth(const FactChange& change) {
  const Direction* const direction = direction_of(change);
  if (direction == nullptr || change.before == "-" || change.after == "-") return 0;
  return direction->worse * (std::strtod(change.after.c_str(), nullptr) - std::strtod(change.before.c_str(), nullptr));
}
bool is_worse(const FactChange& change) { return growth(change) > 0 || (change.fact == "contract.met" && change.after == "false"); }
bool is_regression(const FactChange& change) {
  const Direction* const direction = direction_of(change);
  return is_worse(change) && (direction == nullptr || direction->regression);
}

CodeObject object_of(const CachedKernel& kernel) {
  CodeObject object;
  object.name = kernel.name;
  object.arch = kernel.arch;
  object.bytes.assign(kernel.object.begin(), kernel.object.end());
  return object;
}

// Those of `list` that `other` has fewer of.
std::vector<isa::Finding> beyond(const std::vector<isa::Finding>& list, const std::vector<isa::Finding>& other, bool faults) {
  std::map<std::pair<std::string, isa::Severity>, std::ptrdiff_t> left;
  for (const isa::Finding& f : other) ++left[{f.rule, f.severity}];
  std::vector<isa::Finding> result;
  for (const isa::Finding& f : list)
    if (isa::is_published_fault(f.rule) == faults && (faults || f.severity > isa::Severity::info) && --left[{f.rule, f.severity}] < 0)
      result.push_back(f);
  return result;
}

double predicted_us(const CachedKernel& kernel, std::int64_t rows) {
  const KernelSpec spec = parse_spec(field_of(kernel.key, "spec"));
  std::map<std::string, std::int64_t> sizes;
  for (const Dim& dim : spec.dynamic_dims()) sizes[dim.name()] = size_within(dim, rows);
  KernelSource source;
  source.name = kernel.name;
  source.arch = kernel.arch;
  source.arguments = kernel.arguments;
  source.launch = kernel.launch;
  source.workspace_bytes = kernel.workspace_bytes;
  const std::string chip = field_of(kernel.key, "chip");
  return predict_kernel(spec, source, object_of(kernel), sizes, target(chip.empty() ? kernel.arch : chip).chip(), {.changes = false})
      .microseconds;
}

void review(KernelReport& report, const CachedKernel& before, const CachedKernel& after, const CacheReportOptions& options) {
  try {
    const std::vector<isa::Finding> old = findings_of(object_of(before)), now = findings_of(object_of(after));
    report.errata = {beyond(now, old, true), beyond(old, now, true)};
    report.lint = {beyond(now, old, false), beyond(old, now, false)};
  } catch (const std::exception& error) { // of another version, or damaged where no checksum looks
    report.not_compared.push_back(fmt::format("findings: {}", error.what()));
    return;
  }
  if (!options.times) return;
  try {
    report.before_us = predicted_us(before, options.rows);
    report.after_us = predicted_us(after, options.rows);
  } catch (const std::exception& error) {
    report.before_us.reset();
    report.not_compared.push_back(fmt::format("time: {}", error.what()));
  }
}

// Smaller is worse: what regressions are ordered by.
auto rank(const KernelReport& r) {
  double registers = 0;
  for (const FactChange& change : r.facts.changes) registers = std::max(registers, growth(change));
  const double time = r.before_us && r.after_us && *r.before_us > 0 ? *r.after_us / *r.before_us : 1;
  return std::tuple(!r.regression(), -static_cast<std::ptrdiff_t>(r.errata.worse()), r.slower() ? -time : -1.0,
                    -static_cast<std::ptrdiff_t>(r.lint.worse()), -registers);
}

std::string lines_of(const char* what, const FindingChanges& changes) {
  std::string text;
  for (const isa::Finding& f : changes.came)
    text += fmt::format("  {} {}: {} {} came: {}\n", f.severity > isa::Severity::info ? '!' : ' ', what, f.rule, isa::to_string(f.severity),
                        f.message);
  for (const isa::Finding& f : changes.went)
    text += fmt::format("    {}: {} {} went: {}\n", what, f.rule, isa::to_string(f.severity), f.message);
  return text;
}

// On one line: a schedule has several.
std::string on_a_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) text.replace(at, 1, ";");
  return text;
}

Json json_of(const FindingChanges& changes) {
  Json json{{"came", Json::array()}, {"went", Json::array()}};
  for (const auto& [name, list] : {std::pair{"came", &changes.came}, std::pair{"went", &changes.went}})
    for (const isa::Finding& f : *list)
      json[name].push_back({{"rule", f.rule}, {"severity", isa::to_string(f.severity)}, {"message", f.message}});
  return json;
}

} // namespace

std::size_t FindingChanges::worse() const {
  return static_cast<std::size_t>(std::ranges::count_if(came, [](const isa::Finding& f) { return f.severity > isa::Severity::info; }));
}

bool KernelReport::slower() const { return before_us && after_us && *after_us > *before_us * accepted_growth; }

bool KernelReport::changed() const {
  return facts.before_key.empty() || facts.after_key.empty() || !facts.changes.empty() || !errata.empty() || !lint.empty() ||
         (before_us && after_us && *before_us != *after_us);
}

bool KernelReport::regression() const {
  return errata.worse() > 0 || slower() || lint.worse() > 0 || std::ranges::any_of(facts.changes, is_regression);
}

std::vector<KernelReport> report_changes(const CacheFolder& before, const CacheFolder& after, const CacheReportOptions& options) {
  std::vector<KernelReport> result;
  for (KernelComparison& comparison : compare_folders(before, after)) {
    KernelReport& report = result.emplace_back();
    report.facts = std::move(comparison);
    const KernelComparison& c = report.facts;
    if (c.before_key.empty() || c.after_key.empty() || c.same_code) continue;
    review(report, before.verify(before.read(c.before_key), c.before_key), after.verify(after.read(c.after_key), c.after_key), options);
  }
  std::ranges::stable_sort(result, {}, rank);
  return result;
}

std::string to_text(const KernelReport& r) {
  if (!r.changed()) return {};
  std::string text = fmt::format("{} {} {}\n", r.facts.kernel, r.facts.arch,
                                 r.facts.before_key.empty()  ? "only in the second"
                                 : r.facts.after_key.empty() ? "only in the first"
                                                             : "");
  text += lines_of("errata", r.errata);
  if (r.before_us && r.after_us && *r.before_us != *r.after_us)
    text += fmt::format("  {} time: {:.2f} -> {:.2f} us predicted ({:+.1f} %)\n", r.slower() ? '!' : ' ', *r.before_us, *r.after_us,
                        100 * (*r.after_us / *r.before_us - 1));
  text += lines_of("lint", r.lint);
  for (const bool worse : {true, false})
    for (const FactChange& change : r.facts.changes)
      if (is_worse(change) == worse)
        text += fmt::format("  {} {}: {} -> {}\n", worse ? '!' : ' ', change.fact, on_a_line(change.before), on_a_line(change.after));
  for (const std::string& why : r.not_compared) text += fmt::format("    not compared: {}\n", why);
  return text;
}

nlohmann::ordered_json to_json(const KernelReport& r) {
  Json changes = Json::array();
  for (const FactChange& change : r.facts.changes)
    changes.push_back({{"fact", change.fact}, {"before", change.before}, {"after", change.after}});
  const auto time = [](const std::optional<double>& us) { return us ? Json(*us) : Json(); };
  return {{"kernel", r.facts.kernel},
          {"arch", r.facts.arch},
          {"before", r.facts.before_key},
          {"after", r.facts.after_key},
          {"same_code", r.facts.same_code},
          {"changes", changes},
          {"regression", r.regression()},
          {"errata", json_of(r.errata)},
          {"predicted_us", {{"before", time(r.before_us)}, {"after", time(r.after_us)}}},
          {"lint", json_of(r.lint)},
          {"not_compared", r.not_compared}};
}

} // namespace kiln::cli
