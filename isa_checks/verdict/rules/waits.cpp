// WAIT001 to WAIT007: what loops wait for, and when.
#include "isa_checks/analysis/dataflow/path_time.h"
#include "isa_checks/analysis/readers.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace kiln::isa::rules {
namespace {

constexpr int short_distance = 4;   // instructions
constexpr int hiding_distance = 64; // instructions between load and wait that hide a good part of a load's latency

bool loads_device(const KernelAnalysis& k, std::size_t i) {
  const MemoryAccess* a = k.memory.find(i);
  return a && is_device(a->op) && a->op.direction == MemoryDirection::load;
}

bool inside(const KernelAnalysis& k, std::size_t instruction, std::size_t loop) {
  return k.program.any_around(k.loop_of(instruction), [loop](std::size_t l) { return l == loop; });
}

std::string mnemonic_at(const KernelAnalysis& k, std::size_t i) { return fmt::format("{:#x} {}", k.instruction(i).address, k.mnemonic(i)); }

// All that a wait completes is loads into registers that were issued in its block and come in order.
bool completes_own_loads(const KernelAnalysis& k, const WaitPoint& p) {
  const Block& block = k.program.blocks[k.program.block_of(p.instruction)];
  if (p.min_outstanding != p.max_outstanding || p.waits_for.size() != static_cast<std::size_t>(p.max_outstanding - p.value)) return false;
  return std::all_of(p.waits_for.begin(), p.waits_for.end(), [&](std::size_t i) {
    const MemoryAccess* a = k.memory.find(i);
    if (i < block.begin || i >= p.instruction || !a || a->op.to_lds || a->data.count == 0 || a->op.direction != MemoryDirection::load)
      return false;
    const bool device = a->op.space == MemorySpace::global || a->op.space == MemorySpace::buffer;
    return p.counter == WaitCounter::vmcnt ? device : a->op.space == MemorySpace::lds;
  });
}

// Clocks from the issue of a load to a wait in its block.
int clocks_before(const KernelAnalysis& k, std::size_t load, std::size_t wait) {
  constexpr int issue_clocks = 4;
  if (load + 1 == wait) return issue_clocks;
  return issue_clocks + min_clocks(k.program, {k.program.block_of(wait)}, load, wait - 1, *k.target);
}

struct LateLoads {
  std::size_t needed;     // the first so many loads are used (read or overwritten) before a later wait would complete them
  std::size_t later_wait; // the instruction that completes the last of the others
};

// Follows the block behind a wait as if the wait had not completed its loads. Nothing when the block ends before later waits of
// the same counter complete all that was not used: what comes after the block may use them.
std::optional<LateLoads> late_loads(const KernelAnalysis& k, const WaitPoint& p) {
  const Block& block = k.program.blocks[k.program.block_of(p.instruction)];
  const bool vm = p.counter == WaitCounter::vmcnt;
  const std::size_t loads = p.waits_for.size();
  std::size_t younger = static_cast<std::size_t>(p.value); // operations in flight that were issued after the loads
  std::size_t needed = 0, completed = 0;                   // loads, from the oldest; the latter by later waits
  for (std::size_t i = p.instruction + 1; i < block.end; ++i) {
    const CounterUse use = counter_use(k.instruction(i));
    const bool counts = vm ? use.vm : use.lgkm;
    if (counts && use.unordered) return std::nullopt;
    // Reads of LDS have to be complete before a barrier behind which other waves may write there.
    if (!vm && k.instruction(i).kind == InstructionClass::barrier) return std::nullopt;
    younger += counts;
    for (std::size_t n = std::max(needed, completed); n < loads; ++n) {
      const RegisterRange data = k.memory.find(p.waits_for[n])->data;
      if (k.instruction(i).use.reads_any(data) || k.instruction(i).use.writes_any(data)) needed = n + 1;
    }
    const auto wait = wait_counts(k.instruction(i));
    const auto value = !wait ? std::nullopt : vm ? wait->vmcnt : wait->lgkmcnt;
    if (!value) continue;
    const auto left = static_cast<std::size_t>(*value); // the youngest so many stay in flight
    completed = std::max(completed, loads - std::min(loads, left > younger ? left - younger : 0));
    if (completed == loads) return LateLoads{needed, i};
  }
  return std::nullopt;
}

// Fewest instructions from a load of the loop to a wait in the loop that completes it; the most that there may be when none does.
int shortest_wait(const KernelAnalysis& k, std::size_t loop) {
  int shortest = std::numeric_limits<int>::max();
  for (const WaitPoint& p : k.waits.points)
    if (p.counter == WaitCounter::vmcnt && p.shortest_distance >= 0 && inside(k, p.instruction, loop) &&
        std::any_of(p.waits_for.begin(), p.waits_for.end(), [&](std::size_t i) { return loads_device(k, i) && inside(k, i, loop); }))
      shortest = std::min(shortest, p.shortest_distance);
  return shortest;
}

} // namespace

