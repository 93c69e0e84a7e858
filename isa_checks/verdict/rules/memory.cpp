// MEM001, MEM002, MEM006, MEM009, MEM010, MEM011: which memory instructions a kernel uses.
#include "isa_checks/analysis/readers.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace kiln::isa::rules {
namespace {

constexpr int widest = 16; // bytes per lane

// Wide loads would keep more bytes in flight, and memory is what the loop waits for: nothing else takes nearly as long. What stores
// keep in flight is not counted.
bool starves(const KernelAnalysis& k, std::size_t loop, MemoryDirection direction) {
  const LoopIssue& issue = issue_of(k, loop);
  if (issue.memory_clocks <= 1.25 * issue.clocks_of(issue.busiest)) return false;
  const auto found = std::ranges::find(k.concurrency, loop, &LoopConcurrency::loop);
  return direction != MemoryDirection::load || found == k.concurrency.end() || found->max_cu_bytes < found->needed_cu_bytes;
}

// Narrow accesses cost next to nothing where they bring a tenth of the loop's data or less, or where the instructions that wide
// ones would save are a twentieth of what the loop takes and bytes in flight are not what it lacks.
bool costs_little(const KernelAnalysis& k, std::size_t loop, const Instructions& narrow, MemoryDirection direction) {
  double bytes = 0, all = 0, saved = 0; // of a lane; instructions
  for (const std::size_t i : narrow) {
    bytes += k.memory.find(i)->op.bytes;
    saved += 1 - k.memory.find(i)->op.bytes / double{widest};
  }
  for (const std::size_t i : k.instructions_of(loop))
    if (const MemoryAccess* a = k.memory.find(i); a && is_device(a->op) && a->op.direction == direction) all += a->op.bytes;
  return bytes < 0.1 * all || (4 * saved < 0.05 * min_loop_clocks(k, loop) && !starves(k, loop, direction)); // issued in 4 clocks
}

struct Narrow {
  std::size_t found = 0, all = 0;
  int least = widest; // bytes
  Severity severity = Severity::warning;
  MemoryDirection direction = MemoryDirection::load;
  auto operator<=>(const Narrow&) const = default;
};
using NarrowLoops = std::map<Narrow, std::vector<std::pair<std::size_t, Instructions>>>; // loops that are alike

// Loads, or stores, of one innermost loop: noted when at least half of those that every repetition executes are narrow
// (of all, when none is executed every time).
void note_narrow(const KernelAnalysis& k, std::size_t loop, MemoryDirection direction, NarrowLoops& loops) {
  const auto wanted = [&](std::size_t i) {
    const MemoryAccess* a = k.memory.find(i);
    return a && is_device(a->op) && a->op.direction == direction && (!a->op.to_lds || k.target->wide_lds_dma);
  };
  Instructions all = where(steady_instructions(k, loop), wanted);
  if (all.empty()) all = where(k.instructions_of(loop), wanted);
  const Instructions found = where(all, [&](std::size_t i) { return k.memory.find(i)->op.bytes < widest; });
  if (found.empty() || 2 * found.size() < all.size()) return;
  Narrow narrow{.found = found.size(), .all = all.size(), .direction = direction};
  for (const std::size_t i : found) narrow.least = std::min(narrow.least, k.memory.find(i)->op.bytes);
  if (costs_little(k, loop, found, direction)) narrow.severity = Severity::info;
  loops[narrow].emplace_back(loop, found);
}

// sc1 alone is agent scope, sc0 alone workgroup scope (AMDGPUUsage, "Memory Model gfx942").
bool of_system_scope(const KernelAnalysis& k, const MemoryAccess& a) { return k.operands[a.instruction].has("scc") || (a.sc0 && a.sc1); }

// Loads of one block, width and base that lie side by side.
struct Neighbours {
  std::size_t block;
  std::string_view mnemonic;
  std::uint16_t address, base;
  std::size_t version; // how often address and base were written before
  auto operator<=>(const Neighbours&) const = default;
};

} // namespace

void mem001(const KernelAnalysis& k, FindingSink& sink) {
  NarrowLoops loops;
  for (const std::size_t loop : innermost_loops(k)) {
    if (is_waterfall(k, loop) || is_polling(k, loop)) continue; // CF002
    note_narrow(k, loop, MemoryDirection::load, loops);
    note_narrow(k, loop, MemoryDirection::store, loops);
  }
  for (const auto& [narrow, places] : loops) {
    const std::string_view noun = narrow.direction == MemoryDirection::load ? "load" : "store";
    Instructions instructions;
    for (const auto& [loop, list] : places) instructions.insert(instructions.end(), list.begin(), list.end());
    sink.add({.message = fmt::format("{} of the loop's {} {} less than 16 B per lane, the narrowest {} B{}", narrow.found,
                                     plural(narrow.all, noun), narrow.found == 1 ? "moves" : "move", narrow.least,
                                     places.size() == 1 ? "" : fmt::format("; {} such loops", places.size())),
              .evidence = {{"narrow", number(narrow.found), "instructions"},
                           {"all", number(narrow.all), "instructions"},
                           {"narrowest", static_cast<double>(narrow.least), "B"},
                           {"loops", number(places.size()), ""}},
              .instructions = instructions,
              .loop = places.front().first,
              .severity = narrow.severity});
  }
}

