// LaneAddresses: the addresses of memory instructions over the lanes of a wave, followed from the work-item id through
// the program as far as they can be known without running it.
#pragma once
#include "isa_checks/analysis/facts.h"
#include "isa_checks/analysis/lanes/lane_value.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include "isa_checks/object/code_object.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace kiln::isa {

struct LaneAddress {
  std::size_t instruction = 0;
  // The low 32 bits of the byte address: of LDS the address, of device memory up to the unknown base. The immediate
  // offset is not in it.
  LaneValue value;
  // The lanes that are switched on, where that is known; nothing when it depends on data (a bound check, say).
  std::optional<std::uint64_t> active;
};

struct LaneAddresses {
  std::vector<LaneAddress> known;                         // by instruction; of memory instructions that are not here nothing is known
  bool complete = true;                                   // false: the work budget ended, and nothing was followed
  const LaneAddress* find(std::size_t instruction) const; // null when unknown
};

// Assumes what the hardware promises (the work-item id in v0, packed for two and three dimensions, whole waves along x) and
// that workgroups are as large as the kernel was compiled for: waves are full. A kernel that was compiled for several
// dimensions without a required size has unknown ids.
// What holds in every wave.
LaneAddresses lane_addresses(const Program& program, const std::vector<Operands>& operands, const Kernel& kernel,
                             const Resources& resources);
// What holds in each of these waves of a workgroup.
std::vector<LaneAddresses> lane_addresses_of(const std::vector<int>& waves, const Program& program, const std::vector<Operands>& operands,
                                             const Kernel& kernel, const Resources& resources);

} // namespace kiln::isa
