// LaneStep: what one instruction does to the lane values of registers. Internal to lane_addresses.
#pragma once
#include "isa_checks/analysis/lanes/lane_value.h"
#include "isa_checks/decode/operands.h"
#include <bitset>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace kiln::isa {

inline constexpr std::uint32_t unknown_value = 0, unknown_uniform = 1, all_ones = 2; // numbers of values

struct LaneOp;

// Every value that occurs, once.
class LaneValues {
public:
  LaneValues();
  std::uint32_t number(const LaneValue& value);
  std::uint32_t number(const Maybe& value) { return value ? number(*value) : unknown_value; }
  std::uint32_t constant(std::uint32_t bits);
  Maybe value(std::uint32_t number) const { return number == unknown_value ? std::nullopt : Maybe(values_[number]); }
  std::size_t size() const { return values_.size(); }
  // What an operation makes of values, worked out once: fixpoints, and the waves of a workgroup, repeat themselves.
  std::uint32_t apply(const LaneOp* op, std::uint32_t a, std::uint32_t b, std::uint32_t c);
  std::uint32_t join(std::uint32_t a, std::uint32_t b);

private:
  std::vector<LaneValue> values_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::unordered_map<std::uint32_t, std::uint32_t> constants_;
  std::unordered_map<std::uint64_t, std::uint32_t> applied_; // by operation and values
};

// The values of vector registers (architectural ones; of accumulation registers nothing is known) and scalar ones.
class LaneState {
public:
  LaneState();
  std::uint32_t get(std::uint16_t reg) const;
  void set(std::uint16_t reg, std::uint32_t number);
  // Vector registers that were written while lanes were, or may have been, switched off hold their value in the lanes
  // that are on only; when others may come on again they are unknown.
  void set_partly(std::uint16_t reg, std::uint32_t number);
  void lanes_come_on();
  bool join(const LaneState& other, LaneValues& values);               // true when this changed
  std::optional<std::uint64_t> active(const LaneValues& values) const; // EXEC, when known
  bool all_on() const { return get(reg::exec) == all_ones && get(reg::exec + 1) == all_ones; }

private:
  static std::size_t slot(std::uint16_t reg);
  static constexpr std::size_t vectors = max_arch_vgprs, scalars = reg::count - reg::sgpr;
  std::array<std::uint32_t, vectors + scalars> numbers_;
  std::bitset<vectors> partly_;
};

struct LaneStep {
  enum class Kind : std::uint8_t { unknown, nothing, calculates, chooses, compares, reads_first_lane, saves_exec } kind = Kind::unknown;
  const LaneOp* op = nullptr; // that calculates
  bool vector = false;
};
LaneStep lane_step_of(const Instruction& instruction);
void apply_lane_step(const LaneStep& step, const Instruction& instruction, const Operands& operands, LaneState& state, LaneValues& values);

} // namespace kiln::isa
