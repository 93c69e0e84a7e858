// ATM001, ATM002, ATM003: atomic operations.
#include "isa_checks/analysis/readers.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <fmt/format.h>

namespace kiln::isa::rules {
namespace {

bool exchanges(std::string_view m) { // what gives them their use is the old value
  for (const std::string_view part : {"swap", "cmpst", "wrxchg", "append", "consume"})
    if (m.find(part) != std::string_view::npos) return true;
  return false;
}

} // namespace

void atm001(const KernelAnalysis& k, FindingSink& sink) {
  Instructions found;
  for (const MemoryAccess& a : k.memory.accesses) {
    if (!a.returns || exchanges(k.mnemonic(a.instruction))) continue;
    const Readers readers = readers_of(k.program, a.instruction, k.instruction(a.instruction).use.write_list[0]);
    if (readers.complete && readers.list.empty()) found.push_back(a.instruction);
  }
  sink.add_counted("atomics", fmt::format("{} a value that nothing reads", plural(found.size(), "atomic returns", "atomics return")),
                   found);
}

void atm002(const KernelAnalysis& k, FindingSink& sink) {
  Instructions found;
  for (const MemoryAccess& a : k.memory.accesses)
    if (a.op.direction == MemoryDirection::atomic && a.op.space != MemorySpace::lds && a.sc1) found.push_back(a.instruction);
  sink.add_counted("atomics", fmt::format("{} of system scope (sc1)", plural(found.size(), "atomic")), found);
}

void atm003(const KernelAnalysis& k, FindingSink& sink) {
  const Instructions found = where(all_instructions(k), [&](std::size_t i) {
    const auto m = k.mnemonic(i);
    return (m.find("_atomic_cmpswap") != std::string_view::npos || m.starts_with("ds_cmpst")) && k.loop_of(i) != nothing;
  });
  sink.add_counted(
      "atomics",
      fmt::format("{} until nobody interferes", plural(found.size(), "compare-and-swap that repeats", "compare-and-swaps that repeat")),
      found);
}

} // namespace kiln::isa::rules
