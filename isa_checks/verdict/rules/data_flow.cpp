// DAT001 to DAT004, CMP002, CMP003: registers, LDS and written-back lines that are used before they are there, or after they are gone.
#include "isa_checks/analysis/dataflow/early_uses.h"
#include "isa_checks/analysis/dataflow/lds_races.h"
#include "isa_checks/analysis/dataflow/path_time.h"
#include "isa_checks/analysis/dataflow/uninitialised.h"
#include "isa_checks/decode/counter_use.h"
#include "isa_checks/target/hazards.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace kiln::isa::rules {
namespace {

std::string place(const KernelAnalysis& k, std::size_t i) {
  return fmt::format("{:#x} {}", k.instruction(i).address, k.instruction(i).text);
}

// The instructions at both ends, and the branches between them with the way that the path takes.
std::vector<std::string> steps(const KernelAnalysis& k, const FlowPath& path, std::size_t from, std::size_t to) {
  constexpr std::size_t most = 12; // branches
  std::vector<std::string> result{place(k, from)};
  std::size_t left_out = 0;
  for (std::size_t n = 0; n + 1 < path.size(); ++n) {
    const Block& block = k.program.blocks[path[n]];
    const Flow flow = k.instruction(block.end - 1).flow;
    if (flow != Flow::branch && flow != Flow::jump) continue;
    const std::uint64_t target = k.instruction(k.program.blocks[path[n + 1]].begin).address;
    if (result.size() > most) {
      ++left_out;
      continue;
    }
    const bool taken = k.program.blocks[path[n + 1]].begin != block.end;
    result.push_back(fmt::format("{}, {} {:#x}", place(k, block.end - 1), taken ? "taken to" : "not taken, on to", target));
  }
  if (left_out > 0) result.push_back(fmt::format("({} more)", plural(left_out, "branch", "branches")));
  result.push_back(place(k, to));
  return result;
}

// Conditions of two branches may exclude each other, which is followed for comparisons of the same scalars only.
bool may_be_excluded(const KernelAnalysis& k, const FlowPath& path) { return conditions_on(k.program, path) >= 2; }
std::optional<Severity> severity_of_path(const KernelAnalysis& k, const FlowPath& path) {
  return may_be_excluded(k, path) || compares_scalars(k.program, path) ? std::optional(Severity::warning) : std::nullopt;
}

// What time says where no wait does.
struct Timed {
  const EarlyUse* early;
  int clocks, latency; // from the operation to its use, and to its data with nothing in the way
  Severity severity;
  std::string_view verdict;
};

// An error when the data cannot be there yet, unless the way may be excluded or other waves decide how long it takes. LDS serves in
// turn, and is done within a bounded time.
Timed timed(const KernelAnalysis& k, const EarlyUse& early) {
  const bool lds = k.instruction(early.operation).kind == InstructionClass::lds;
  Timed result{&early, min_clocks(k.program, early.path, early.operation, early.use, *k.target),
               lds ? k.target->lds_latency_clocks : memory_latency_clocks(*k.target), Severity::warning, "time alone orders the two"};
  if (may_be_excluded(k, early.path)) {
    result.severity = Severity::info;
    result.verdict = "the branches on the way may exclude each other";
  } else if (result.clocks < result.latency && !barrier_on(k.program, early.path, early.operation, early.use)) {
    const bool promised = compares_scalars(k.program, early.path);
    result.severity = promised ? Severity::warning : Severity::error;
    result.verdict = promised ? "the data takes longer, unless the host's arguments exclude this way" : "the data takes longer";
  } else if (lds && result.clocks >= max_lds_clocks(*k.target, k.facts.occupancy.waves_per_cu)) {
    result.severity = Severity::info;
    result.verdict = "long enough for LDS, whatever the other waves do";
  }
  return result;
}

// What time says of a race in which only the barrier is missing. Waves that have their SIMDs to themselves leave the barrier before the
// first access together and come to it together: the second is safe when it comes late enough, but for what holds up one wave alone, as
// fetching instructions does.
struct InStep {
  int clocks; // from the first to the second
  Severity severity;
};
std::optional<InStep> in_step(const KernelAnalysis& k, const LdsRace& race) {
  const Occupancy& o = k.facts.occupancy;
  if (!(race.reads_first || race.waited) || o.waves_per_simd > 1) return std::nullopt;
  double queued = instruction_cost(k.instruction(race.first), k.memory.find(race.first), *k.target).clocks; // of LDS, a wave
  const bool together = in_step_since_barrier(k.program, race.first, [&](std::size_t i) {
    if (k.instruction(i).kind == InstructionClass::lds) queued += instruction_cost(k.instruction(i), k.memory.find(i), *k.target).clocks;
  });
  const int clocks = min_clocks(k.program, race.path, race.first, race.second, *k.target);
  if (!together || clocks < k.target->lds_latency_clocks) return std::nullopt;
  const bool straight = std::none_of(race.path.begin(), race.path.end() - 1, [&](std::size_t block) {
    return k.instruction(k.program.blocks[block].end - 1).flow == Flow::branch;
  });
  const bool served = straight && clocks >= k.target->lds_latency_clocks + o.waves_per_cu * queued;
  return InStep{clocks, served || severity_of_path(k, race.path) ? Severity::info : Severity::warning};
}

// Reads of registers that nothing writes; those of which a lane of a vector register keeps what comes of them are CMP002's.
void report_uninitialised(const KernelAnalysis& k, FindingSink& sink, bool spilled) {
  if (k.program.blocks.empty()) return;
  const std::size_t entry = k.program.blocks[k.program.entry].begin;
  for (const UninitialisedRead& read : uninitialised_reads(k.program, k.operands, k.kernel.descriptor)) {
    if (read.spilled.has_value() != spilled) continue;
    if (!read.on_all_paths && (read.path.empty() || may_be_excluded(k, read.path))) continue; // compilers leave such paths undefined
    const bool direct = read.effect == read.instruction;
    std::vector<std::string> path = steps(k, read.path, entry, read.effect);
    if (!direct) path.insert(path.end() - 1, place(k, read.instruction));
    const std::string through = spilled && !read.lane ? fmt::format(" by lane {} of v{}", read.spilled->second, read.spilled->first) : "";
    const std::string name = read.lane ? fmt::format("lane {} of v{}", read.lane->second, read.lane->first) : name_of(read.registers);
    sink.add({.message = fmt::format("{} is read, and nothing writes {} on {}{}", name, read.registers.count == 1 ? "it" : "all of it",
                                     read.on_all_paths ? "any path" : "some path",
                                     direct ? "" : fmt::format("; what comes of it goes{} into {}", through, place(k, read.effect))),
              .evidence = {{"registers", static_cast<double>(read.registers.count), "registers"}},
              .instructions = {read.instruction, read.effect},
              .cause = read.on_all_paths ? "never" : "on some path",
              .path = std::move(path),
              .change = fmt::format("write {} on every path that leads here", name),
              .effect = "the same result in every run"});
  }
}

} // namespace

