// Addresses of lanes, with the offsets of the instruction.
#include "isa_checks/analysis/lanes/lds_bytes.h"
#include <string_view>

namespace kiln::isa {

void add_lds_bytes(const Program& p, const std::vector<Operands>& operands, const LaneAddresses& addresses, int wave, std::size_t i,
                   std::vector<LdsBytes>& list, int lanes) {
  const LaneAddress* const known = addresses.find(i);
  const std::string_view m = p.instructions[i].mnemonic;
  if (!known || !known->value.known() || !known->active) return;
  const bool pair = m.starts_with("ds_read2") || m.starts_with("ds_write2"), far = m.find("st64") != m.npos;
  const auto op = p.instructions[i].memory;
  const auto size = static_cast<std::uint32_t>(pair ? op->bytes / 2 : op->bytes);
  std::vector<std::uint32_t> offsets{static_cast<std::uint32_t>(operands[i].value("offset").value_or(0))};
  if (pair) {
    const std::uint32_t unit = size * (far ? 64U : 1U);
    offsets = {static_cast<std::uint32_t>(operands[i].value("offset0").value_or(0)) * unit,
               static_cast<std::uint32_t>(operands[i].value("offset1").value_or(0)) * unit};
  }
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes); ++lane)
    if ((*known->active >> lane & 1U) != 0)
      for (const std::uint32_t offset : offsets)
        list.push_back({known->value.lane[lane] + offset, known->value.lane[lane] + offset + size, wave});
}

} // namespace kiln::isa
