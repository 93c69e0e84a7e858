// The check along the path of a wave.
#include "isa_checks/exec/sanitisers/hazards.h"
#include "isa_checks/exec/machine/defects.h"
#include <fmt/format.h>

namespace kiln::exec {

void HazardWindow::check(Wave& wave, const Inst& inst, const isa::HazardTraits& traits, const isa::TargetFacts& target, std::uint64_t now) {
  recent_ = 0;
  std::array<const isa::HazardTraits*, 32> newer; // matrix instructions
  std::size_t newer_count = 0;
  for (std::size_t k = 0; k < ring_.size(); ++k) {
    const Issued& first = ring_[(newest_ + ring_.size() - k) % ring_.size()];
    if (first.inst == nullptr) break;
    const auto between = static_cast<std::int64_t>(now - first.time) - 1;
    if (between >= isa::max_hazard_states) break;
    recent_ |= first.traits->produces;
    if ((first.traits->produces & traits.consumes) == 0) continue;
    if ((first.traits->produces & isa::hazard_matrix) != 0) {
      const bool hidden = result_overwritten(*first.traits, traits, std::span(newer.data(), newer_count));
      newer[newer_count++] = first.traits;
      if (hidden) continue;
    }
    const isa::Hazard need = hazard_between(*first.traits, traits, target);
    if (between >= need.states) continue;
    report(wave, inst, DefectKind::hazard, -1, [&] {
      return fmt::format("{} {} wait states after `{}` at {:#x}, the hardware needs {}", need.what, between, first.inst->text,
                         first.inst->address, need.states);
    });
  }
}

} // namespace kiln::exec
