// Printing a program as assembly.
#include "isa_checks/decode/listing.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa {
namespace {

constexpr int indent = 2, comment_column = 64;

std::string label(std::size_t block) { return fmt::format("block_{}", block); }

int depth_of(const Program& program, std::size_t block) {
  const std::size_t loop = program.blocks[block].loop;
  return loop == nothing ? 0 : program.loops[loop].depth;
}

// The block at a branch's target, which always begins there.
std::size_t target_block(const Program& program, const Instruction& instruction) {
  if (instruction.flow != Flow::jump && instruction.flow != Flow::branch) return nothing;
  const auto at =
      std::lower_bound(program.blocks.begin(), program.blocks.end(), *instruction.branch_target,
                       [&](const Block& block, std::uint64_t address) { return program.instructions[block.begin].address < address; });
  const bool found = at != program.blocks.end() && program.instructions[at->begin].address == *instruction.branch_target;
  return found ? static_cast<std::size_t>(at - program.blocks.begin()) : nothing;
}

std::string heading(const Program& program, std::size_t block) {
  std::string line = label(block) + ":";
  std::string comment;
  if (!program.blocks[block].reachable) comment = "unreachable";
  for (std::size_t l = 0; l < program.loops.size(); ++l)
    if (program.loops[l].header == block) comment = fmt::format("{}, depth {}", program.loop_name(l), program.loops[l].depth);
  return comment.empty() ? line : fmt::format("{:<{}}; {}", line, comment_column, comment);
}

} // namespace

std::string listing(const Program& program) {
  std::string text;
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    text += heading(program, b) + "\n";
    const int depth = depth_of(program, b) + 1;
    for (std::size_t i = program.blocks[b].begin; i < program.blocks[b].end; ++i) {
      const Instruction& instruction = program.instructions[i];
      const std::size_t target = target_block(program, instruction);
      const std::string body = target == nothing ? instruction.text : fmt::format("{} {}", instruction.mnemonic, label(target));
      text += fmt::format("{:<{}}; {:#x}\n", std::string(static_cast<std::size_t>(depth * indent), ' ') + body, comment_column,
                          instruction.address);
    }
  }
  return text;
}

} // namespace kiln::isa
