// Building the control-flow graph.
#include "isa_checks/decode/program.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa {
namespace {

// Loop bodies add up to the square of the blocks in hostile code; real kernels stay far below this.
constexpr std::size_t max_loop_entries = 4'000'000;

class Builder {
public:
  explicit Builder(Program& program) : p_(program) {}

  void run(std::uint64_t entry_offset) {
    if (p_.instructions.empty()) return;
    find_targets();
    cut_blocks(entry_offset);
    connect();
    order_blocks();
    find_dominators();
    find_loops();
    nest_loops();
  }

private:
  void find_targets() {
    targets_.assign(p_.instructions.size(), nothing);
    for (std::size_t i = 0; i < p_.instructions.size(); ++i) {
      const Instruction& instruction = p_.instructions[i];
      p_.indirect_branches += instruction.flow == Flow::indirect;
      p_.calls += instruction.flow == Flow::call;
      if (instruction.flow != Flow::jump && instruction.flow != Flow::branch) continue;
      targets_[i] = instruction.branch_target ? p_.instruction_at(*instruction.branch_target) : nothing;
      p_.wild_branches += targets_[i] == nothing;
    }
  }

  void cut_blocks(std::uint64_t entry_offset) {
    std::vector<bool> leader(p_.instructions.size(), false);
    leader[0] = true;
    const std::size_t entry = p_.instruction_at(p_.instructions[0].address + entry_offset);
    if (entry != nothing) leader[entry] = true;
    for (std::size_t i = 0; i < p_.instructions.size(); ++i) {
      if (targets_[i] != nothing) leader[targets_[i]] = true;
      const Flow flow = p_.instructions[i].flow;
      if (flow != Flow::next && flow != Flow::call && i + 1 < leader.size()) leader[i + 1] = true;
    }
    for (std::size_t i = 0; i < leader.size(); ++i) {
      if (leader[i]) p_.blocks.push_back({.begin = i, .end = i, .successors = {}, .predecessors = {}});
      p_.blocks.back().end = i + 1;
    }
    p_.entry = entry == nothing ? 0 : p_.block_of(entry);
  }

  void connect() {
    for (std::size_t b = 0; b < p_.blocks.size(); ++b) {
      const std::size_t last = p_.blocks[b].end - 1;
      const Flow flow = p_.instructions[last].flow;
      if (targets_[last] != nothing) add_edge(b, p_.block_of(targets_[last]));
      const bool falls_through = flow == Flow::next || flow == Flow::call || flow == Flow::branch;
      if (falls_through && b + 1 < p_.blocks.size()) add_edge(b, b + 1);
    }
  }

  void add_edge(std::size_t from, std::size_t to) {
    auto& successors = p_.blocks[from].successors;
    if (std::find(successors.begin(), successors.end(), to) != successors.end()) return; // a branch to the next instruction
    successors.push_back(to);
    p_.blocks[to].predecessors.push_back(from);
  }

  // Depth first without recursion, since a kernel may have very many blocks.
  void order_blocks() {
    std::vector<std::pair<std::size_t, std::size_t>> stack{{p_.entry, 0}};
    p_.blocks[p_.entry].reachable = true;
    while (!stack.empty()) {
      auto& [block, next] = stack.back();
      if (next == p_.blocks[block].successors.size()) {
        p_.order.push_back(block);
        stack.pop_back();
        continue;
      }
      const std::size_t successor = p_.blocks[block].successors[next++];
      if (!p_.blocks[successor].reachable) {
        p_.blocks[successor].reachable = true;
        stack.push_back({successor, 0});
      }
    }
    std::reverse(p_.order.begin(), p_.order.end());
    position_.assign(p_.blocks.size(), nothing);
    for (std::size_t i = 0; i < p_.order.size(); ++i) position_[p_.order[i]] = i;
  }

  // Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
  void find_dominators() {
    p_.blocks[p_.entry].dominator = p_.entry;
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::size_t b : p_.order) {
        if (b == p_.entry) continue;
        std::size_t best = nothing;
        for (const std::size_t before : p_.blocks[b].predecessors)
          if (p_.blocks[before].dominator != nothing) best = best == nothing ? before : meet(best, before);
        if (best != p_.blocks[b].dominator) {
          p_.blocks[b].dominator = best;
          changed = true;
        }
      }
    }
    p_.blocks[p_.entry].dominator = nothing;
  }

  std::size_t meet(std::size_t a, std::size_t b) const {
    while (a != b) {
      while (position_[a] > position_[b]) a = p_.blocks[a].dominator;
      while (position_[b] > position_[a]) b = p_.blocks[b].dominator;
    }
    return a;
  }

  void find_loops() {
    std::vector<std::vector<std::size_t>> latches(p_.blocks.size());
    for (const std::size_t from : p_.order)
      for (const std::size_t to : p_.blocks[from].successors)
        if (position_[to] <= position_[from]) {
          if (p_.dominates(to, from)) latches[to].push_back(from);
          else p_.irreducible_edges.push_back({from, to});
        }
    std::size_t entries = 0;
    for (std::size_t header = 0; header < latches.size(); ++header) {
      if (latches[header].empty()) continue;
      std::vector<std::size_t> blocks = body(header, latches[header]);
      entries += blocks.size();
      if (entries > max_loop_entries) {
        for (const std::size_t latch : latches[header]) p_.irreducible_edges.push_back({latch, header});
        continue;
      }
      std::sort(latches[header].begin(), latches[header].end());
      p_.loops.push_back({.header = header, .blocks = std::move(blocks), .latches = std::move(latches[header]), .exits = {}});
    }
  }

  std::vector<std::size_t> body(std::size_t header, const std::vector<std::size_t>& latches) {
    seen_.resize(p_.blocks.size(), nothing);
    std::vector<std::size_t> blocks{header}, work;
    seen_[header] = header;
    const auto visit = [&](std::size_t block) {
      if (seen_[block] == header || !p_.blocks[block].reachable) return;
      seen_[block] = header;
      blocks.push_back(block);
      work.push_back(block);
    };
    for (const std::size_t latch : latches) visit(latch);
    while (!work.empty()) {
      const std::size_t block = work.back();
      work.pop_back();
      for (const std::size_t before : p_.blocks[block].predecessors) visit(before);
    }
    std::sort(blocks.begin(), blocks.end());
    return blocks;
  }

  // From the largest loop to the smallest, each block remembers the last one that claimed it: the innermost so far.
  void nest_loops() {
    std::vector<std::size_t> by_size(p_.loops.size());
    for (std::size_t i = 0; i < by_size.size(); ++i) by_size[i] = i;
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](std::size_t a, std::size_t b) { return p_.loops[a].blocks.size() > p_.loops[b].blocks.size(); });
    for (const std::size_t l : by_size) {
      Loop& loop = p_.loops[l];
      loop.parent = p_.blocks[loop.header].loop;
      loop.depth = loop.parent == nothing ? 1 : p_.loops[loop.parent].depth + 1;
      for (const std::size_t block : loop.blocks) p_.blocks[block].loop = l;
      for (const std::size_t block : loop.blocks)
        for (const std::size_t to : p_.blocks[block].successors)
          if (!std::binary_search(loop.blocks.begin(), loop.blocks.end(), to)) {
            loop.exits.push_back(block);
            break;
          }
    }
  }

  Program& p_;
  std::vector<std::size_t> targets_;  // by instruction: the branch's target instruction
  std::vector<std::size_t> position_; // by block: its place in `order`
  std::vector<std::size_t> seen_;     // by block: the last loop header that reached it
};

} // namespace

bool Program::dominates(std::size_t a, std::size_t b) const {
  while (b != nothing && b != a) b = blocks[b].dominator;
  return b == a;
}

std::vector<std::size_t> Program::instructions_of(const std::vector<std::size_t>& some_blocks) const {
  std::vector<std::size_t> result;
  for (const std::size_t b : some_blocks)
    for (std::size_t i = blocks[b].begin; i < blocks[b].end; ++i) result.push_back(i);
  return result;
}

std::size_t Program::block_of(std::size_t instruction) const {
  const auto after = std::ranges::upper_bound(blocks, instruction, {}, &Block::begin);
  return static_cast<std::size_t>(after - blocks.begin()) - 1;
}

std::size_t Program::instruction_at(std::uint64_t address) const {
  const auto at = std::ranges::lower_bound(instructions, address, {}, &Instruction::address);
  return at != instructions.end() && at->address == address ? static_cast<std::size_t>(at - instructions.begin()) : nothing;
}

std::string Program::loop_name(std::size_t loop) const {
  const Loop& l = loops[loop];
  std::string ranges;
  for (std::size_t n = 0; n < l.blocks.size();) { // blocks that lie one behind the other
    std::size_t last = n;
    while (last + 1 < l.blocks.size() && l.blocks[last + 1] == l.blocks[last] + 1) ++last;
    ranges += fmt::format("{}{:#x} to {:#x}", ranges.empty() ? "" : ", ", instructions[blocks[l.blocks[n]].begin].address,
                          instructions[blocks[l.blocks[last]].end - 1].address);
    n = last + 1;
  }
  return fmt::format("loop {} ({})", loop, ranges);
}

Program build_program(std::vector<Instruction> instructions, std::string kernel, std::uint64_t entry_offset) {
  Program program;
  program.kernel = std::move(kernel);
  program.instructions = std::move(instructions);
  Builder(program).run(entry_offset);
  return program;
}

std::uint64_t execution_offset(const Kernel& kernel) {
  return !kernel.function && kernel.descriptor.preload_dwords > 0 && kernel.code.size() > 256 ? 256 : 0;
}

Program build_program(const Kernel& kernel, Disassembler& disassembler) {
  std::vector<Instruction> instructions = disassembler.decode(kernel);
  if (kernel.function)
    for (Instruction& instruction : instructions) // back to the caller, or on to a function that goes back to it
      if (instruction.mnemonic == "s_setpc_b64") instruction.flow = Flow::end;
  Program program = build_program(std::move(instructions), kernel.name, execution_offset(kernel));
  program.function = kernel.function;
  return program;
}

} // namespace kiln::isa
