// Race detection between the waves of a workgroup.
#include "isa_checks/exec/lds_shadow.h"
#include "isa_checks/exec/findings.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace kiln::exec {

void LdsShadow::reset(std::size_t bytes, int waves, bool find_races) {
  find_races_ = find_races && waves > 1;
  cells_.assign(find_races_ ? bytes : 0, {});
  undefined.assign(bytes, 1);
  released_.clear();
  waves_ = waves;
  for (auto& clock : clocks_) clock.fill(0);
  for (std::size_t w = 0; w < max_waves; ++w) clocks_[w][w] = 1;
}

void LdsShadow::barrier() {
  Clock joined{};
  for (const Clock& c : clocks_)
    for (std::size_t w = 0; w < max_waves; ++w) joined[w] = std::max(joined[w], c[w]);
  for (std::size_t w = 0; w < max_waves; ++w) {
    clocks_[w] = joined;
    ++clocks_[w][w];
  }
}

void LdsShadow::report(Wave& wave, const Inst& inst, const char* what, const Access& other, const char* other_what, std::uint64_t address, int lane) {
  wave.findings->report(FindingKind::lds_race, inst.address, [&] {
    Finding f{FindingKind::lds_race, inst.address, inst.text, {}, wave.index, lane,
              fmt::format("{} LDS byte {}, which wave {} {} with no barrier between", what, address, other.wave, other_what)};
    std::memcpy(f.workgroup, wave.group->id, sizeof f.workgroup);
    return f;
  });
}

void LdsShadow::read_cell(Wave& wave, const Inst& inst, std::uint64_t address, int lane, bool atomic) {
  Cell& cell = cells_[address];
  const auto self = static_cast<std::uint8_t>(wave.index);
  if (!ordered(cell.write, self) && !(atomic && cell.write.atomic)) report(wave, inst, "reads", cell.write, "wrote", address, lane);
  const Access now{clocks_[self][self], self, atomic};
  for (Access& reader : cell.readers)
    if (reader.time == 0 || reader.wave == self) {
      reader = now;
      return;
    }
  cell.readers[1] = cell.readers[0];
  cell.readers[0] = now;
}

void LdsShadow::write_cell(Wave& wave, const Inst& inst, std::uint64_t address, int lane, bool atomic) {
  Cell& cell = cells_[address];
  const auto self = static_cast<std::uint8_t>(wave.index);
  if (!ordered(cell.write, self) && !(atomic && cell.write.atomic)) report(wave, inst, "writes", cell.write, "wrote", address, lane);
  for (const Access& reader : cell.readers)
    if (!ordered(reader, self) && !(atomic && reader.atomic)) report(wave, inst, "writes", reader, "read", address, lane);
  cell.write = {clocks_[self][self], self, atomic};
}

void LdsShadow::read(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane) {
  for (std::uint64_t a = address; a < address + bytes && a < cells_.size(); ++a) read_cell(wave, inst, a, lane, false);
}

void LdsShadow::write(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane) {
  for (std::uint64_t a = address; a < address + bytes && a < cells_.size(); ++a) write_cell(wave, inst, a, lane, false);
}

void LdsShadow::atomic(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane) {
  Clock& mine = clocks_[static_cast<std::size_t>(wave.index)];
  Clock& released = released_[address & ~3ULL];
  for (std::size_t w = 0; w < max_waves; ++w) mine[w] = std::max(mine[w], released[w]);
  for (std::uint64_t a = address; a < address + bytes && a < cells_.size(); ++a) {
    read_cell(wave, inst, a, lane, true);
    write_cell(wave, inst, a, lane, true);
  }
  for (std::size_t w = 0; w < max_waves; ++w) released[w] = std::max(released[w], mine[w]);
  ++mine[static_cast<std::size_t>(wave.index)];
}

} // namespace kiln::exec
