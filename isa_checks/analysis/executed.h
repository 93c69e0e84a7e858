// Executed: how many instructions one wave executes when every loop runs a known number of trips.
#pragma once
#include "isa_checks/decode/instruction_class.h"
#include "isa_checks/decode/program.h"
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace kiln::isa {

// The estimate follows one path all the time where a wave may go two ways.
enum class PathChoice { longest, shortest };

struct Executed {
  std::uint64_t instructions = 0;
  std::array<std::uint64_t, instruction_class_count> classes{}; // by InstructionClass
  std::map<MemoryOp, std::uint64_t> memory;
  std::vector<std::uint64_t> block_counts; // by block: how often the wave runs it
  // Irreducible flow, indirect branches, calls or wild branches: what they lead to is not counted.
  bool approximate = false;
  std::uint64_t count(InstructionClass c) const { return classes[static_cast<std::size_t>(c)]; }
};

// trips[l] is how often a wave runs the header of program.loops[l] each time that it comes to the loop (for a do-while
// loop, as compilers make them: the iterations). A loop of 0 trips counts for nothing. Throws Error unless there is one
// count for each loop. Counts stop at 2^64 - 1.
Executed executed_estimate(const Program& program, std::span<const std::uint64_t> trips,
                           PathChoice choice = PathChoice::longest);

} // namespace kiln::isa
