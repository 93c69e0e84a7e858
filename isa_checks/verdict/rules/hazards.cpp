// HAZ001, HAZ002, HAZ003: wait states between instructions, and LDS that is read too early.
#include "isa_checks/verdict/rules/hazard_table.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <set>

namespace kiln::isa::rules {
namespace {

// Looks back from `consumer` over all predecessors for a producer that is too close; the first one found.
struct TooClose {
  std::size_t producer;
  int states, needed;
  std::string_view what;
};
// `made` is hazards_made of every instruction.
std::optional<TooClose> too_close(const KernelAnalysis& k, std::size_t consumer, std::size_t block_of_it, const std::vector<std::uint8_t>& made) {
  const std::uint8_t met = hazards_met(k, consumer);
  if (met == 0) return std::nullopt;
  const int reach = k.matrix.uses.empty() ? most_states_without_matrix : most_hazard_states;
  struct Step {
    std::size_t block, end; // looks at instructions [begin of block, end), last first
    int states;
  };
  std::vector<Step> work; // of paths that leave the consumer's block
  std::set<std::pair<std::size_t, int>> seen;
  for (std::optional<Step> next = Step{block_of_it, consumer, 0}; next;) {
    auto [block, i, states] = *next;
    bool far = false;
    while (i > k.program.blocks[block].begin && !far) {
      --i;
      if ((made[i] & met) != 0)
        if (const auto hazard = hazard_between(k, i, consumer); hazard && states < hazard->states) return TooClose{i, states, hazard->states, hazard->name};
      states += std::max(1, nop_states(k, i));
      far = states >= reach;
    }
    if (!far)
      for (const std::size_t before : k.program.blocks[block].predecessors)
        if (seen.insert({before, states}).second) work.push_back({before, k.program.blocks[before].end, states});
    next.reset();
    if (!work.empty()) {
      next = work.back();
      work.pop_back();
    }
  }
  return std::nullopt;
}

bool waits_for(const KernelAnalysis& k, std::size_t wait, std::size_t operation) {
  return std::any_of(k.waits.points.begin(), k.waits.points.end(), [&](const WaitPoint& p) {
    return p.instruction == wait && std::binary_search(p.waits_for.begin(), p.waits_for.end(), operation);
  });
}

// The first read of LDS that may run while the transfer has not been waited for, within a few hundred instructions.
std::size_t early_read(const KernelAnalysis& k, std::size_t transfer) {
  std::deque<std::size_t> work{transfer + 1};
  std::set<std::size_t> entered;
  for (int budget = 512; !work.empty();) {
    std::size_t i = work.front();
    work.pop_front();
    const std::size_t block = k.program.block_of(i);
    bool waited = false;
    for (; i < k.program.blocks[block].end && !waited && budget-- > 0; ++i) {
      const MemoryAccess* a = k.memory.find(i);
      if (a && a->op.space == MemorySpace::lds && a->op.direction == MemoryDirection::load) return i;
      waited = k.classes[i] == InstructionClass::wait && waits_for(k, i, transfer);
    }
    if (budget <= 0) return nothing;
    if (!waited)
      for (const std::size_t to : k.program.blocks[block].successors)
        if (entered.insert(to).second) work.push_back(k.program.blocks[to].begin);
  }
  return nothing;
}

} // namespace

void haz001(const KernelAnalysis& k, FindingSink& sink) {
  constexpr double much = 0.05; // of the loop's instructions
  for (const std::size_t loop : innermost_loops(k)) {
    const Instructions in_loop = k.instructions_of(loop);
    int states = 0;
    for (const std::size_t i : in_loop) states += nop_states(k, i);
    if (states == 0 || states < much * number(in_loop.size())) continue;
    sink.add({.message = fmt::format("{} in s_nop among {}", plural(static_cast<std::size_t>(states), "wait state"),
                                     plural(in_loop.size(), "instruction")),
              .evidence = {{"states", static_cast<double>(states), "wait states"},
                           {"instructions", number(in_loop.size()), "instructions"}},
              .instructions = where(in_loop, [&](std::size_t i) { return nop_states(k, i) > 0; }),
              .loop = loop});
  }
}

void haz002(const KernelAnalysis& k, FindingSink& sink) {
  std::vector<std::uint8_t> made(k.program.instructions.size());
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = hazards_made(k, i);
  std::size_t block = 0;
  for (const std::size_t i : all_instructions(k)) {
    while (k.program.blocks[block].end <= i) ++block;
    if (const auto found = too_close(k, i, block, made))
      sink.add({.message = fmt::format("{}: {} after {:#x} {}, {} needed", found->what,
                                       plural(static_cast<std::size_t>(found->states), "wait state"),
                                       k.instruction(found->producer).address, k.mnemonic(found->producer), found->needed),
                .evidence = {{"states", static_cast<double>(found->states), "wait states"},
                             {"needed", static_cast<double>(found->needed), "wait states"}},
                .instructions = {i, found->producer}});
  }
}

void haz003(const KernelAnalysis& k, FindingSink& sink) {
  for (const MemoryAccess& a : k.memory.accesses) {
    if (!a.op.to_lds) continue;
    const std::size_t read = early_read(k, a.instruction);
    if (read != nothing)
      sink.add(
          {.message =
               fmt::format("LDS is read at {:#x} while this transfer to LDS may be in flight", k.instruction(read).address),
           .evidence = {{"instructions_between", number(read > a.instruction ? read - a.instruction - 1 : 0), "instructions"}},
           .instructions = {a.instruction, read}});
  }
}

} // namespace kiln::isa::rules
