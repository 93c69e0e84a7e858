// Target: the rows of machine/ that code is generated for. The only file of gen/ that spells their names.
#include "gen/plan/target.h"
#include "gen/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace kiln {
namespace {
constexpr std::string_view archs[] = {machine::gfx942.name, machine::gfx950.name};

std::vector<std::string_view> names_of_chips() {
  std::vector<std::string_view> names;
  for (const machine::Chip& chip : machine::chips) names.push_back(chip.name);
  return names;
}
} // namespace

std::span<const std::string_view> known_archs() { return archs; }

bool Target::has_native(DType type) const { return !is_fp8(type) || is_fnuz(type) == has_fnuz_fp8(); }

std::string Target::own_chip() const { return chip_.name == machine::largest_chip(arch_)->name ? "" : std::string(chip_.name); }

Target Target::with_batch_invariance(bool wanted) const {
  Target same = *this;
  same.batch_invariant_ = wanted;
  return same;
}

Target target(std::string_view arch_or_chip) {
  const auto chip = std::ranges::find(machine::chips, arch_or_chip, &machine::Chip::name);
  const std::string_view arch = chip == machine::chips.end() ? arch_or_chip : chip->arch;
  const auto known = std::ranges::find(archs, arch);
  if (known == std::end(archs))
    throw UserError(fmt::format("target '{}'", arch),
                    arch.find(':') != arch.npos ? "target features do not belong to the architecture's name"
                                                : "is not an architecture that Kiln generates code for",
                    fmt::format("use one of {}, or a chip: {}", fmt::join(archs, ", "), fmt::join(names_of_chips(), ", ")));
  const machine::Arch& row = *std::ranges::find(machine::archs, arch, &machine::Arch::name);
  const machine::Chip& largest = *machine::largest_chip(row);
  return {row, chip == machine::chips.end() || chip->cus == largest.cus ? largest : *chip};
}

std::optional<DType> parse_dtype(std::string_view text, const Target& target) { return text == "fp8" ? target.fp8() : parse_dtype(text); }

} // namespace kiln
