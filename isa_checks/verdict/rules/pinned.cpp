// PIN001: registers that hand-written parts of a kernel keep for themselves.
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa::rules {

void pin001(const KernelAnalysis& k, FindingSink& sink) {
  const auto& pinned = sink.options().pinned;
  if (!pinned || pinned->first_vgpr >= reg::agpr || pinned->first_vgpr < 0) return;
  const auto first = static_cast<std::uint16_t>(pinned->first_vgpr);
  const RegisterRange kept{first, static_cast<std::uint16_t>(reg::agpr - first)};
  const Instructions found = where(all_instructions(k), [&](std::size_t i) {
    const bool may = std::any_of(pinned->allowed.begin(), pinned->allowed.end(),
                                 [&](const std::string& name) { return k.mnemonic(i).starts_with(name); });
    return !may && k.instruction(i).use.writes_any(kept);
  });
  if (found.empty()) return;
  sink.add({.message = fmt::format("{} v{} or above, which are kept for others",
                                   plural(found.size(), "instruction writes", "instructions write"), first),
            .evidence = {{"writes", number(found.size()), "instructions"}, {"first_vgpr", static_cast<double>(first), ""}},
            .instructions = found});
}

} // namespace kiln::isa::rules
