// Artifacts: what `kiln compile --emit` shows of one kernel for one architecture.
#include "runtime/cli/artifacts.h"
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "gen/plan/plan.h"
#include "runtime/build/build_kernel.h"
#include "runtime/build/inspect.h"
#include "runtime/launch/arguments/interface.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cli {
namespace {

struct Word {
  const char *word, *file_ending;
};
constexpr Word words[] = {{"spec", "kiln"}, {"plan", "plan.txt"}, {"schedule", "schedule.txt"}, {"source", "hip"},
                          {"object", "co"}, {"asm", "s"},         {"facts", "facts.txt"},       {"report", "report.txt"}};

} // namespace

std::vector<std::string> artifact_names() {
  std::vector<std::string> names;
  for (const Word& word : words) names.emplace_back(word.word);
  return names;
}

Artifact parse_artifact(const std::string& word) {
  const std::vector<std::string> names = artifact_names();
  const auto found = std::ranges::find(names, word);
  if (found == names.end())
    throw UserError("--emit", fmt::format("there is no stage \"{}\"", word), fmt::format("choose among {}", fmt::join(names, ", ")));
  return static_cast<Artifact>(found - names.begin());
}

Production produce(const KernelSpec& spec, const Target& target, std::span<const Artifact> wanted,
                   const std::vector<std::string>& overrides, const CompileOptions& options) {
  Production production{.kernel = spec.name(), .arch = target.arch(), .compiler = {}, .emitted = {}, .interface = {}};
  const auto last = std::ranges::max(wanted);
  const auto add = [&](Artifact artifact, std::string bytes, nlohmann::ordered_json json) {
    if (std::ranges::find(wanted, artifact) == wanted.end()) return;
    production.emitted.push_back({artifact, words[static_cast<std::size_t>(artifact)].file_ending, std::move(bytes), std::move(json)});
  };
  const auto add_text = [&](Artifact artifact, const std::string& text) { add(artifact, text, text); };

  add_text(Artifact::spec, to_text(spec));
  if (last == Artifact::spec) return production;

  const Plan plan = make_plan(spec, target);
  add_text(Artifact::plan, to_text(plan));
  if (last == Artifact::plan) return production;

  if (last < Artifact::object) {
    const Schedule schedule = with_overrides(choose_schedule(plan, target), overrides, plan, target);
    add_text(Artifact::schedule, to_text(schedule));
    if (last == Artifact::source) {
      const KernelSource source = emit_source(plan, schedule, target);
      production.interface = nlohmann::ordered_json::parse(to_json(interface_of(source)));
      add_text(Artifact::source, self_contained(source));
    }
    return production;
  }

  const BuiltKernel built = build_kernel(spec, target, options, overrides);
  production.compile_ms = built.times.library;
  production.compiler = built.object.compiler;
  production.interface = nlohmann::ordered_json::parse(to_json(interface_of(built.source)));
  add_text(Artifact::schedule, to_text(built.schedule));
  add_text(Artifact::source, self_contained(built.source));
  add(Artifact::object, {built.object.bytes.begin(), built.object.bytes.end()}, built.object.bytes.size());
  if (std::ranges::find(wanted, Artifact::assembly) != wanted.end()) add_text(Artifact::assembly, assembly(built.object));
  add(Artifact::facts, isa::to_text(built.facts), nlohmann::ordered_json::parse(isa::to_json(built.facts)));
  add(Artifact::report, isa::to_text(built.report), nlohmann::ordered_json::parse(isa::to_json(built.report)));
  return production;
}

} // namespace kiln::cli
