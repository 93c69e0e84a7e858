// Program: one kernel's instructions as a control-flow graph: basic blocks, dominators, natural loops.
#pragma once
#include "isa_checks/decode/disassembler.h"
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kiln::isa {

inline constexpr std::size_t nothing = static_cast<std::size_t>(-1); // no block, no loop

struct Block {
  std::size_t begin = 0, end = 0;                    // instructions [begin, end)
  std::vector<std::size_t> successors, predecessors; // blocks
  std::size_t dominator = nothing;                   // the immediate one; of the entry and of unreachable blocks: nothing
  std::size_t loop = nothing;                        // the innermost one
  bool reachable = false;                            // from the entry
};

// A natural loop: a header that dominates every block of the loop, and is where every repetition begins.
struct Loop {
  std::size_t header = 0;
  std::vector<std::size_t> blocks;  // ascending, those of inner loops included
  std::vector<std::size_t> latches; // blocks that branch back to the header
  std::vector<std::size_t> exits;   // blocks with a successor outside
  std::size_t parent = nothing;     // the loop around this one
  int depth = 1;                    // 1: outermost
};

struct Program {
  std::string kernel;
  std::vector<Instruction> instructions; // by address
  std::vector<Block> blocks;             // by address
  std::vector<Loop> loops;               // by the address of the header
  std::size_t entry = 0;                 // block
  std::vector<std::size_t> order;        // the reachable blocks in reverse post-order
  // Edges that close a cycle without a dominating header: irreducible control flow, which has no loop here.
  std::vector<std::pair<std::size_t, std::size_t>> irreducible_edges;
  std::uint32_t wild_branches = 0; // branches to an address that is no instruction of this kernel
  std::uint32_t indirect_branches = 0, calls = 0;
  bool function = false; // begins with whatever its callers left in registers and LDS, and ends by going back to them

  bool dominates(std::size_t a, std::size_t b) const; // block a lies on every path from the entry to b
  std::size_t block_of(std::size_t instruction) const;
  std::size_t instruction_at(std::uint64_t address) const; // that begins there, or nothing
  std::vector<std::size_t> instructions_of(const std::vector<std::size_t>& some_blocks) const;
  // Whether `is` holds of the loop or one that it lies in; `loop` may be nothing.
  template <class Is> bool any_around(std::size_t loop, Is is) const {
    while (loop != nothing && !is(loop)) loop = loops[loop].parent;
    return loop != nothing;
  }
  std::string loop_name(std::size_t loop) const; // "loop 0 (0x140 to 0x1b8)", with every range of addresses that it has
};

// `entry_offset` is where execution begins, in bytes from the first instruction.
Program build_program(std::vector<Instruction> instructions, std::string kernel = {}, std::uint64_t entry_offset = 0);

// A kernel with preloaded arguments begins at byte 256: what lies before is for firmware that cannot preload, and is
// unreachable here (AMDGPUUsage, "Preloaded Kernel Arguments").
Program build_program(const Kernel& kernel, Disassembler& disassembler);
std::uint64_t execution_offset(const Kernel& kernel); // 0, or 256 when arguments are preloaded

} // namespace kiln::isa
