// Hazards: wait states that software has to leave between two instructions, because the hardware does not interlock them.
//
// A wait state is the time in which a wave issues one instruction, 4 clocks; s_nop N is N + 1 of them. The table in hazards.cpp
// is the only one: the lint rule HAZ002, the analysis of matrix instructions and the executor read it.
#pragma once
#include "isa_checks/target/matrix_shape.h"
#include "isa_checks/target/registers.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kiln::isa {

// What an instruction leaves behind (the first of a pair) or meets (the second). A bit each: one AND tells most pairs apart.
enum HazardBit : std::uint16_t {
  hazard_trans = 1,   // transcendental result
  hazard_partial = 2, // a result that is placed into a part of a register
  hazard_scalar = 4,  // VALU writes a scalar register, VCC or EXEC
  hazard_vector = 8,  // VALU (no matrix instruction) writes a vector register
  hazard_store = 16,  // a store of more than 64 bits per lane still reads its data
  hazard_dot = 32,
  hazard_matrix = 64,
  hazard_setreg = 128,
  hazard_m0 = 256 // SALU writes M0
};

enum class HazardUnit : std::uint8_t { other, valu, matrix, vmem, lds };

// What the second instruction does with registers besides reading and writing them.
enum class LaneUse : std::uint8_t {
  none,
  dpp,        // permutes lanes of `permuted`
  swap,       // v_permlane*_swap
  read_first, // v_readfirstlane of `permuted`
  read,       // v_readlane of `permuted`, lane `lane_select`
  write       // v_writelane, lane `lane_select`
};

// One instruction, as hazards see it. decode/hazard_traits.h makes it.
struct HazardTraits {
  std::uint16_t produces = 0, consumes = 0; // HazardBits
  std::uint8_t states = 1;                  // wait states that the instruction itself is
  HazardUnit unit = HazardUnit::other;
  LaneUse lanes = LaneUse::none;
  bool div_fmas = false, fma_f64 = false;
  std::uint8_t hardware_register = 0; // of s_setreg and s_getreg
  std::uint8_t passes = 0;            // of matrix instructions
  bool xdl = false, f64 = false;      // of matrix instructions
  std::uint32_t opcode = 0;           // dot products with the same opcode forward their accumulator
  RegisterUse use;
  RegisterRange accumulator;           // C of a matrix instruction or dot product; empty when it is a constant
  RegisterRange permuted, lane_select; // of LaneUse
  RegisterRange store_data;            // of stores that produce hazard_store
  bool scalar_offset = false;          // of such a store: a buffer's, with a scalar register as offset
};

// How sure it is that too few states give wrong results, surest first.
enum class HazardEvidence : std::uint8_t {
  agreed,  // LLVM's table and AMD's manual have it, and compilers' code keeps it
  table,   // LLVM's table alone, or shipped hand-written kernels leave a part of it out
  disputed // LLVM's table has it, but shipped hand-written kernels leave it out all the time
};

struct Hazard {
  int states = 0;        // that must lie between the two; 0: any number will do
  std::string_view what; // the second instruction does: "reads what a matrix instruction writes"
  HazardEvidence evidence = HazardEvidence::agreed;
};

inline constexpr int max_hazard_states = 20;        // no entry needs more,
inline constexpr int max_states_without_matrix = 5; // and none that is not about matrix instructions more than this

// The entry that needs most states between the two, among those with at least this evidence.
Hazard hazard_between(const HazardTraits& first, const HazardTraits& second, const TargetFacts& target,
                      HazardEvidence least = HazardEvidence::disputed);

// Whether all that `second` has in common with the result of the matrix instruction `first` was overwritten by matrix
// instructions `since`: compilers let results overlap when a part of one is not used.
bool result_overwritten(const HazardTraits& first, const HazardTraits& second, std::span<const HazardTraits* const> since);

// Wait states before a vector ALU instruction that reads the result of a matrix instruction.
int matrix_result_states(const MatrixShape& shape, const TargetFacts& target);

// The states before a matrix instruction whose C is exactly the result of another one, if only instructions of one opcode forward it:
// those of a C that overlaps in part. Whether the hardware asks for them is not settled in public (docs/rules/CMP001.md).
Hazard unforwarded_accumulation(const HazardTraits& first, const HazardTraits& second, const TargetFacts& target);

// Wait states behind a store of more than 8 bytes per lane before a vector ALU instruction may overwrite its data; `scalar_offset`: of a
// buffer store with a scalar register as offset.
int wide_store_states(const TargetFacts& target, bool scalar_offset);

// The time of issue along a path, in wait states. A matrix instruction issues once the matrix unit has done the passes of the one
// before: LLVM's GCNHazardRecognizer::ShouldPreferAnother counts on that, its scheduling model (SISchedule.td, resource HWXDL) and
// AMD's matrix instruction calculator ("execution cycles") say the same.
class IssueClock {
public:
  // The time at which the instruction issues.
  std::uint64_t issue(const HazardTraits& traits) {
    if (traits.passes != 0) {
      now_ = std::max(now_, matrix_free_);
      matrix_free_ = now_ + traits.passes;
    }
    const std::uint64_t at = now_;
    now_ += traits.states;
    return at;
  }

private:
  std::uint64_t now_ = 0, matrix_free_ = 0;
};

} // namespace kiln::isa
