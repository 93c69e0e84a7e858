// Definedness: which register bytes have been written, followed through computation, and reported where an unwritten value
// decides something: an address, a branch, EXEC, or what a store puts into memory.
#pragma once
#include "isa_checks/exec/machine/wave.h"
#include <array>
#include <cstdint>
#include <vector>

namespace kiln::exec {

// A set bit means: never written. Vector registers by byte and lane, scalar registers and behind them SCC by bit.
struct RegisterShadow {
  static constexpr int vector_registers = max_vgprs + 32;
  static constexpr std::size_t scc = code::scalar_registers;
  std::vector<std::array<std::uint64_t, 4>> vector{vector_registers};
  std::array<std::uint32_t, scc + 1> scalar{};

  // As at the start of a wave: v0 and the first `scalars` scalar registers hold something, EXEC too.
  void reset(int scalars);
  std::uint64_t undefined_lanes(isa::RegisterRange range) const; // of vector registers
  bool scalar_undefined(isa::RegisterRange range) const;
};

// Runs the instruction's handler, following definedness. A result byte counts as written when no choice of the unwritten
// source bytes changes it, which is found by running the instruction with several fillings of them.
void run_tracked(Wave& wave, const Inst& inst);

} // namespace kiln::exec
