// TargetChoice: the options, and the search for a default.
#include "runtime/cli/target_choice.h"
#include "gen/error.h"
#include "runtime/environment.h"
#include "runtime/launch/doctor/doctor.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cli {
namespace {

constexpr const char* default_rule = "KILN_CHIP, else this machine's GPU, else mi300x";

std::string default_arch() {
  for (const std::string& arch : driver_archs("/"))
    if (std::ranges::find(known_archs(), arch) != known_archs().end()) return arch;
  return std::string(timing::chip("mi300x").arch);
}

} // namespace

void add_arch_option(CLI::App& app, std::string& arch) {
  app.add_option("--arch", arch, fmt::format("Architecture: {} (that of {})", fmt::join(known_archs(), " or "), default_rule));
}

void add_batch_invariant_option(CLI::App& app, bool& batch_invariant) {
  app.add_flag("--batch-invariant", batch_invariant, "The bits of a row depend on its own inputs alone (KILN_BATCH_INVARIANT=1)");
}

void add_target_options(CLI::App& app, TargetChoice& choice) {
  app.add_option("--arch", choice.arch, fmt::format("Architecture: {} (that of --chip)", fmt::join(known_archs(), " or ")));
  app.add_option("--chip", choice.chip, fmt::format("Chip: {} (the largest of --arch, else {})", timing::chip_names(), default_rule));
  add_batch_invariant_option(app, choice.batch_invariant);
}

static ChosenTarget chosen_chip(const TargetChoice& choice) {
  const std::string named = !choice.chip.empty() || !choice.arch.empty() ? choice.chip : process_environment().chip;
  if (named.empty()) {
    const Target chosen = target(choice.arch.empty() ? default_arch() : choice.arch);
    return {chosen, &timing::chip(chosen.chip().name)};
  }
  const timing::Chip& chip = timing::chip(named);
  if (!choice.arch.empty() && target(choice.arch).arch() != chip.arch)
    throw UserError("--chip " + choice.chip, fmt::format("it is {}, --arch is {}", chip.arch, choice.arch), "leave --arch out");
  return {target(chip.name), &chip};
}

ChosenTarget chosen_target(const TargetChoice& choice) {
  const ChosenTarget chosen = chosen_chip(choice);
  return {chosen.target.with_batch_invariance(choice.batch_invariant || process_environment().batch_invariant), chosen.chip};
}

} // namespace kiln::cli