void wait001(const KernelAnalysis& k, FindingSink& sink) {
  if (!k.waits.complete) return;
  for (const std::size_t loop : innermost_loops(k)) {
    const LoopFlight& flight = k.waits.loops[loop];
    const int distance = shortest_wait(k, loop);
    if (flight.loads == 0 || flight.max_back_bytes > 0 || distance >= hiding_distance || is_polling(k, loop)) continue;
    sink.add({.message = fmt::format("{} a repetition, waited for within {}, none in flight when the next repetition begins",
                                     plural(flight.loads, "load"), plural(static_cast<std::size_t>(distance), "instruction")),
              .evidence = {{"distance", static_cast<double>(distance), "instructions"},
                           {"loads", static_cast<double>(flight.loads), "instructions"},
                           {"bytes_a_trip", static_cast<double>(flight.bytes_a_trip), "B"},
                           {"most_bytes_in_flight", static_cast<double>(flight.max_bytes), "B"}},
              .instructions = where(k.instructions_of(loop), [&](std::size_t i) { return loads_device(k, i); }),
              .loop = loop});
  }
}

namespace {

// A burst of loads that is waited for step by step, as the rule advises: younger loads stay in flight, or an earlier wait of the block
// has taken the burst's first.
bool is_staged(const KernelAnalysis& k, const WaitPoint& p, std::size_t load) {
  if (p.value > 0) return true;
  for (std::size_t i = load + 1; i < p.instruction; ++i)
    if (const auto wait = wait_counts(k.instruction(i)); wait && wait->vmcnt && *wait->vmcnt > 0) return true;
  return false;
}

} // namespace

void wait002(const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t loop : innermost_loops(k)) {
    if (is_polling(k, loop)) continue;
    const Instructions steady = steady_instructions(k, loop);
    const bool some = std::any_of(steady.begin(), steady.end(), [&](std::size_t i) { return loads_device(k, i); });
    Instructions waits, loads;
    for (const WaitPoint& p : k.waits.points) {
      if (p.counter != WaitCounter::vmcnt || p.loop != loop || p.shortest_distance < 0 || p.shortest_distance >= short_distance) continue;
      if (some && !std::binary_search(steady.begin(), steady.end(), p.instruction)) continue; // beside the usual way round
      if (drains_for_barrier(k, p)) continue;                                                 // SYNC001's
      const auto close = std::find_if(p.waits_for.begin(), p.waits_for.end(), [&](std::size_t i) {
        return loads_device(k, i) && inside(k, i, loop) && i < p.instruction && p.instruction - i - 1 < short_distance;
      });
      if (close == p.waits_for.end() || is_staged(k, p, *close)) continue;
      waits.push_back(p.instruction);
      loads.push_back(*close);
    }
    if (waits.empty()) continue;
    const std::size_t distance = waits[0] - loads[0] - 1;
    sink.add(
        {.message = fmt::format("{} for loads of the last {} instructions, the first for {}, issued {} before",
                                plural(waits.size(), "wait"), short_distance, mnemonic_at(k, loads[0]), plural(distance, "instruction")),
         .evidence = {{"waits", number(waits.size()), "instructions"}, {"distance", number(distance), "instructions"}},
         .instructions = waits,
         .loop = loop});
  }
}

void wait003(const KernelAnalysis& k, FindingSink& sink) {
  for (const WaitPoint& p : k.waits.points) {
    if (p.loop == nothing || p.waits_for.size() < 2 || !completes_own_loads(k, p)) continue;
    const bool vm = p.counter == WaitCounter::vmcnt;
    if (vm && p.shortest_distance >= hiding_distance) continue;
    const int clocks = clocks_before(k, p.waits_for.back(), p.instruction);
    if (clocks >= (vm ? memory_latency_clocks(*k.target) : k.target->lds_latency_clocks)) continue; // they are back
    const auto late = late_loads(k, p);
    if (!late || late->needed == 0 || late->needed == p.waits_for.size()) continue;
    const std::size_t enough = static_cast<std::size_t>(p.value) + p.waits_for.size() - late->needed;
    sink.add({.message = fmt::format("waits for {0}({1}) where {0}({2}) would do: {3} of {4} loads are used before the wait at {5:#x}, "
                                     "and the youngest was issued {6} clocks before",
                                     to_string(p.counter), p.value, enough, late->needed, p.waits_for.size(),
                                     k.instruction(late->later_wait).address, clocks),
              .evidence = {{"value", static_cast<double>(p.value), ""},
                           {"enough", number(enough), ""},
                           {"clocks", static_cast<double>(clocks), "cycles"}},
              .instructions = {p.instruction},
              .cause = fmt::format("{} {} {}", to_string(p.counter), p.value, enough)});
  }
}

