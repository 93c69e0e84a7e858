// Stream-K's partition and what it keeps in the workspace. Shared by the host and the device.
#pragma once
#include "common/config.h"

namespace kiln {

// Steps are numbered item after item, and workgroup g has those from floor(g * steps / workgroups) up to the next one's: runs that differ by one
// step at most. With fewer steps than workgroups the first workgroups have one each. `max_steps` bounds `steps`. Runs of whole units of
// `unit` steps are dealt out in the same way, and have no inverse.
template <unsigned workgroups, unsigned long long max_steps, unsigned unit = 1> struct StepRuns {
  // Holds (steps + 1) * (workgroups + 1).
  using Wide = Either<(max_steps + 1) * (workgroups + 1) < 1ull << 32, unsigned, unsigned long long>;
  unsigned steps;

  static constexpr unsigned groups() { return workgroups; } // among which the steps are shared
  constexpr unsigned first_step(unsigned group) const {
    const unsigned units = steps / unit;
    if (units < workgroups) return (group < units ? group : units) * unit;
    return static_cast<unsigned>(Wide(group) * Wide(units) / Wide(workgroups)) * unit;
  }
  // The inverse: the workgroup that has `step`.
  constexpr unsigned group_of(unsigned step) const {
    return steps < workgroups ? step : static_cast<unsigned>(((Wide(step) + 1) * Wide(workgroups) - 1) / Wide(steps));
  }
  // The same without a division, from a number near to the result.
  constexpr unsigned group_of(unsigned step, unsigned near) const {
    if (steps < workgroups) return step;
    unsigned group = near < workgroups ? near : workgroups - 1;
    while (first_step(group) > step) --group;
    while (first_step(group + 1) <= step) ++group;
    return group;
  }
};

// The same among the first `active` workgroups, which may be told at run time; the others have none. 1 <= active, and active <= steps.
struct ActiveRuns {
  using Wide = unsigned long long;
  unsigned steps, active;
  float steps_per_group; // to an ulp or two

  constexpr unsigned groups() const { return active; }
  constexpr unsigned first_step(unsigned group) const {
    if (group >= active) return steps;
    unsigned step = static_cast<unsigned>(static_cast<float>(group) * steps_per_group); // off by steps / 2^21 at most, which the loops mend
    while (Wide(step) * active > Wide(group) * steps) --step;
    while (Wide(step + 1) * active <= Wide(group) * steps) ++step;
    return step;
  }
  constexpr unsigned group_of(unsigned step, unsigned near) const {
    unsigned group = near < active ? near : active - 1;
    while (first_step(group) > step) --group;
    while (first_step(group + 1) <= step) ++group;
    return group;
  }
};

// Items of `item_steps` steps each, of which every one is cut into `parts`, a workgroup each, and the other workgroups have none. With 0 parts
// StepRuns, for there are more items than workgroups.
template <unsigned workgroups, unsigned long long max_steps, unsigned item_steps> struct PartRuns {
  using Equal = StepRuns<workgroups, max_steps>;
  // Holds item_steps * workgroups, also for workgroups that have no steps.
  using Wide = Either<item_steps * (workgroups + 1ull) < 1ull << 32, unsigned, unsigned long long>;
  unsigned steps, parts;

  constexpr unsigned groups() const { return parts != 0 ? steps / item_steps * parts : workgroups; }
  constexpr unsigned first_step(unsigned group) const {
    if (parts == 0) return Equal{steps}.first_step(group);
    const Wide step = Wide(group) * item_steps / parts;
    return step < steps ? static_cast<unsigned>(step) : steps;
  }
  constexpr unsigned group_of(unsigned step) const {
    if (parts == 0) return Equal{steps}.group_of(step);
    const unsigned item = step / item_steps;
    return item * parts + ((step - item * item_steps + 1) * parts - 1) / item_steps;
  }
  constexpr unsigned group_of(unsigned step, unsigned near) const { return parts == 0 ? Equal{steps}.group_of(step, near) : group_of(step); }
};

// What the workgroups keep: a counter for the item that goes on behind each one's run, the generation of each one's last launch, `counters` of
// the caller's own; and `places` a workgroup for parts of `numbers` numbers, each beside its generation.
struct StreamKSpace {
  int workgroups = 1;
  int numbers = 0;
  int counters = 0;
  int places = 2;

  constexpr int first_generation() const { return workgroups + counters; }
  constexpr long long counter_bytes() const { return ((static_cast<long long>(first_generation()) + workgroups) * 4 + 255) / 256 * 256; }
  constexpr long long bytes() const { return counter_bytes() + 8ll * places * workgroups * numbers; }

  bool operator==(const StreamKSpace&) const = default;
};

} // namespace kiln
