// HazardWindow: the wait states between instructions (target/hazards.h), counted along the path that a wave takes.
#pragma once
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/machine/wave.h"
#include "isa_checks/target/hazards.h"
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <span>

namespace kiln::exec {

// The latest instructions of a wave that something must be waited for after.
class HazardWindow {
public:
  void reset() { *this = {}; }
  // Before the instruction is executed: reports what it comes too early after.
  void step(Wave& wave, const Inst& inst, const isa::HazardTraits& traits, const isa::TargetFacts& target) {
    const std::uint64_t now = clock_.issue(traits);
    if ((traits.consumes & recent_) != 0) check(wave, inst, traits, target, now);
    if (traits.produces != 0) {
      ring_[newest_ = (newest_ + 1) % ring_.size()] = {&inst, &traits, now};
      recent_ |= traits.produces;
    }
  }

private:
  struct Issued {
    const Inst* inst = nullptr;
    const isa::HazardTraits* traits = nullptr;
    std::uint64_t time = 0;
  };

  void check(Wave& wave, const Inst& inst, const isa::HazardTraits& traits, const isa::TargetFacts& target, std::uint64_t now) {
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

  std::array<Issued, 32> ring_{}; // more than can be issued in the longest wait
  std::size_t newest_ = 0;
  isa::IssueClock clock_;
  std::uint16_t recent_ = 0; // what the ring's entries produce, some of it perhaps long ago
};

} // namespace kiln::exec
