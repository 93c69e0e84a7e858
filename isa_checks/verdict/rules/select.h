// Choosing instructions and loops: what the rules share.
#pragma once
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/plural.h"
#include <string_view>
#include <vector>

namespace kiln::isa::rules {

using Instructions = std::vector<std::size_t>;

std::vector<std::size_t> innermost_loops(const KernelAnalysis& kernel);
Instructions all_instructions(const KernelAnalysis& kernel);

// The instructions of a loop that every repetition executes: those of blocks that lie on all ways back to the header.
Instructions steady_instructions(const KernelAnalysis& kernel, std::size_t loop);

template <class Wanted> Instructions where(const Instructions& list, Wanted wanted) {
  Instructions result;
  for (const std::size_t i : list)
    if (wanted(i)) result.push_back(i);
  return result;
}

// The instructions of a list whose mnemonic begins so.
Instructions named(const KernelAnalysis& kernel, const Instructions& list, std::string_view prefix);

inline double number(std::size_t count) { return static_cast<double>(count); }

// Instructions that switch lanes off and keep the mask: what an `if` that lanes may take differently begins with.
Instructions exec_changes(const KernelAnalysis& kernel, const Instructions& list);
bool ends_on_exec(const KernelAnalysis& kernel, std::size_t loop); // a way back to the header depends on EXEC
// A loop in which a lane's value is read into a scalar, the lanes that have the same are served, and the rest go round again.
bool is_waterfall(const KernelAnalysis& kernel, std::size_t loop);

// A loop that waits until somebody else has written something: it sleeps, or it loads the same addresses in every repetition,
// compares what it loads and stores nothing.
bool is_polling(const KernelAnalysis& kernel, std::size_t loop);

// Clocks that a repetition of the loop (`nothing`: a run of the kernel) takes at the least, by the pipe that is busy longest or by
// memory: what a cost is held against. See analysis/issue.h.
double min_loop_clocks(const KernelAnalysis& kernel, std::size_t loop);
const LoopIssue& issue_of(const KernelAnalysis& kernel, std::size_t loop);

// A barrier in a loop is what the wait stands for, and completes loads into registers that nobody needs so soon (SYNC001).
bool drains_for_barrier(const KernelAnalysis& kernel, const WaitPoint& point);

} // namespace kiln::isa::rules
