// Instructions that move values between lanes, or between lanes and scalar registers.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/lanes.h"
#include <cstring>

namespace kiln::exec {
namespace {

void write_scalar_result(Wave& wave, const Inst& inst, u32 value) { wave.s[inst.dst.reg % code::scalar_registers] = value; }

void readfirstlane(Wave& wave, const Inst& inst) {
  Buffer buffer;
  const u32* const lanes = fetch(wave, inst, 0, buffer);
  const std::uint64_t exec = wave.exec();
  write_scalar_result(wave, inst, lanes[exec == 0 ? 0 : std::countr_zero(exec)]);
}

void readlane(Wave& wave, const Inst& inst) {
  Buffer buffer;
  const u32* const lanes = fetch(wave, inst, 0, buffer);
  write_scalar_result(wave, inst, lanes[read_scalar(wave, inst.src[1]) % lane_count]);
}

// Writes one lane whatever EXEC says.
void writelane(Wave& wave, const Inst& inst) {
  wave.lanes(inst.dst.reg)[read_scalar(wave, inst.src[1]) % lane_count] = static_cast<u32>(read_scalar(wave, inst.src[0]));
}

// v_mbcnt: how many of the mask's lanes below this one are set, plus src1.
template <bool high> void count_below(Wave& wave, const Inst& inst) {
  Buffer a, b, result;
  const u32* const mask = fetch(wave, inst, 0, a);
  const u32* const base = fetch(wave, inst, 1, b);
  for (int i = 0; i < lane_count; ++i) {
    const std::uint64_t below = (1ULL << i) - 1;
    const u32 part = static_cast<u32>(high ? below >> 32 : below);
    result.word[0][i] = base[i] + static_cast<u32>(std::popcount(mask[i] & part));
  }
  commit(wave, inst, result);
}

// gfx950: exchanges the odd rows of the destination with the even rows of the source, rows of `width` lanes.
template <int width> void permlane_swap(Wave& wave, const Inst& inst) {
  u32* const d = wave.lanes(inst.dst.reg);
  u32* const s = wave.lanes(inst.src[0].reg);
  const std::uint64_t exec = wave.exec();
  for (int i = 0; i < lane_count; i += 2 * width)
    for (int k = i; k < i + width; ++k) {
      const u32 from_d = d[k + width], from_s = s[k];
      if (active(exec, k + width)) d[k + width] = from_s;
      if (active(exec, k)) s[k] = from_d;
    }
}

void swap_registers(Wave& wave, const Inst& inst) {
  u32* const d = wave.lanes(inst.dst.reg);
  u32* const s = wave.lanes(inst.src[0].reg);
  const std::uint64_t exec = wave.exec();
  for (int i = 0; i < lane_count; ++i)
    if (active(exec, i)) std::swap(d[i], s[i]);
}

constexpr Semantics table[] = {
    entry("v_readfirstlane_b32", readfirstlane, Type::u32, {Type::u32}),
    entry("v_readlane_b32", readlane, Type::u32, {Type::u32, Type::u32}),
    entry("v_writelane_b32", writelane, Type::u32, {Type::u32, Type::u32}, false),
    entry("v_mbcnt_lo_u32_b32", count_below<false>, Type::u32, {Type::u32, Type::u32}, false),
    entry("v_mbcnt_hi_u32_b32", count_below<true>, Type::u32, {Type::u32, Type::u32}, false),
    entry("v_permlane16_swap_b32", permlane_swap<16>, Type::u32, {Type::u32}, false),
    entry("v_permlane32_swap_b32", permlane_swap<32>, Type::u32, {Type::u32}, false),
    entry("v_swap_b32", swap_registers, Type::u32, {Type::u32}, false),
    lanes<[](u32 a) { return a; }>("v_accvgpr_read_b32"),
    lanes<[](u32 a) { return a; }>("v_accvgpr_write_b32"),
    lanes<[](u32 a) { return a; }>("v_accvgpr_mov_b32"),
};

} // namespace

SemanticsTable cross_lane_table() { return table; }

} // namespace kiln::exec
