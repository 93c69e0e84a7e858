// Target: the rows of machine/ that code is generated for. The only file of gen/ that spells their names.
#include "gen/plan/target.h"
#include "gen/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {
constexpr std::string_view archs[] = {machine::gfx942.name, machine::gfx950.name};
}

std::span<const std::string_view> known_archs() { return archs; }

bool Target::has_native(DType type) const { return !is_fp8(type) || is_fnuz(type) == has_fnuz_fp8(); }

Target target(std::string_view arch) {
  const auto known = std::ranges::find(archs, arch);
  if (known == std::end(archs))
    throw UserError(fmt::format("target '{}'", arch),
                    arch.find(':') != arch.npos ? "target features do not belong to the architecture's name"
                                                : "is not an architecture that Kiln generates code for",
                    fmt::format("use one of {}", fmt::join(archs, ", ")));
  const machine::Arch& row = *std::ranges::find(machine::archs, arch, &machine::Arch::name);
  return {row, *machine::largest_chip(row)};
}

std::optional<DType> parse_dtype(std::string_view text, const Target& target) { return text == "fp8" ? target.fp8() : parse_dtype(text); }

} // namespace kiln
