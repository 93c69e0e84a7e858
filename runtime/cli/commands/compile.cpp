// kiln compile: one kernel for some architectures; shows any of the values on the way.
#include "runtime/compile/compile.h"
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "gen/plan/plan.h"
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include "runtime/build/build_kernel.h"
#include "runtime/build/inspect.h"
#include "runtime/cli/command.h"
#include "runtime/cli/kernel_choice.h"
#include "runtime/cli/output.h"
#include "runtime/cli/target_choice.h"
#include "runtime/launch/arguments/interface.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace kiln::cli {
namespace {

// In the order in which they come to be. Up to the source nothing is compiled, and schedule and source are the first
// candidate's; from the object on they are those of the schedule that keeps the ISA contract.
enum class Artifact { spec, plan, schedule, source, object, assembly, facts, report };

struct Word {
  const char *word, *file_ending;
};
constexpr Word stages[] = {{"spec", "kiln"}, {"plan", "plan.txt"}, {"schedule", "schedule.txt"}, {"source", "hip"},
                           {"object", "co"}, {"asm", "s"},         {"facts", "facts.txt"},       {"report", "report.txt"}};

struct Emitted {
  Artifact artifact;
  std::string file_ending;     // "hip"
  std::string bytes;           // text, but for the object
  nlohmann::ordered_json json; // facts and report: an object; texts: a string; the object: its size
};

struct Production {
  std::string kernel, arch;
  double compile_ms = 0; // 0 when nothing was compiled
  std::string compiler;
  std::vector<Emitted> emitted;
  nlohmann::ordered_json interface; // from the source on: what a program needs to launch the object, see KernelInterface
};

// "spec", "plan", ..., "report": the words of --emit.
std::vector<std::string> artifact_names() {
  std::vector<std::string> names;
  for (const Word& word : stages) names.emplace_back(word.word);
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
    production.emitted.push_back({artifact, stages[static_cast<std::size_t>(artifact)].file_ending, std::move(bytes), std::move(json)});
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

struct CompileRequest {
  KernelChoice kernel;
  std::vector<std::string> archs, emit{"facts"}, overrides;
  std::string folder;
  bool json = false, werror = false, batch_invariant = false;
};

std::string file_of(const CompileRequest& request, const Production& production, const Emitted& emitted) {
  const std::string file = fmt::format("{}.{}.{}", production.kernel, production.arch, emitted.file_ending);
  return (std::filesystem::path(request.folder) / file).string();
}

void write_files(const CompileRequest& request, const std::vector<Production>& productions) {
  make_folder(request.folder);
  for (const Production& production : productions)
    for (const Emitted& emitted : production.emitted) write_file(file_of(request, production, emitted), emitted.bytes);
}

void print_json(const CompileRequest& request, const std::vector<Production>& productions) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const std::vector<std::string> words = artifact_names();
  for (const Production& production : productions) {
    nlohmann::ordered_json entry{{"kernel", production.kernel}, {"arch", production.arch}};
    if (!production.compiler.empty()) {
      entry["compiler"] = production.compiler;
      entry["compile_ms"] = production.compile_ms;
    }
    if (!production.interface.is_null()) entry["interface"] = production.interface;
    for (const Emitted& emitted : production.emitted) {
      const std::string& word = words[static_cast<std::size_t>(emitted.artifact)];
      entry[word] = emitted.json;
      if (!request.folder.empty()) entry["files"][word] = file_of(request, production, emitted);
    }
    list.push_back(std::move(entry));
  }
  fmt::print("{}\n", list.dump(2));
}

void print_text(const CompileRequest& request, const std::vector<Production>& productions) {
  const std::vector<std::string> words = artifact_names();
  const bool titled = productions.size() * request.emit.size() > 1;
  for (const Production& production : productions) {
    for (const Emitted& emitted : production.emitted) {
      if (!request.folder.empty()) {
        fmt::print("{}\n", file_of(request, production, emitted));
        continue;
      }
      const std::string& word = words[static_cast<std::size_t>(emitted.artifact)];
      if (titled) fmt::print("== {} {} {}\n", production.kernel, production.arch, word);
      fmt::print("{}{}", emitted.bytes, emitted.bytes.ends_with('\n') ? "" : "\n");
    }
  }
}

int run(const CompileRequest& request) {
  std::vector<Artifact> wanted;
  for (const std::string& word : request.emit) wanted.push_back(parse_artifact(word));
  if (request.folder.empty() && !request.json && std::ranges::find(wanted, Artifact::object) != wanted.end())
    throw UserError("--emit object", "a code object is no text to print", "name a folder for it with -o");
  CompileOptions options = own_process_options(process_environment());
  options.warnings_as_errors = request.werror;

  std::vector<Target> targets; // all of them before the first compile: a wrong one should not cost a compile
  const bool invariant = request.batch_invariant || options.environment.batch_invariant;
  for (const std::string& arch : request.archs) targets.push_back(target(arch).with_batch_invariance(invariant));
  if (targets.empty()) targets.push_back(chosen_target({.batch_invariant = invariant}).target);
  std::vector<Production> productions;
  for (const Target& one : targets)
    productions.push_back(produce(chosen_spec(request.kernel, one), one, wanted, request.overrides, options));
  if (!request.folder.empty()) write_files(request, productions);
  request.json ? print_json(request, productions) : print_text(request, productions);
  return ok;
}

} // namespace

Command make_compile(CLI::App& root) {
  CLI::App* app = root.add_subcommand("compile", "Compile a kernel and show what came out, or any value on the way");
  const auto request = std::make_shared<CompileRequest>();
  add_kernel_options(*app, request->kernel);
  app->add_option("--arch", request->archs, "Architectures, comma separated (that of KILN_CHIP, else of this machine's GPU, else gfx942)")
      ->delimiter(',');
  app->add_option("--emit", request->emit, fmt::format("What to show, comma separated: {}", fmt::join(artifact_names(), ", ")))
      ->delimiter(',')
      ->capture_default_str();
  app->add_option("--set", request->overrides, "Schedule field to replace, NAME=VALUE; may be repeated")->delimiter(',');
  add_batch_invariant_option(*app, request->batch_invariant);
  app->add_option("-o,--output", request->folder, "Folder to write files to, KERNEL.ARCH.ENDING");
  app->add_flag("--werror", request->werror, "Compiler warnings are errors");
  app->add_flag("--json", request->json, "Print one JSON document; with source, object or later it says how to launch the kernel too");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli
