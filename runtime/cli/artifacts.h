// Artifacts: what `kiln compile --emit` shows of one kernel for one architecture.
#pragma once
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include "runtime/compile/compile.h"
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace kiln::cli {

// In the order in which they come to be. Up to the source nothing is compiled, and schedule and source are the first
// candidate's; from the object on they are those of the schedule that keeps the ISA contract.
enum class Artifact { spec, plan, schedule, source, object, assembly, facts, report };

std::vector<std::string> artifact_names();        // "spec", "plan", ..., "report": the words of --emit
Artifact parse_artifact(const std::string& word); // throws UserError

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

Production produce(const KernelSpec& spec, const Target& target, std::span<const Artifact> wanted,
                   const std::vector<std::string>& overrides, const CompileOptions& options);

} // namespace kiln::cli
