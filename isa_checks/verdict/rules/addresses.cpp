// MEM003, MEM004, MEM005, MEM008: where memory instructions go, and what their addresses cost.
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <map>

namespace kiln::isa::rules {
namespace {

constexpr int line = 128; // bytes

bool uniform(const Coalescing& c) { return c.step == 0; }

// Accesses of one block and direction whose lanes lie equally far apart (otherwise: with the same address registers) are
// taken to use one another's lines, as the members of a structure do.
using Sharing = std::tuple<std::size_t, MemoryDirection, std::int64_t>;

// The loop moves the address by less than a line, so that the next repetition finds its line in the cache.
bool walks_the_line(const KernelAnalysis& k, const MemoryAccess& a) {
  if (a.loop == nothing) return false;
  const Operands& o = k.operands[a.instruction];
  RegisterRange base = a.address;
  if (a.saddr) base = o[o.count - 1U].registers;
  for (const std::size_t i : k.instructions_of(a.loop))
    for (const RegisterRange range : {a.address, base})
      if (k.instruction(i).use.writes_any({range.first, 1}) && k.instruction(i).use.reads_any({range.first, 1}))
        for (const Operand& operand : k.operands[i].all())
          if (operand.is(Operand::Kind::number) && operand.number > 0 && operand.number < line) return true;
  return false;
}

bool is_address_work(std::string_view m) {
  return m.starts_with("v_lshl_add_u64") || m.starts_with("v_add_co_u32") || m.starts_with("v_addc_co_u32") ||
         m.starts_with("v_lshlrev_b64") || m.starts_with("v_mad_u64_u32") || m.starts_with("v_mad_i64_i32") ||
         m.starts_with("v_ashrrev_i32");
}

} // namespace

void mem003(const KernelAnalysis& k, FindingSink& sink) {
  std::map<Sharing, int> useful;
  const auto key = [&](const MemoryAccess& a) {
    const std::int64_t apart =
        a.coalescing->step ? std::int64_t{1} << 32 | static_cast<std::uint32_t>(*a.coalescing->step) : a.address.first;
    return Sharing{k.program.block_of(a.instruction), a.op.direction, apart};
  };
  for (const MemoryAccess& a : k.memory.accesses)
    if (a.coalescing) useful[key(a)] += a.coalescing->useful_bytes;
  for (const MemoryAccess& a : k.memory.accesses) {
    if (!a.coalescing || a.op.bytes < 4 || uniform(*a.coalescing) || a.op.direction == MemoryDirection::atomic) continue;
    const Coalescing& c = *a.coalescing;
    const int wanted = std::min(useful[key(a)], c.lines128 * line);
    const int needed = std::max(1, (wanted + line - 1) / line);
    if (c.lines128 <= 2 * needed) continue;
    const bool reused = walks_the_line(k, a);
    const double efficiency = 100.0 * wanted / (line * c.lines128);
    sink.add({.message = fmt::format("a wave touches {} of 128 B ({} of 64 B) for {} B that it uses: {:.0f} %{}{}",
                                     plural(static_cast<std::size_t>(c.lines128), "line"), c.lines64, wanted, efficiency,
                                     reused ? "; later repetitions use the rest, if it is still cached" : "",
                                     a.lanes_known ? "" : " (all lanes taken to be on)"),
              .evidence = {{"lines128", static_cast<double>(c.lines128), ""},
                           {"lines64", static_cast<double>(c.lines64), ""},
                           {"useful_bytes", static_cast<double>(wanted), "B"},
                           {"efficiency", efficiency, "%"}},
              .instructions = {a.instruction},
              .severity = reused ? std::optional(Severity::info) : std::nullopt});
  }
}

void mem004(const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t loop : innermost_loops(k)) {
    const Instructions in_loop = k.instructions_of(loop);
    const Instructions found = where(in_loop, [&](std::size_t i) {
      const MemoryAccess* a = k.memory.find(i);
      if (!a || a->op.space != MemorySpace::global || a->saddr || a->address.count != 2) return false;
      return std::any_of(in_loop.begin(), in_loop.end(),
                         [&](std::size_t j) { return is_address_work(k.mnemonic(j)) && k.instruction(j).use.writes_any(a->address); });
    });
    sink.add_counted("accesses", fmt::format("{} with a 64-bit vector address that the loop computes", plural(found.size(), "access")),
                     found, loop);
  }
}

void mem005(const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t loop : innermost_loops(k)) {
    const Instructions in_loop = k.instructions_of(loop);
    const Instructions work = where(in_loop, [&](std::size_t i) { return is_address_work(k.mnemonic(i)); });
    const Instructions accesses = where(in_loop, [&](std::size_t i) {
      const MemoryAccess* a = k.memory.find(i);
      return a && is_device(a->op);
    });
    if (accesses.empty() || work.size() < 2 * accesses.size()) continue;
    sink.add(
        {.message =
             fmt::format("{} of 64-bit arithmetic for {}", plural(work.size(), "instruction"), plural(accesses.size(), "memory access")),
         .evidence = {{"address_instructions", number(work.size()), "instructions"}, {"accesses", number(accesses.size()), "instructions"}},
         .instructions = work,
         .loop = loop});
  }
}

void mem008(const KernelAnalysis& k, FindingSink& sink) {
  constexpr int channel_step = 512; // bytes: ROCm's MI300X workload guide warns of multiples
  for (const MemoryAccess& a : k.memory.accesses) {
    if (!a.coalescing || !a.coalescing->step) continue;
    const std::int64_t step = std::abs(std::int64_t{*a.coalescing->step});
    if (step == 0 || step % channel_step != 0) continue;
    sink.add({.message = fmt::format("lanes lie {} B apart, a multiple of {}", step, channel_step),
              .evidence = {{"step", static_cast<double>(step), "B"}},
              .instructions = {a.instruction}});
  }
}

} // namespace kiln::isa::rules
