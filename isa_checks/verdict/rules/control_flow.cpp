// CF001 to CF005: loops over lanes, divergence, calls, code size.
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa::rules {
void cf001(const KernelAnalysis& k, FindingSink& sink) {
  for (std::size_t loop = 0; loop < k.program.loops.size(); ++loop) {
    const Instructions in_loop = k.instructions_of(loop);
    if (!ends_on_exec(k, loop) || is_waterfall(k, loop)) continue;
    const Instructions leaving =
        where(in_loop, [&](std::size_t i) { return k.mnemonic(i) == "s_andn2_b64" && k.instruction(i).use.writes_any({reg::exec, 2}); });
    sink.add_counted("exits", "lanes leave the loop one by one; the wave repeats until the last has left", leaving, loop);
  }
}

void cf002(const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t loop : innermost_loops(k)) {
    if (!is_waterfall(k, loop)) continue;
    const Instructions reads = named(k, k.instructions_of(loop), "v_readfirstlane_b32");
    sink.add({.message = fmt::format("repeats once for each different value of {}, up to 64 times", plural(reads.size(), "register")),
              .evidence = {{"registers", number(reads.size()), "registers"}},
              .instructions = reads,
              .loop = loop});
  }
}

void cf003(const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t loop : innermost_loops(k)) {
    const Instructions found = exec_changes(k, k.instructions_of(loop));
    if (found.empty() || is_waterfall(k, loop)) continue;
    sink.add_counted("branches", fmt::format("{} that lanes may take differently", plural(found.size(), "branch")), found, loop);
  }
}

void cf004(const KernelAnalysis& k, FindingSink& sink) {
  const Instructions calls =
      where(all_instructions(k), [&](std::size_t i) { return k.instruction(i).flow == Flow::call && k.loop_of(i) != nothing; });
  sink.add_counted("calls", fmt::format("{} in loops", plural(calls.size(), "call")), calls);
}

void cf005(const KernelAnalysis& k, FindingSink& sink) {
  const auto cache = static_cast<std::uint64_t>(k.target->instruction_cache_bytes);
  for (const std::size_t loop : innermost_loops(k)) {
    std::uint64_t bytes = 0;
    for (const std::size_t i : k.instructions_of(loop)) bytes += k.instruction(i).size;
    if (bytes > cache)
      sink.add({.message = fmt::format("the loop has {} B of code, the instruction cache {} B for two CUs", bytes, cache),
                .evidence = {{"code_bytes", static_cast<double>(bytes), "B"}, {"cache_bytes", static_cast<double>(cache), "B"}},
                .loop = loop});
  }
}

} // namespace kiln::isa::rules
