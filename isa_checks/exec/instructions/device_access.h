// Loads, stores and atomics of vector memory, done for the lanes of a wave.
#pragma once
#include "isa_checks/exec/machine/memory_ops.h"
#include <cstring>

namespace kiln::exec {

// What a load into one half of a register leaves in it. With ECC, which MI300 and MI350 parts have, the other half is not kept (LLVM's
// feature sramecc says so): it becomes noise, which is neither what was there nor zero.
inline std::uint32_t in_half(std::uint32_t reg, std::uint32_t value, const LaneAccess& op) {
  const std::uint32_t noise = reg ^ 0x5a5a5a5aU;
  if (op.half == 1) return (noise & 0xffff0000U) | (value & 0xffffU);
  if (op.half == 2) return (noise & 0xffffU) | value << 16;
  return value;
}

inline std::uint32_t extended(std::uint32_t value, const LaneAccess& op) {
  if (op.sign && op.bytes == 1) return static_cast<std::uint32_t>(static_cast<std::int8_t>(value));
  return op.sign && op.bytes == 2 ? static_cast<std::uint32_t>(static_cast<std::int16_t>(value)) : value;
}

// One lane's part of an access. Without memory there, a load gives 0 and a store does nothing.
inline void load_one(const std::byte* from, std::uint32_t* to, int lane, const LaneAccess& op) {
  std::uint32_t value[4] = {};
  if (from != nullptr) std::memcpy(value, from, op.bytes);
  to[lane] = in_half(to[lane], extended(value[0], op), op);
  for (int w = 1; w < op.bytes / 4; ++w) to[w * lane_count + lane] = value[w];
}
inline void store_one(std::byte* to, const std::uint32_t* from, int lane, const LaneAccess& op) {
  std::uint32_t value[4] = {op.half == 2 ? from[lane] >> 16 : from[lane]};
  for (int w = 1; w < op.bytes / 4; ++w) value[w] = from[w * lane_count + lane];
  if (to != nullptr) std::memcpy(to, value, op.bytes);
}
// A number of 4 or 8 bytes in a lane's registers.
inline std::uint64_t lane_word(const std::uint32_t* row, int lane, int bytes) {
  return bytes == 8 ? row[lane] | static_cast<std::uint64_t>(row[lane_count + lane]) << 32 : row[lane];
}
inline void set_lane_word(std::uint32_t* row, int lane, int bytes, std::uint64_t value) {
  row[lane] = static_cast<std::uint32_t>(value);
  if (bytes == 8) row[lane_count + lane] = static_cast<std::uint32_t>(value >> 32);
}

// A load, store or atomic of device memory through the sandbox, with its lines and bytes counted. Reports what lies outside, or is not
// writable, and goes on: loads give 0 there.
void device_access(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at);
// Whether it fills its destination.
inline bool fills_registers(const Inst& inst, const LaneAccess& op) {
  return op.atomic == Atomic::none ? !op.store && !op.to_lds : inst.fields.sc0;
}

// The old value becomes the result; `data` and `compare` hold op.bytes bytes.
std::uint64_t apply_atomic(Atomic atomic, std::uint8_t bytes, std::uint64_t old, std::uint64_t data, std::uint64_t compare);

// What is in flight after a vector memory instruction, and whether it may be a wave's waiting for others.
void note_in_flight(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at);

// buffer_ instructions.
void buffer_access(Wave& wave, const Inst& inst);

} // namespace kiln::exec