void wait004(const KernelAnalysis& k, FindingSink& sink) {
  for (const WaitPoint& p : k.waits.points) {
    const int most = counter_capacity[static_cast<std::size_t>(p.counter)];
    if (p.max_outstanding < most || p.min_outstanding < most) continue;
    sink.add({.message = fmt::format("{} operations are outstanding before this wait, as many as {} counts: earlier ones stalled", most,
                                     to_string(p.counter)),
              .evidence = {{"outstanding", static_cast<double>(most), "instructions"}},
              .instructions = {p.instruction},
              .cause = "saturated"});
  }
}

namespace {

// In the same repetition only further copies read the copy: its readers lie before it, behind the back edge.
bool read_next_time(const KernelAnalysis& k, std::size_t copy) {
  const Readers readers = readers_of(k.program, copy, k.instruction(copy).use.write_list[0]);
  return std::ranges::none_of(readers.list, [&](const Reader& r) {
    return r.instruction > copy && k.loop_of(r.instruction) == k.loop_of(copy) && !k.mnemonic(r.instruction).starts_with("v_mov_b");
  });
}

} // namespace

void wait005(const KernelAnalysis& k, FindingSink& sink) {
  if (!k.waits.complete) return;
  for (const std::size_t loop : innermost_loops(k)) {
    if (k.waits.loops[loop].max_back_bytes > 0) continue; // the copy defeats nothing
    Instructions copied;
    for (const std::size_t i : k.instructions_of(loop)) {
      if (!loads_device(k, i)) continue;
      const MemoryAccess& a = *k.memory.find(i);
      if (a.data.count == 0) continue;
      const auto copies = [&](const Reader& r) {
        const auto m = k.mnemonic(r.instruction);
        return (m.starts_with("v_mov_b") || m.starts_with("v_pk_mov") || m.starts_with("v_accvgpr_write")) &&
               inside(k, r.instruction, loop) && read_next_time(k, r.instruction);
      };
      constexpr std::size_t near = 64; // instructions: most loads have another reader so soon
      if (!std::ranges::all_of(readers_of(k.program, i, a.data, near).list, copies)) continue;
      const Readers readers = readers_of(k.program, i, a.data);
      const bool all = readers.complete && !readers.list.empty() && std::all_of(readers.list.begin(), readers.list.end(), copies);
      if (all) copied.push_back(i);
    }
    sink.add_counted("loads",
                     fmt::format("what {} is only copied within the same repetition, which must wait for it",
                                 plural(copied.size(), "load brings", "loads bring")),
                     copied, loop);
  }
}

void wait006(const KernelAnalysis& k, FindingSink& sink) {
  for (const WaitPoint& p : k.waits.points) {
    if (p.counter != WaitCounter::lgkmcnt || p.loop == nothing || p.idle()) continue;
    const auto read = std::find_if(p.waits_for.begin(), p.waits_for.end(), [&](std::size_t i) {
      const MemoryAccess* a = k.memory.find(i);
      return a && a->op.space == MemorySpace::lds && a->op.direction == MemoryDirection::load && i < p.instruction &&
             p.instruction - i - 1 <= 1;
    });
    if (read == p.waits_for.end()) continue;
    sink.add(
        {.message = fmt::format("waits for {}, issued {} before", mnemonic_at(k, *read), plural(p.instruction - *read - 1, "instruction")),
         .evidence = {{"distance", static_cast<double>(p.instruction - *read - 1), "instructions"}},
         .instructions = {p.instruction, *read},
         .cause = "lds"});
  }
}

void wait007(const KernelAnalysis& k, FindingSink& sink) {
  for (const WaitPoint& p : k.waits.points) {
    if (p.counter != WaitCounter::lgkmcnt || p.loop == nothing) continue;
    const Instructions scalar =
        where(p.waits_for, [&](std::size_t i) { return k.instruction(i).kind == InstructionClass::smem && inside(k, i, p.loop); });
    if (scalar.empty()) continue;
    sink.add({.message = fmt::format("waits for {} of the loop, and with {} for all of LDS", plural(scalar.size(), "scalar load"),
                                     scalar.size() == 1 ? "it" : "them"),
              .evidence = {{"loads", number(scalar.size()), "instructions"}},
              .instructions = {p.instruction, scalar.front()},
              .cause = "scalar"});
  }
}

} // namespace kiln::isa::rules
