// WAIT001 to WAIT007: what loops wait for, and when.
#include "isa_checks/analysis/readers.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa::rules {
namespace {

constexpr int short_distance = 4; // instructions

bool loads_device(const KernelAnalysis& k, std::size_t i) {
  const MemoryAccess* a = k.memory.find(i);
  return a && is_device(a->op) && a->op.direction == MemoryDirection::load;
}

bool inside(const KernelAnalysis& k, std::size_t instruction, std::size_t loop) {
  for (std::size_t l = k.loop_of(instruction); l != nothing; l = k.program.loops[l].parent)
    if (l == loop) return true;
  return false;
}

std::string place(const KernelAnalysis& k, std::size_t i) {
  return fmt::format("{:#x} {}", k.instruction(i).address, k.mnemonic(i));
}

// WAIT003: all that the wait completes lies before it in its block and comes in order; returns how many of them are used
// before the next wait, barrier or end of the block. Nothing when that cannot be told.
std::optional<std::size_t> needed_before_next_stop(const KernelAnalysis& k, const WaitPoint& p) {
  const Block& block = k.program.blocks[k.program.block_of(p.instruction)];
  const bool exact =
      p.least_outstanding == p.most_outstanding && p.waits_for.size() == static_cast<std::size_t>(p.most_outstanding - p.value);
  if (!exact || p.waits_for.size() < 2) return std::nullopt;
  for (const std::size_t i : p.waits_for) {
    const bool vm = p.counter == WaitCounter::vmcnt;
    const MemoryAccess* a = k.memory.find(i);
    if (i < block.begin || i >= p.instruction || !a || a->op.to_lds || a->data.count == 0 ||
        a->op.direction != MemoryDirection::load)
      return std::nullopt;
    if (vm ? a->op.space != MemorySpace::global && a->op.space != MemorySpace::buffer : a->op.space != MemorySpace::lds)
      return std::nullopt;
  }
  std::size_t needed = 0;
  for (std::size_t i = p.instruction + 1; i < block.end; ++i) {
    if (k.classes[i] == InstructionClass::barrier || wait_counts(k.instruction(i))) return needed;
    for (std::size_t n = needed; n < p.waits_for.size(); ++n) {
      const RegisterRange data = k.memory.find(p.waits_for[n])->data;
      if (k.uses[i].reads_any(data) || k.uses[i].writes_any(data)) needed = n + 1;
    }
  }
  return std::nullopt; // the block ends: what comes after may use the rest
}

} // namespace

void wait001(const KernelAnalysis& k, FindingSink& sink) {
  if (!k.waits.complete) return;
  for (const std::size_t loop : innermost_loops(k)) {
    const LoopFlight& flight = k.waits.loops[loop];
    if (flight.loads == 0 || flight.most_back_bytes > 0) continue;
    sink.add(
        {.message = fmt::format("{} a repetition, none in flight when the next repetition begins", plural(flight.loads, "load")),
         .evidence = {{"loads", static_cast<double>(flight.loads), "instructions"},
                      {"bytes_a_trip", static_cast<double>(flight.bytes_a_trip), "B"},
                      {"most_bytes_in_flight", static_cast<double>(flight.most_bytes), "B"}},
         .instructions = where(k.instructions_of(loop), [&](std::size_t i) { return loads_device(k, i); }),
         .loop = loop});
  }
}

void wait002(const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t loop : innermost_loops(k)) {
    const Instructions steady = steady_instructions(k, loop);
    const bool some = std::any_of(steady.begin(), steady.end(), [&](std::size_t i) { return loads_device(k, i); });
    Instructions waits, loads;
    for (const WaitPoint& p : k.waits.points) {
      if (p.counter != WaitCounter::vmcnt || p.loop != loop || p.shortest_distance < 0 || p.shortest_distance >= short_distance)
        continue;
      if (some && !std::binary_search(steady.begin(), steady.end(), p.instruction)) continue; // beside the usual way round
      const auto close = std::find_if(p.waits_for.begin(), p.waits_for.end(), [&](std::size_t i) {
        return loads_device(k, i) && inside(k, i, loop) && i < p.instruction && p.instruction - i - 1 < short_distance;
      });
      if (close == p.waits_for.end()) continue;
      waits.push_back(p.instruction);
      loads.push_back(*close);
    }
    if (waits.empty()) continue;
    const std::size_t distance = waits[0] - loads[0] - 1;
    sink.add({.message =
                  fmt::format("{} for loads of the last {} instructions, the first for {}, issued {} before",
                              plural(waits.size(), "wait"), short_distance, place(k, loads[0]), plural(distance, "instruction")),
              .evidence = {{"waits", number(waits.size()), "instructions"}, {"distance", number(distance), "instructions"}},
              .instructions = waits,
              .loop = loop});
  }
}