void mem002(const KernelAnalysis& k, FindingSink& sink) {
  const Instructions flat = named(k, all_instructions(k), "flat_");
  if (flat.empty()) return;
  const auto in_loops =
      static_cast<std::size_t>(std::count_if(flat.begin(), flat.end(), [&](std::size_t i) { return k.loop_of(i) != nothing; }));
  sink.add({.message = fmt::format("{}, {} in loops", plural(flat.size(), "flat instruction"), in_loops),
            .evidence = {{"flat", number(flat.size()), "instructions"}, {"in_loops", number(in_loops), "instructions"}},
            .instructions = flat});
}

void mem006(const KernelAnalysis& k, FindingSink& sink) {
  Instructions found;
  for (const MemoryAccess& a : k.memory.accesses)
    if (is_device(a.op) && a.op.direction != MemoryDirection::atomic && of_system_scope(k, a)) found.push_back(a.instruction);
  sink.add_counted("accesses",
                   fmt::format("{} of system scope (sc0 sc1; scc on gfx90a)", plural(found.size(), "load or store", "loads or stores")),
                   found);
}

void mem009(const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t loop : innermost_loops(k)) {
    const Instructions loads = where(k.instructions_of(loop), [&](std::size_t i) {
      const MemoryAccess* a = k.memory.find(i);
      return a && a->op.space == MemorySpace::scalar && a->op.direction == MemoryDirection::load;
    });
    sink.add_counted("loads", fmt::format("{} in the loop", plural(loads.size(), "scalar load")), loads, loop);
  }
}

void mem010(const KernelAnalysis& k, FindingSink& sink) {
  std::map<Neighbours, std::map<std::int64_t, std::size_t>> groups; // offset -> load
  for (std::size_t b = 0; b < k.program.blocks.size(); ++b) {
    std::map<std::uint16_t, std::size_t> versions;
    for (std::size_t i = k.program.blocks[b].begin; i < k.program.blocks[b].end; ++i) {
      const MemoryAccess* a = k.memory.find(i);
      if (a && is_device(a->op) && a->op.direction == MemoryDirection::load && !a->op.to_lds && a->op.bytes <= 8 && a->address.count > 0 &&
          k.mnemonic(i).find("d16") == std::string_view::npos) {
        const Operand& last = k.operands[i][k.operands[i].count - 1U];
        const std::uint16_t base = last.is(Operand::Kind::registers) ? last.registers.first : 0;
        groups[{b, k.mnemonic(i), a->address.first, base, versions[a->address.first] + versions[base]}].emplace(
            k.operands[i].value("offset").value_or(0), i);
      }
      for (const RegisterRange w : k.instruction(i).use.writes())
        for (std::uint16_t r = w.first; r < w.first + w.count; ++r) ++versions[r];
    }
  }
  for (const auto& [key, loads] : groups) {
    const int bytes = k.memory.find(loads.begin()->second)->op.bytes;
    Instructions side_by_side;
    for (auto it = loads.begin(); it != loads.end(); ++it)
      if (const auto next = loads.find(it->first + bytes); next != loads.end()) {
        if (side_by_side.empty() || side_by_side.back() != it->second) side_by_side.push_back(it->second);
        side_by_side.push_back(next->second);
      }
    if (side_by_side.empty()) continue;
    const std::size_t count = side_by_side.size();
    sink.add({.message = fmt::format("{} of {} B lie side by side: {} B that fewer, wider loads would bring if the address is aligned",
                                     plural(count, "load"), bytes, count * static_cast<std::size_t>(bytes)),
              .evidence = {{"loads", number(count), "instructions"}, {"bytes_each", static_cast<double>(bytes), "B"}},
              .instructions = side_by_side,
              .severity = k.loop_of(side_by_side.front()) == nothing ? std::optional(Severity::info) : std::nullopt});
  }
}

void mem011(const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t loop : innermost_loops(k)) {
    const Instructions staged = where(k.instructions_of(loop), [&](std::size_t i) {
      const MemoryAccess* a = k.memory.find(i);
      if (!a || !is_device(a->op) || a->op.direction != MemoryDirection::load || a->op.to_lds || a->data.count == 0) return false;
      const bool possible = a->op.bytes == 4 || (k.target->wide_lds_dma && (a->op.bytes == 12 || a->op.bytes == 16));
      if (!possible) return false;
      const Readers readers = readers_of(k.program, i, a->data);
      return readers.complete && !readers.list.empty() && std::all_of(readers.list.begin(), readers.list.end(), [&](const Reader& r) {
               const MemoryAccess* store = k.memory.find(r.instruction);
               return store && store->op.space == MemorySpace::lds && store->op.direction == MemoryDirection::store &&
                      store->data == a->data;
             });
    });
    sink.add_counted("loads",
                     fmt::format("{} only to be written to LDS unchanged", plural(staged.size(), "load brings data", "loads bring data")),
                     staged, loop);
  }
}

} // namespace kiln::isa::rules
