// HAZ001, HAZ002, HAZ003, CMP001: wait states between instructions, and LDS that is read too early.
#include "isa_checks/decode/hazard_traits.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

namespace kiln::isa::rules {
namespace {

struct TooClose {
  std::size_t producer = 0;
  int states = 0; // between the two
  Hazard hazard;
};

// A way back from an instruction, within one block and on to its predecessors.
struct WayBack {
  std::size_t block = 0, end = 0;                         // looks at instructions [begin of block, end), last first
  int distance = 0;                                       // wait states from the issue of the instruction at `end` to that of the consumer
  int matrix_distance = -1;                               // likewise of the latest matrix instruction; -1: none on the way
  std::vector<const HazardTraits*> matrices = {};         // on the way
  std::vector<std::span<const std::size_t>> awaited = {}; // what waits for 0 on the way wait for
  bool exec_written = false;
};

// Does nothing when no lane is on. Matrix instructions, and those that name their lane, do not ask EXEC.
bool obeys_exec(const HazardTraits& t) {
  const bool names_lane = t.lanes == LaneUse::read_first || t.lanes == LaneUse::read || t.lanes == LaneUse::write;
  return t.unit != HazardUnit::other && t.unit != HazardUnit::matrix && !names_lane;
}

// Looks back from one instruction over all predecessors for another that is too close. Ends where so much time has passed that
// no hazard is left: by wait states, by the passes of matrix instructions that had to be issued between (as target/hazards.h's
// IssueClock), or by a wait for a memory operation that was issued between, which takes longer than any hazard. A barrier of several
// waves is taken to last as long as any hazard that is not about matrix instructions (ASSUMED: the waves meet in a unit of the CU).
class LookBack {
public:
  // `unlike`: looks for CMP001's pairs alone, matrix instructions of two kinds on one accumulator.
  explicit LookBack(const KernelAnalysis& k, bool unlike = false)
      : k_(k), unlike_(unlike), reach_(k.matrix.uses.empty() ? max_states_without_matrix : max_hazard_states) {
    traits_.reserve(k.program.instructions.size());
    for (std::size_t i = 0; i < k.program.instructions.size(); ++i) {
      traits_.push_back(hazard_traits(k.instruction(i), k.operands[i], k.instruction(i).use, *k.target));
      traits_.back().produces &= static_cast<std::uint16_t>(~hazard_store); // DAT004's
    }
  }
  const HazardTraits& traits(std::size_t i) const { return traits_[i]; }

  std::optional<TooClose> from(std::size_t consumer, std::size_t block) const {
    const HazardTraits& second = traits_[consumer];
    if (second.consumes == 0) return std::nullopt;
    std::set<std::tuple<std::size_t, int, int, bool>> seen;
    std::vector<WayBack> work{{.block = block, .end = consumer, .matrix_distance = second.passes != 0 ? 0 : -1}};
    while (!work.empty()) {
      WayBack way = std::move(work.back());
      work.pop_back();
      if (const auto found = follow(way, consumer)) return found;
      if (way.distance >= reach_) continue;
      for (const std::size_t before : k_.program.blocks[way.block].predecessors) {
        if (!way.exec_written && obeys_exec(second) && is_taken_execz(before, way.block)) continue;
        if (seen.insert({before, way.distance, way.matrix_distance, way.exec_written}).second) {
          work.push_back(way);
          work.back().block = before;
          work.back().end = k_.program.blocks[before].end;
        }
      }
    }
    return std::nullopt;
  }

private:
  Hazard between(std::size_t first, std::size_t second) const {
    if (!unlike_) return hazard_between(traits_[first], traits_[second], *k_.target, HazardEvidence::table);
    if (k_.mnemonic(first) == k_.mnemonic(second)) return {};
    return unforwarded_accumulation(traits_[first], traits_[second], *k_.target);
  }

  std::optional<TooClose> follow(WayBack& way, std::size_t consumer) const {
    const HazardTraits& second = traits_[consumer];
    for (std::size_t i = way.end; i > k_.program.blocks[way.block].begin && way.distance < reach_;) {
      const HazardTraits& first = traits_[--i];
      way.distance += first.states;
      way.exec_written |= k_.instruction(i).use.writes_any({reg::exec, 2});
      if (k_.instruction(i).kind == InstructionClass::barrier && several_waves_) way.distance += max_states_without_matrix;
      if (first.passes != 0 && way.matrix_distance >= 0) way.distance = std::max(way.distance, way.matrix_distance + first.passes);
      if ((first.produces & second.consumes) != 0 && !(first.passes != 0 && result_overwritten(first, second, way.matrices))) {
        const Hazard hazard = between(i, consumer);
        if (const int states = way.distance - first.states; states < hazard.states) return TooClose{i, states, hazard};
      }
      if (first.passes != 0) {
        way.matrix_distance = way.distance;
        way.matrices.push_back(&first);
      }
      if (k_.instruction(i).kind == InstructionClass::wait) note_wait(way, i);
      if (is_awaited(way, i)) way.distance = reach_;
    }
    return std::nullopt;
  }

  // Whether `to` follows `from` only by a branch that is taken when no lane is on.
  bool is_taken_execz(std::size_t from, std::size_t to) const {
    const std::size_t end = k_.program.blocks[from].end;
    return k_.instruction(end - 1).mnemonic == "s_cbranch_execz" && k_.program.blocks[to].begin != end;
  }

