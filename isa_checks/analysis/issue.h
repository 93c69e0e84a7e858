// IssueEstimate: how long each pipe of a compute unit is busy with one repetition of a loop, and the roofline that
// follows: what bounds the loop, and how far apart the bounds are.
#pragma once
#include "isa_checks/analysis/memory_accesses.h"
#include "isa_checks/decode/program.h"
#include "isa_checks/target/matrix_shape.h"
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa {

enum class Pipe : std::uint8_t { salu, valu, trans, matrix, lds, vector_memory };
inline constexpr std::size_t pipe_count = 6;
std::string_view to_string(Pipe pipe); // "vector_memory"

// Clocks for one wave on each of the four SIMDs, one repetition: SIMDs have a scalar and vector pipe each, and share LDS and
// the vector memory path. Inner loops count as often as the weights say (ten times a level, when nothing else is known).
struct LoopIssue {
  std::size_t loop = nothing; // nothing: the whole kernel
  std::array<double, pipe_count> clocks{};
  double nop_clocks = 0;    // wait states of s_nop
  double operations = 0;    // additions and multiplications of the four waves, matrix instructions included
  double memory_bytes = 0;  // moved from and to device memory by the four waves
  double memory_clocks = 0; // what these bytes take at this CU's share of the chip's bandwidth
  Pipe busiest = Pipe::salu;
  double clocks_of(Pipe pipe) const { return clocks[static_cast<std::size_t>(pipe)]; }
  bool memory_bound() const { return memory_clocks > clocks_of(busiest); }
  double intensity() const { return memory_bytes == 0 ? 0 : operations / memory_bytes; } // operations a byte
};

struct IssueEstimate {
  std::vector<LoopIssue> loops; // one for each loop of the program, then the whole kernel
};

// A block's weight: how often it runs when each loop repeats ten times. At most 10^6.
std::vector<double> block_weights(const Program& program);

// Clocks of one instruction on its pipe; LLVM's scheduling model where it is right, corrected where it is known to be wrong:
// transcendental instructions and 32-bit multiplications run at a quarter of the rate, LDS and memory by bytes.
struct InstructionCost {
  Pipe pipe = Pipe::salu;
  double clocks = 0;     // of the pipe, for one wave
  double operations = 0; // of one wave
};
InstructionCost instruction_cost(const Instruction& instruction, const MemoryAccess* access, const TargetFacts& target);

IssueEstimate estimate_issue(const Program& program, const MemoryAnalysis& memory, const std::vector<double>& weights,
                             const TargetFacts& target);

std::string to_text(const IssueEstimate& issue, const Program& program);
std::string to_json(const IssueEstimate& issue, const Program& program);

} // namespace kiln::isa
