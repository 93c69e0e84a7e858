// LdsBytes: the bytes of LDS that an instruction of one wave touches.
#pragma once
#include "isa_checks/analysis/lanes/lane_addresses.h"
#include <cstdint>
#include <vector>

namespace kiln::isa {

struct LdsBytes {
  std::uint32_t begin = 0, end = 0;
  int wave = 0;
};
inline constexpr std::uint32_t longest_lds_access = 16; // bytes of a lane

// Adds those of the first `lanes` lanes, as far as they are on; none when addresses or lanes are not known for certain. `addresses` are the
// wave's own.
void add_lds_bytes(const Program& program, const std::vector<Operands>& operands, const LaneAddresses& addresses, int wave,
                   std::size_t instruction, std::vector<LdsBytes>& list, int lanes = wave_size);

} // namespace kiln::isa