void dat001(const KernelAnalysis& k, FindingSink& sink) {
  const EarlyUses uses = early_uses(k.program, k.operands);
  std::vector<Timed> list;
  for (const EarlyUse& early : uses.list) list.push_back(timed(k, early));
  std::ranges::stable_sort(list, {}, &Timed::clocks); // of several places the closest is the one shown
  for (const Timed& t : list) {
    const EarlyUse& early = *t.early;
    sink.add({.message = fmt::format("{} is {} before a wait for {} has completed {:#x} {}, which fills it: {} clocks behind it, {}",
                                     name_of(k.instruction(early.operation).use.write_list[0]), early.overwrites ? "overwritten" : "read",
                                     to_string(early.counter), k.instruction(early.operation).address, k.mnemonic(early.operation),
                                     t.clocks, t.verdict),
              .evidence = {{"clocks", static_cast<double>(t.clocks), "cycles"},
                           {"latency", static_cast<double>(t.latency), "cycles"},
                           {"conditions", static_cast<double>(conditions_on(k.program, early.path)), ""}},
              .instructions = {early.use, early.operation},
              .severity = t.severity,
              .cause = fmt::format("{} {}", early.overwrites, to_string(early.counter)),
              .path = steps(k, early.path, early.operation, early.use),
              .change = fmt::format("insert s_waitcnt {}(0), or a count that leaves only younger operations", to_string(early.counter)),
              .effect = "the data is there on every path"});
  }
}

void dat002(const KernelAnalysis& k, FindingSink& sink) { report_uninitialised(k, sink, false); }

void cmp002(const KernelAnalysis& k, FindingSink& sink) {
  const auto spills = [](const Instruction& i) { return i.mnemonic == "v_writelane_b32"; };
  if (std::ranges::any_of(k.program.instructions, spills)) report_uninitialised(k, sink, true);
}

