// Time along a path of the flow graph: what lies between an operation and its use when no wait does.
#pragma once
#include "isa_checks/analysis/dataflow/flow_search.h"
#include "isa_checks/analysis/waits/waits.h"
#include "isa_checks/decode/counter_use.h"
#include "isa_checks/target/target_table.h"
#include <functional>

namespace kiln::isa {

// Fewest clocks from the issue of instruction `from` to that of `to`, on a path that begins in the block of one and ends in that of
// the other. An instruction issues 4 clocks after the one before it; one of the vector or matrix pipe when the one before it in the
// same pipe is done; behind an s_waitcnt for a younger operation when that is back. Everything else takes no time.
int min_clocks(const Program& program, const FlowPath& path, std::size_t from, std::size_t to, const TargetFacts& target);

// Clocks from issue to data of anything that device memory brings, with nothing else under way.
constexpr int memory_latency_clocks(const TargetFacts& target) { return target.memory_latency_ns * target.clock_mhz / 1000; }

// Clocks after which LDS has served an operation even if each of `waves` waves keeps as many in its queue as lgkmcnt counts, each of
// them 16 passes (16 B a lane with a two-way conflict).
constexpr int max_lds_clocks(const TargetFacts& target, int waves) { return target.lds_latency_clocks + waves * max_lgkmcnt * 16; }

// A barrier lies between the two instructions of the path: how long the other waves take to come there is not known.
bool barrier_on(const Program& program, const FlowPath& path, std::size_t from, std::size_t to);

// Visits the instructions that lie before one on all ways back to a barrier, last first, when waves that left that barrier together come to
// it together: no wait for memory lies between, which takes one wave longer than another. False when they may not.
bool in_step_since_barrier(const Program& program, std::size_t instruction, const std::function<void(std::size_t)>& visit);

// Operations that a counter counts, issued between the two instructions. Behind as many as it holds the first is complete: the hardware
// stalls instead of counting further.
int operations_on(const Program& program, const FlowPath& path, std::size_t from, std::size_t to, WaitCounter counter);

// Branches of the path that might have gone another way within the same loops. One that keeps the path in a loop which its other side
// leaves is not among them: loops repeat.
int conditions_on(const Program& program, const FlowPath& path);

// One of these branches compares scalars, as kernel arguments are: the host may promise that it always goes the other way.
bool compares_scalars(const Program& program, const FlowPath& path);

} // namespace kiln::isa