  void note_wait(WayBack& way, std::size_t wait) const {
    const auto& points = k_.waits.points;
    auto p = std::lower_bound(points.begin(), points.end(), wait, [](const WaitPoint& x, std::size_t i) { return x.instruction < i; });
    for (; p != points.end() && p->instruction == wait; ++p)
      if (p->value == 0) way.awaited.push_back(p->waits_for);
  }
  static bool is_awaited(const WayBack& way, std::size_t i) {
    return std::any_of(way.awaited.begin(), way.awaited.end(), [i](auto list) { return std::binary_search(list.begin(), list.end(), i); });
  }

  const KernelAnalysis& k_;
  const bool unlike_;
  const int reach_; // wait states
  const bool several_waves_ = !k_.facts.resources.workgroup_size_known || k_.facts.resources.workgroup_size > wave_size;
  std::vector<HazardTraits> traits_; // by instruction
};

// Kernels that ship undercut what LLVM's table has alone in their main loops, where wrong results would have been seen; but for matrix
// results never by so much that fewer states than these are left (docs/lint_precision.md). A matrix operand just written: warning.
constexpr int fewest_shipped_states = 2;

Severity severity_of(const TooClose& found, const HazardTraits& first, const HazardTraits& second) {
  if (found.hazard.evidence == HazardEvidence::agreed) return Severity::error;
  if (first.passes != 0 && found.hazard.states > fewest_shipped_states && found.states < fewest_shipped_states) return Severity::error;
  return first.passes == 0 && second.passes != 0 && found.states == 0 ? Severity::warning : Severity::info;
}

// By consumer, those first that lack most: of several places of one cause the first is shown.
std::vector<std::pair<std::size_t, TooClose>> all_too_close(const KernelAnalysis& k, const LookBack& look) {
  std::vector<std::pair<std::size_t, TooClose>> list;
  std::size_t block = 0;
  for (const std::size_t i : all_instructions(k)) {
    while (k.program.blocks[block].end <= i) ++block;
    if (const auto found = look.from(i, block)) list.emplace_back(i, *found);
  }
  std::ranges::stable_sort(list, {}, [](const auto& entry) { return entry.second.states - entry.second.hazard.states; });
  return list;
}

std::vector<Evidence> evidence_of(const TooClose& found) {
  return {{"states", static_cast<double>(found.states), "wait states"},
          {"needed", static_cast<double>(found.hazard.states), "wait states"}};
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
      waited = k.instruction(i).kind == InstructionClass::wait && waits_for(k, i, transfer);
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
    for (const std::size_t i : in_loop) states += nop_states(k.instruction(i));
    if (states == 0 || states < much * number(in_loop.size())) continue;
    sink.add(
        {.message = fmt::format("{} in s_nop among {}", plural(static_cast<std::size_t>(states), "wait state"),
                                plural(in_loop.size(), "instruction")),
         .evidence = {{"states", static_cast<double>(states), "wait states"}, {"instructions", number(in_loop.size()), "instructions"}},
         .instructions = where(in_loop, [&](std::size_t i) { return nop_states(k.instruction(i)) > 0; }),
         .loop = loop});
  }
}

void haz002(const KernelAnalysis& k, FindingSink& sink) {
  const LookBack look(k);
  for (const auto& [i, found] : all_too_close(k, look))
    sink.add(
        {.message =
             fmt::format("{} {} after {:#x} {}, {} needed", found.hazard.what, plural(static_cast<std::size_t>(found.states), "wait state"),
                         k.instruction(found.producer).address, k.mnemonic(found.producer), found.hazard.states),
         .evidence = evidence_of(found),
         .instructions = {i, found.producer},
         .severity = severity_of(found, look.traits(found.producer), look.traits(i)),
         .cause = std::string(found.hazard.what),
         .change = fmt::format("insert s_nop {}, or other instructions", std::min(found.hazard.states - found.states, 16) - 1),
         .effect = fmt::format("{} instead of {}", plural(static_cast<std::size_t>(found.hazard.states), "wait state"), found.states)});
}

void cmp001(const KernelAnalysis& k, FindingSink& sink) {
  const auto& uses = k.matrix.uses;
  const auto is_first = [&](const MatrixUse& use) { return k.mnemonic(use.instruction) == k.mnemonic(uses.front().instruction); };
  if (k.target->generation == machine::Generation::cdna2 || std::ranges::all_of(uses, is_first)) return;
  for (const auto& [i, found] : all_too_close(k, LookBack(k, true)))
    sink.add(
        {.message = fmt::format("accumulates on the result of {:#x} {}, another instruction, {} after it; {} if that is not forwarded",
                                k.instruction(found.producer).address, k.mnemonic(found.producer),
                                plural(static_cast<std::size_t>(found.states), "wait state"), found.hazard.states),
         .evidence = evidence_of(found),
         .instructions = {i, found.producer},
         .cause = std::string(k.mnemonic(found.producer)),
         .change = fmt::format("insert s_nop {}, or other instructions", std::min(found.hazard.states - found.states, 16) - 1),
         .effect = fmt::format("{} instead of {}", plural(static_cast<std::size_t>(found.hazard.states), "wait state"), found.states)});
}

void haz003(const KernelAnalysis& k, FindingSink& sink) {
  for (const MemoryAccess& a : k.memory.accesses) {
    if (!a.op.to_lds) continue;
    const std::size_t read = early_read(k, a.instruction);
    if (read != nothing)
      sink.add({.message = fmt::format("LDS is read at {:#x} while this transfer to LDS may be in flight", k.instruction(read).address),
                .evidence = {{"instructions_between", number(read > a.instruction ? read - a.instruction - 1 : 0), "instructions"}},
                .instructions = {a.instruction, read}});
  }
}

} // namespace kiln::isa::rules