void dat003(const KernelAnalysis& k, FindingSink& sink) {
  for (const LdsRace& race : lds_races(k.program, k.operands, k.kernel, k.facts.resources)) {
    const bool only_barrier = race.reads_first || race.waited;
    const std::optional<InStep> timed = in_step(k, race);
    std::vector<Evidence> evidence{{"address", static_cast<double>(race.address), "B"}};
    if (timed) evidence.push_back({"clocks", static_cast<double>(timed->clocks), "cycles"});
    sink.add({.message = fmt::format("LDS byte {:#x} is {} by wave {} at {:#x} {} and {} by wave {} here, with no {} between{}",
                                     race.address, race.reads_first ? "read" : "written", race.first_wave,
                                     k.instruction(race.first).address, k.mnemonic(race.first), race.reads_first ? "written" : "read",
                                     race.second_wave, only_barrier ? "barrier" : "wait and barrier",
                                     timed ? fmt::format(": {} clocks behind it, time alone orders the two", timed->clocks) : ""),
              .evidence = std::move(evidence),
              .instructions = {race.second, race.first},
              .severity = timed                           ? timed->severity
                          : may_be_excluded(k, race.path) ? Severity::info
                                                          : severity_of_path(k, race.path),
              .cause = race.reads_first ? "read first"
                       : race.waited    ? "barrier"
                                        : "wait",
              .path = steps(k, race.path, race.first, race.second),
              .change = only_barrier ? "insert s_barrier between the two" : "insert s_waitcnt lgkmcnt(0) and s_barrier between the two",
              .effect = "the two waves meet this byte in one order"});
  }
}

void dat004(const KernelAnalysis& k, FindingSink& sink) {
  for (const EarlyUse& early : early_overwrites(k.program, k.operands, k.memory, *k.target).list) {
    const MemoryAccess* const access = k.memory.find(early.operation);
    const bool scalar_offset = access && has_scalar_offset(*access, k.operands[early.operation]);
    const int states = wide_store_states(*k.target, scalar_offset);
    // With a scalar offset the first register was read in time where it was measured (llvm/llvm-project#197267).
    const bool first_alone =
        scalar_offset && !k.instruction(early.use).use.writes_any(
                             {static_cast<std::uint16_t>(access->data.first + 1), static_cast<std::uint16_t>(access->data.count - 1)});
    sink.add({.message = fmt::format("the data of {:#x} {} is overwritten before the hardware has read it",
                                     k.instruction(early.operation).address, k.mnemonic(early.operation)),
              .evidence = {{"states", static_cast<double>(states), "wait states"}},
              .instructions = {early.use, early.operation},
              .severity = first_alone ? std::optional(Severity::info) : severity_of_path(k, early.path),
              .cause = "overwritten",
              .path = steps(k, early.path, early.operation, early.use),
              .change = early.counter == WaitCounter::expcnt && k.mnemonic(early.operation).starts_with("ds_gws")
                            ? std::string("insert s_waitcnt expcnt(0)")
                            : fmt::format("insert s_nop {}", states - 1),
              .effect = "memory gets the value that was stored"});
  }
}

// What lets another wave or device see that the lines are written back: a store, an atomic, or a barrier, behind which another wave may
// store.
void cmp003(const KernelAnalysis& k, FindingSink& sink) {
  FlowSearch search(k.program, k.operands);
  const auto several = !k.facts.resources.workgroup_size_known || k.facts.resources.workgroup_size > wave_size;
  for (const std::size_t i : named(k, all_instructions(k), "buffer_wbl2")) {
    std::size_t use = nothing;
    const FlowPath path = search.run(i, 0, [&](std::size_t next, unsigned& younger) { // vector memory operations since
      if (const auto wait = wait_counts(k.instruction(next)))
        return wait->vmcnt && static_cast<unsigned>(*wait->vmcnt) <= younger ? FlowStep::stop : FlowStep::go_on;
      const auto op = k.instruction(next).memory;
      const bool tells = op && is_device(*op) && op->direction != MemoryDirection::load && !op->to_lds;
      if (tells || (several && k.instruction(next).kind == InstructionClass::barrier)) {
        use = next;
        return FlowStep::found;
      }
      if (counter_use(k.instruction(next)).vm) younger = std::min(younger + 1, static_cast<unsigned>(max_vmcnt) - 1);
      return FlowStep::go_on;
    });
    if (path.empty()) continue;
    sink.add({.message = fmt::format("{} follows before a wait for vmcnt(0) says that the lines are written back", place(k, use)),
              .evidence = {},
              .instructions = {i, use},
              .severity = may_be_excluded(k, path) ? std::optional(Severity::info) : std::nullopt,
              .cause = std::string(k.mnemonic(use)),
              .path = steps(k, path, i, use),
              .change = "insert s_waitcnt vmcnt(0) behind it",
              .effect = "who sees the store sees what was written before it"});
  }
}

} // namespace kiln::isa::rules
