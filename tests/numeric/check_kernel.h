// check_kernel: builds a spec, executes its code object on the CPU and compares every output with the reference.
#pragma once
#include "gen/plan/target.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/spec.h"
#include "isa_checks/exec/run/execute.h"
#include "runtime/build/build_kernel.h"
#include "runtime/compile/compile.h"
#include "runtime/proof/trials.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln::testing {

struct CheckOptions {
  std::int64_t rows = 3;
  bool special_values = false;
  std::vector<std::string> settings = {}; // of the schedule
};

// What is wrong, with the spec's text; nothing when all is right.
std::optional<std::string> check_kernel(const KernelSpec& spec, const Target& target, std::uint64_t seed, const CheckOptions& options = {});

using kiln::OrderOptions;

// What is wrong when `kernel` runs under several interleavings; nothing when all of them complete without a defect, inside the bounds,
// and with the same bits.
std::optional<std::string> check_orders(const KernelSpec& spec, const BuiltKernel& kernel, const Inputs& inputs, OrderOptions options = {});

// Whether point `number` of a list that both architectures walk runs on this one. Each point runs on one of them, with KILN_LINT_ALL
// on both. The turn is the parity of the number's bits, which follows no period that the list may have.
bool runs_here(const Target& target, std::uint64_t number);
// The same of a list that is long, of which the usual run takes about half of the points: where pairs of neighbouring ones in the number's
// bits are even (the Rudin-Shapiro sequence), which follows no period either.
bool runs_in_slice(const Target& target, std::uint64_t number);

// KILN_LINT_ALL is set: every kernel that is executed is measured, and compared with the static analyses.
bool compares_everything();

// The first wait or LDS instruction of which the analyses say something else than the measured run; empty when there is none,
// and when nobody asked.
std::string disagreement_if_asked(const CodeObject& kernel, const exec::ExecResult& run);

} // namespace kiln::testing