void wait003(const KernelAnalysis& k, FindingSink& sink) {
  for (const WaitPoint& p : k.waits.points) {
    if (p.loop == nothing) continue;
    const auto needed = needed_before_next_stop(k, p);
    if (!needed || *needed == 0 || *needed == p.waits_for.size()) continue;
    const std::size_t enough = static_cast<std::size_t>(p.value) + p.waits_for.size() - *needed;
    sink.add({.message = fmt::format("waits for {}({}) where {}({}) would do: {} of {} loads are used before the next wait",
                                     to_string(p.counter), p.value, to_string(p.counter), enough, *needed, p.waits_for.size()),
              .evidence = {{"value", static_cast<double>(p.value), ""}, {"enough", number(enough), ""}},
              .instructions = {p.instruction}});
  }
}

void wait004(const KernelAnalysis& k, FindingSink& sink) {
  for (const WaitPoint& p : k.waits.points) {
    const int most = counter_capacity[static_cast<std::size_t>(p.counter)];
    if (p.most_outstanding < most || p.least_outstanding < most) continue;
    sink.add({.message = fmt::format("{} operations are outstanding before this wait, as many as {} counts: earlier ones stalled",
                                     most, to_string(p.counter)),
              .evidence = {{"outstanding", static_cast<double>(most), "instructions"}},
              .instructions = {p.instruction}});
  }
}

void wait005(const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t loop : innermost_loops(k)) {
    Instructions copied;
    for (const std::size_t i : k.instructions_of(loop)) {
      if (!loads_device(k, i)) continue;
      const MemoryAccess& a = *k.memory.find(i);
      if (a.data.count == 0) continue;
      const Readers readers = readers_of(k.program, k.uses, i, a.data);
      const auto copies = [&](const Reader& r) {
        const auto m = k.mnemonic(r.instruction);
        return (m.starts_with("v_mov_b") || m.starts_with("v_pk_mov") || m.starts_with("v_accvgpr_write")) &&
               inside(k, r.instruction, loop);
      };
      const bool all = readers.complete && !readers.list.empty() && std::all_of(readers.list.begin(), readers.list.end(), copies);
      if (all) copied.push_back(i);
    }
    if (!copied.empty())
      sink.add({.message = fmt::format("what {} is only copied within the same repetition, which must wait for it",
                                       plural(copied.size(), "load brings", "loads bring")),
                .evidence = {{"loads", number(copied.size()), "instructions"}},
                .instructions = copied,
                .loop = loop});
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
    sink.add({.message = fmt::format("waits for {}, issued {} before", place(k, *read),
                                     plural(p.instruction - *read - 1, "instruction")),
              .evidence = {{"distance", static_cast<double>(p.instruction - *read - 1), "instructions"}},
              .instructions = {p.instruction, *read}});
  }
}

void wait007(const KernelAnalysis& k, FindingSink& sink) {
  for (const WaitPoint& p : k.waits.points) {
    if (p.counter != WaitCounter::lgkmcnt || p.loop == nothing) continue;
    const Instructions scalar =
        where(p.waits_for, [&](std::size_t i) { return k.classes[i] == InstructionClass::smem && inside(k, i, p.loop); });
    if (scalar.empty()) continue;
    sink.add({.message = fmt::format("waits for {} of the loop, and with {} for all of LDS", plural(scalar.size(), "scalar load"),
                                     scalar.size() == 1 ? "it" : "them"),
              .evidence = {{"loads", number(scalar.size()), "instructions"}},
              .instructions = {p.instruction, scalar.front()}});
  }
}

} // namespace kiln::isa::rules
