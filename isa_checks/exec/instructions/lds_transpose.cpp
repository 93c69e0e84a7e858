// gfx950's transposing LDS reads. Sixteen lanes read a block of LDS, row after row, each lane its own piece; each lane then holds
// one column of the block. Rows are 16 elements: for 16-bit elements four lanes hold a row and the block has 4 rows, for 8 bits
// two lanes and 8 rows, for 4 and 6 bits one lane and 16 rows (the manual's "MFMA transpose load from LDS", and the maps that
// public kernels use).
#include "isa_checks/exec/instructions/lds_access.h"
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/stop.h"
#include "isa_checks/exec/sanitisers/definedness.h"
#include <cstring>

namespace kiln::exec {
namespace {

constexpr int row_length = 16;
template <int words> using Registers = u32[words][lane_count];

template <int words, int width> void transpose(Registers<words>& r) {
  constexpr int elements = words * 32 / width, lanes_of_row = row_length / elements;
  Registers<words> result{};
  for (int lane = 0; lane < lane_count; ++lane)
    for (int row = 0; row < elements; ++row) {
      const int column = lane % row_length, from = (lane & ~(row_length - 1)) + row * lanes_of_row + column / elements;
      set_bits_of_lane(*result, lane, row * width, width, bits_of_lane(*r, from, column % elements * width, width));
    }
  std::memcpy(r, result, sizeof r);
}

// What was never written moves with the bits; a byte is unwritten when any of its bits is.
template <int words, int width> void transpose_shadow(RegisterShadow& shadow, std::uint16_t reg) {
  Registers<words> bits{};
  for (int w = 0; w < words; ++w)
    for (int b = 0; b < 4; ++b)
      for (int lane = 0; lane < lane_count; ++lane)
        if (active(shadow.vector[static_cast<std::size_t>(reg + w)][static_cast<std::size_t>(b)], lane)) bits[w][lane] |= 0xffU << (8 * b);
  transpose<words, width>(bits);
  for (int w = 0; w < words; ++w)
    for (int b = 0; b < 4; ++b) {
      std::uint64_t mask = 0;
      for (int lane = 0; lane < lane_count; ++lane)
        if ((bits[w][lane] >> (8 * b) & 0xffU) != 0) mask |= 1ULL << lane;
      shadow.vector[static_cast<std::size_t>(reg + w)][static_cast<std::size_t>(b)] = mask;
    }
}

template <int words, int width> void read(Wave& wave, const Inst& inst) {
  if (wave.exec() != all_lanes) throw Stop("a transposing read with lanes switched off: what those then read is not public");
  const LaneAccess& op = *inst.op->memory;
  read_lds_lanes(wave, inst, op, lds_addresses(wave, inst, static_cast<u32>(inst.fields.offset)), inst.dst.reg);
  if (wave.only_accesses) return issue_lds(wave, inst);
  Registers<words> values;
  std::memcpy(values, wave.lanes(inst.dst.reg), sizeof values);
  transpose<words, width>(values);
  std::memcpy(wave.lanes(inst.dst.reg), values, sizeof values);
  if (wave.shadow != nullptr) transpose_shadow<words, width>(*wave.shadow, inst.dst.reg);
  issue_lds(wave, inst);
}

template <int words> inline constexpr LaneAccess operation{.bytes = 4 * words};
template <int words, int width> constexpr Semantics line(std::string_view name) {
  return {name, &read<words, width>, {}, &operation<words>};
}

constexpr Semantics table[] = {
    line<2, 16>("ds_read_b64_tr_b16"),
    line<2, 8>("ds_read_b64_tr_b8"),
    line<2, 4>("ds_read_b64_tr_b4"),
    line<3, 6>("ds_read_b96_tr_b6"),
};

} // namespace

SemanticsTable lds_transpose_table() { return table; }

} // namespace kiln::exec
