// Proof: what is known of one kernel, line by line: its contract, published faults, lint, results against bounds, interleavings, time.
// docs/proof.md explains each line.
#pragma once
#include "gen/plan/target.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/spec.h"
#include "isa_checks/timing/chips.h"
#include "isa_checks/verdict/expectations.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/device.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

enum class ProofVerdict : std::uint8_t {
  holds,
  fails,
  stated, // a fact that is neither right nor wrong, or that nobody has tried
};
std::string_view to_string(ProofVerdict verdict);

struct ProofLine {
  std::string name = {}; // "contract", "results, special inputs"
  ProofVerdict verdict = ProofVerdict::stated;
  std::string found = {}; // one sentence, with numbers
  // The same numbers by name, for programs: {"inputs", 6}, {"elements", 12288}, {"outside", 0}.
  std::vector<std::pair<std::string, double>> numbers = {};
  std::vector<std::string> evidence = {}; // of what fails, and findings that are warnings
};

struct ProofSheet {
  std::string title; // what was asked for, "rmsnorm cols=4096"
  std::string kernel, arch, chip, spec;
  std::vector<std::string> settings; // of the schedule
  std::string why;                   // the schedule was chosen
  std::string compiler, llvm, key, source_sha256, object_sha256;
  isa::IsaReport contract; // the line "contract" in full
  std::vector<ProofLine> lines;
  std::vector<std::string> unknown; // what no line says, a sentence each

  bool holds() const;               // no line fails
  const ProofLine* failing() const; // the first line that fails, or null
};

struct ProofOptions {
  std::int64_t rows = 33;       // the largest of the sizes that run-time dimensions have in turn, beside 1 and 3
  int inputs = 0;               // of each kind of values; 0: by the size of the kernel, so that a sheet takes some seconds
  int orders = 0, launches = 0; // interleavings, and launches in each; 0: by the size of the kernel
  std::uint64_t seed = 1;       // of the inputs; they have this and the following ones
  std::vector<std::string> overrides = {};
  std::string title = {};
  const timing::Chip* chip = nullptr; // whose time is predicted; null: the target's largest
  std::optional<Device> device = {};  // where the kernel runs too, beside the CPU model
};

// The sheet of a kernel that is built: everything is read from `built.object` and from executing it. Throws UserError for options that do
// not fit the spec, EnvironmentError of the device.
ProofSheet prove(const KernelSpec& spec, const Target& target, const BuiltKernel& built, const CompileOptions& compile,
                 const ProofOptions& options = {});
// Builds the kernel too. Thread-safe. No schedule that keeps the contract: a sheet with that line alone, which fails.
ProofSheet prove(const KernelSpec& spec, const Target& target, const CompileOptions& compile, const ProofOptions& options = {});

std::string to_text(const ProofSheet& sheet);     // a line each, for a terminal
std::string to_json(const ProofSheet& sheet);     // one document
std::string to_markdown(const ProofSheet& sheet); // a page for a reviewer
// The sheets as rows of a table; `pages` has the name of each one's page, or is empty.
std::string summary(const std::vector<ProofSheet>& sheets, const std::vector<std::string>& pages = {});

} // namespace kiln
