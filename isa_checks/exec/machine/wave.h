// The state of one wave and of its workgroup.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace kiln::exec {

class Memory;
class Defects;
class InFlight;
class LdsShadow;
struct RegisterShadow;
struct InstCounters;
class HazardWindow;
class Observer;
enum class FlagUse : std::uint8_t;

inline constexpr int lane_count = wave_size;
inline constexpr std::uint64_t all_lanes = ~0ULL;
// Flat addresses that stand for LDS and for private memory.
inline constexpr std::uint64_t shared_aperture = 0x0001'0000'0000'0000ULL, private_aperture = 0x0002'0000'0000'0000ULL;

struct alignas(64) Lanes {
  std::uint32_t lane[lane_count];
};

// Shared by the waves of one workgroup.
struct Workgroup {
  std::uint32_t id[3] = {};
  std::vector<std::byte> lds;
  LdsShadow* lds_shadow = nullptr; // null: not followed
};

enum class WaveState : std::uint8_t { running, at_barrier, ended };

struct Wave {
  // Vector registers: the architectural ones, then the accumulation registers.
  std::unique_ptr<Lanes[]> vector;
  std::uint16_t arch_count = 0, acc_count = 0;
  static constexpr int scalar_count = code::scalar_registers + 16; // and slack for a wide operand at the end
  std::uint32_t s[scalar_count] = {};                              // by operand number: s0.., VCC 106, M0 124, EXEC 126
  bool scc = false;
  std::uint32_t mode = 0;
  std::uint32_t pc = 0, next = 0; // instruction indices
  bool only_accesses = false;     // the results of the memory instruction being executed are not wanted
  WaveState state = WaveState::running;
  int index = 0; // in its workgroup
  std::uint64_t executed = 0;
  std::uint64_t scratch_base = 0; // device address of lane 0's private memory
  std::uint32_t scratch_size = 0; // bytes per lane

  Workgroup* group = nullptr;
  Memory* memory = nullptr;
  Defects* defects = nullptr;
  InFlight* in_flight = nullptr;      // null: waits are not checked
  RegisterShadow* shadow = nullptr;   // null: unwritten values are not followed
  HazardWindow* hazards = nullptr;    // null: wait states are not checked
  const FlagUse* flag_uses = nullptr; // by instruction index; null: nothing is known
  InstCounters* counters = nullptr;   // by instruction index; null: off
  Observer* observer = nullptr;       // null: nobody looks
  std::span<const Inst> program;
  std::uint64_t code_base = 0; // device address of the code object's address 0
  const isa::TargetFacts* target = nullptr;
  std::uint64_t clock = 0; // what s_memtime reads; advances with every instruction of the workgroup

  // What tells a wave that waits for others from one that works: reads of one place again and again, and what others can see.
  std::uint64_t polls = 0, effects = 0;
  // Instruction and address of the latest such reads. A loop that polls may have 64: those of a part of a product, or of several.
  std::array<std::pair<std::uint32_t, std::uint64_t>, 128> polled{};
  void note_read(std::uint64_t address) {
    auto& latest = polled[pc % polled.size()];
    if (latest == std::pair{pc, address}) ++polls;
    latest = {pc, address};
  }

  // exec expanded to a word a lane, kept for the mask it was made from
  std::uint64_t expanded_for = 0;
  Lanes expanded{};

  std::uint32_t* lanes(std::uint16_t reg) { return vector[reg < first_accumulator ? reg : reg - first_accumulator + arch_count].lane; }
  std::uint64_t pair(int reg) const { return s[reg] | static_cast<std::uint64_t>(s[reg + 1]) << 32; }
  void set_pair(int reg, std::uint64_t value) {
    s[reg] = static_cast<std::uint32_t>(value);
    s[reg + 1] = static_cast<std::uint32_t>(value >> 32);
  }
  std::uint64_t exec() const { return pair(code::exec); }
};

inline bool active(std::uint64_t mask, int lane) { return ((mask >> lane) & 1U) != 0; }
template <class F> void for_each_lane(std::uint64_t mask, F f) {
  if (mask == all_lanes)
    for (int i = 0; i < lane_count; ++i) f(i);
  else
    for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

// Bits [at, at + width) of the registers of a lane, the first of which is `registers`; set_bits_of_lane adds to zeros.
inline std::uint32_t bits_of_lane(const std::uint32_t* registers, int lane, int at, int width) {
  std::uint64_t both = registers[at / 32 * lane_count + lane];
  if (at % 32 + width > 32) both |= static_cast<std::uint64_t>(registers[(at / 32 + 1) * lane_count + lane]) << 32;
  return static_cast<std::uint32_t>(both >> (at % 32)) & static_cast<std::uint32_t>((1ULL << width) - 1);
}
inline void set_bits_of_lane(std::uint32_t* registers, int lane, int at, int width, std::uint32_t value) {
  const std::uint64_t both = static_cast<std::uint64_t>(value) << (at % 32);
  registers[at / 32 * lane_count + lane] |= static_cast<std::uint32_t>(both);
  if (at % 32 + width > 32) registers[(at / 32 + 1) * lane_count + lane] |= static_cast<std::uint32_t>(both >> 32);
}

// The value of a scalar operand (register, special or constant), 32 or 64 bits by its type.
std::uint64_t read_scalar(const Wave& wave, const InstOperand& operand);
std::uint32_t read_scalar_code(const Wave& wave, std::uint16_t number);

} // namespace kiln::exec
