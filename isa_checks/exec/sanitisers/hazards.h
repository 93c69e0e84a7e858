// Hazards: wait states that software has to leave between two instructions, counted along the path that a wave takes.
//
// The hardware does not interlock these pairs. An instruction is one wait state, s_nop N is N + 1. The rules are those of the
// CDNA3 manual (section "Manually Inserted Wait States") as LLVM's GCNHazardRecognizer applies them to gfx942 and gfx950;
// the numbers were compared with what that pass inserts.
#pragma once
#include "isa_checks/exec/machine/wave.h"
#include "isa_checks/target/target_table.h"
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::exec {

// What of an instruction can be the first or the second half of a hazard. A bit each.
enum HazardBit : std::uint16_t {
  hazard_trans = 1,   // transcendental result
  hazard_partial = 2, // a result that is placed into a part of a register
  hazard_scalar = 4,  // VALU writes a scalar register, VCC or EXEC
  hazard_vector = 8,  // VALU (not matrix) writes a vector register
  hazard_store = 16,  // a store of more than 64 bits a lane still reads its data
  hazard_dot = 32,
  hazard_matrix = 64,
  hazard_setreg = 128,
  hazard_m0 = 256 // SALU writes M0
};

struct HazardTraits {
  std::uint16_t produces = 0, consumes = 0; // HazardBits
  std::uint8_t states = 1;                  // wait states that the instruction itself is
  std::uint8_t passes = 0;                  // of matrix instructions, 4 cycles each
};

// By index of the program.
std::vector<HazardTraits> hazard_traits(std::span<const Inst> program, const isa::TargetFacts& target);

// How many wait states must lie between two instructions, and why; 0: any number will do.
struct HazardNeed {
  int states = 0;
  std::string_view why = {}; // what the second one does
};
HazardNeed hazard_need(const Inst& first, const HazardTraits& first_traits, const Inst& second, const HazardTraits& second_traits,
                       const isa::TargetFacts& target);

// The latest instructions of a wave that something must be waited for after.
class HazardWindow {
public:
  void reset() { *this = {}; }
  // Before the instruction is executed: reports what it comes too early after.
  void step(Wave& wave, const Inst& inst, const HazardTraits& traits, const isa::TargetFacts& target) {
    if ((traits.consumes & recent_) != 0) check(wave, inst, traits, target);
    if (traits.produces != 0) {
      ring_[newest_ = (newest_ + 1) % ring_.size()] = {&inst, &traits, clock_};
      recent_ |= traits.produces;
    }
    clock_ += traits.states;
  }

private:
  struct Issued {
    const Inst* inst = nullptr;
    const HazardTraits* traits = nullptr;
    std::uint64_t clock = 0;
  };
  void check(Wave& wave, const Inst& inst, const HazardTraits& traits, const isa::TargetFacts& target);

  std::array<Issued, 32> ring_{}; // more than can be issued in the longest wait
  std::size_t newest_ = 0;
  std::uint64_t clock_ = 0;
  std::uint16_t recent_ = 0; // what the ring's entries produce, some of it perhaps long ago
};

} // namespace kiln::exec
