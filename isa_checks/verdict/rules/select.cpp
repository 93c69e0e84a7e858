// Choosing instructions and loops.
#include "isa_checks/verdict/rules/select.h"
#include "isa_checks/analysis/readers.h"
#include <algorithm>
#include <iterator>

namespace kiln::isa::rules {

std::vector<std::size_t> innermost_loops(const KernelAnalysis& kernel) {
  std::vector<bool> outer(kernel.program.loops.size(), false);
  for (const Loop& loop : kernel.program.loops)
    if (loop.parent != nothing) outer[loop.parent] = true;
  std::vector<std::size_t> result;
  for (std::size_t l = 0; l < outer.size(); ++l)
    if (!outer[l]) result.push_back(l);
  return result;
}

Instructions all_instructions(const KernelAnalysis& kernel) {
  Instructions result;
  for (const Block& block : kernel.program.blocks)
    if (block.reachable)
      for (std::size_t i = block.begin; i < block.end; ++i) result.push_back(i);
  return result;
}

Instructions steady_instructions(const KernelAnalysis& kernel, std::size_t loop) {
  // The dominators of a latch, up to the header, are a chain; common to all latches is what they share.
  const Loop& l = kernel.program.loops[loop];
  std::vector<std::size_t> common;
  for (std::size_t n = 0; n < l.latches.size(); ++n) {
    std::vector<std::size_t> chain;
    for (std::size_t b = l.latches[n]; b != nothing; b = kernel.program.blocks[b].dominator) {
      chain.push_back(b);
      if (b == l.header) break;
    }
    std::sort(chain.begin(), chain.end());
    if (n == 0) {
      common = std::move(chain);
      continue;
    }
    std::vector<std::size_t> both;
    std::set_intersection(common.begin(), common.end(), chain.begin(), chain.end(), std::back_inserter(both));
    common = std::move(both);
  }
  return kernel.program.instructions_of(common);
}

Instructions named(const KernelAnalysis& kernel, const Instructions& list, std::string_view prefix) {
  return where(list, [&](std::size_t i) { return kernel.mnemonic(i).starts_with(prefix); });
}

Instructions exec_changes(const KernelAnalysis& kernel, const Instructions& list) {
  return where(list, [&](std::size_t i) { return kernel.mnemonic(i).find("_saveexec_") != std::string_view::npos; });
}

bool ends_on_exec(const KernelAnalysis& kernel, std::size_t loop) {
  const auto& latches = kernel.program.loops[loop].latches;
  return std::any_of(latches.begin(), latches.end(), [&](std::size_t latch) {
    return kernel.mnemonic(kernel.program.blocks[latch].end - 1).starts_with("s_cbranch_exec");
  });
}

bool is_waterfall(const KernelAnalysis& kernel, std::size_t loop) {
  if (!ends_on_exec(kernel, loop)) return false;
  const Instructions list = kernel.instructions_of(loop);
  return !named(kernel, list, "v_readfirstlane_b32").empty() && !named(kernel, list, "v_cmp_eq_").empty() &&
         !exec_changes(kernel, list).empty();
}

bool is_polling(const KernelAnalysis& kernel, std::size_t loop) {
  const Instructions list = kernel.instructions_of(loop);
  if (!named(kernel, list, "s_sleep").empty()) return true;
  bool loads = false;
  for (const std::size_t i : list) {
    const MemoryAccess* a = kernel.memory.find(i);
    if (!a || a->op.space == MemorySpace::lds) continue;
    if (a->op.direction != MemoryDirection::load || a->op.to_lds) return false;
    loads = loads || is_device(a->op);
    for (const RegisterRange r : kernel.instruction(i).use.reads()) // the same address each time
      if (std::ranges::any_of(list, [&](std::size_t other) { return kernel.instruction(other).use.writes_any(r); })) return false;
  }
  if (!loads) return false;
  const auto decides = [&](std::size_t i) { // what it loads is compared in the loop
    const MemoryAccess* a = kernel.memory.find(i);
    if (!a || a->data.count == 0) return false;
    const Readers readers = readers_of(kernel.program, i, a->data);
    return std::ranges::any_of(readers.list, [&](const Reader& r) {
      const auto m = kernel.mnemonic(r.instruction);
      return (m.starts_with("v_cmp") || m.starts_with("v_readfirstlane") || m.starts_with("s_cmp")) &&
             std::ranges::binary_search(list, r.instruction);
    });
  };
  return std::ranges::any_of(list, decides);
}

const LoopIssue& issue_of(const KernelAnalysis& kernel, std::size_t loop) {
  return loop == nothing ? kernel.issue.loops.back() : kernel.issue.loops[loop];
}

double min_loop_clocks(const KernelAnalysis& kernel, std::size_t loop) {
  const LoopIssue& issue = issue_of(kernel, loop);
  return std::max(issue.clocks_of(issue.busiest), issue.memory_clocks);
}

} // namespace kiln::isa::rules
