// TargetChoice: --arch and --chip of a command, and what they are when nothing is said.
#pragma once
#include "gen/plan/target.h"
#include "isa_checks/timing/chips.h"
#include <CLI/CLI.hpp>
#include <string>

namespace kiln::cli {

struct TargetChoice {
  std::string arch = {}, chip = {};
  bool batch_invariant = false; // or by KILN_BATCH_INVARIANT
};

struct ChosenTarget {
  Target target;
  const timing::Chip* chip; // of target's architecture
};

void add_arch_option(CLI::App& app, std::string& arch);
void add_target_options(CLI::App& app, TargetChoice& choice); // --arch, --chip and --batch-invariant
void add_batch_invariant_option(CLI::App& app, bool& batch_invariant);

// --chip, else the largest chip of --arch, else KILN_CHIP, else the architecture of the first GPU that the driver lists and Kiln knows,
// else MI300X. Commands print what they took. Throws UserError for an --arch that is not the chip's, or unknown names.
ChosenTarget chosen_target(const TargetChoice& choice);

} // namespace kiln::cli
