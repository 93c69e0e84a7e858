// LDS001, LDS002, LDS003: accesses of LDS.
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>

namespace kiln::isa::rules {
namespace {

bool single(std::string_view m) { // one value of 4 or 8 bytes
  for (const std::string_view name : {"ds_read_b32", "ds_read_b64", "ds_write_b32", "ds_write_b64"})
    if (m == name) return true;
  return false;
}

// Ways of a conflict that is a missing padding, not a layout that somebody chose: aiter's kernels stay below it.
constexpr int never_hidden = 16;

} // namespace

void lds001(const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t loop : innermost_loops(k))
    for (const std::size_t b : k.program.loops[loop].blocks) {
      std::map<std::pair<std::string_view, std::uint16_t>, std::map<std::int64_t, std::size_t>> groups; // offset -> access
      Instructions found;
      const auto close = [&] {
        for (const auto& [key, accesses] : groups) {
          const int bytes = k.memory.find(accesses.begin()->second)->op.bytes;
          for (const auto& [offset, i] : accesses)
            if (accesses.contains(offset + bytes) || accesses.contains(offset - bytes)) found.push_back(i);
        }
        groups.clear();
      };
      for (std::size_t i = k.program.blocks[b].begin; i < k.program.blocks[b].end; ++i) {
        if (const MemoryAccess* a = k.memory.find(i); a && single(k.mnemonic(i)) && a->address.count > 0)
          groups[{k.mnemonic(i), a->address.first}].emplace(k.operands[i].value("offset").value_or(0), i);
        for (const auto& [key, accesses] : groups)
          if (k.instruction(i).use.writes_any({key.second, 1})) {
            close();
            break;
          }
      }
      close();
      sink.add_counted("accesses", fmt::format("{} of LDS lie side by side and could be fewer, wider ones", plural(found.size(), "access")),
                       found, loop);
    }
}

void lds002(const KernelAnalysis& k, FindingSink& sink) {
  std::vector<const MemoryAccess*> conflicts; // the worst first: it is the one that is shown
  for (const MemoryAccess& a : k.memory.accesses)
    if (a.banks && a.banks->needed >= 2 * a.banks->ideal && a.banks->ideal > 0) conflicts.push_back(&a);
  std::ranges::stable_sort(conflicts, std::ranges::greater{}, [](const MemoryAccess* a) { return a->banks->needed - a->banks->ideal; });
  for (const MemoryAccess* conflict : conflicts) {
    const MemoryAccess& a = *conflict;
    const std::uint32_t extra = a.banks->needed - a.banks->ideal;
    const auto m = k.mnemonic(a.instruction);
    const int width = m.starts_with("ds_read2") || m.starts_with("ds_write2") ? a.op.bytes / 2 : a.op.bytes; // two accesses
    const bool transposes = m.find("_tr_") != std::string_view::npos; // nobody has published what these see
    const std::string_view source =
        transposes ? "assumed" : lds_bank_source(k.target->lds_read_banks, a.op.direction == MemoryDirection::store, width);
    // LDS that is busy half as long as something else hides its passes behind that.
    const bool hidden = 2 * issue_of(k, a.loop).clocks_of(Pipe::lds) < min_loop_clocks(k, a.loop);
    const bool unsure = source == "assumed" && (transposes || a.banks->worst < never_hidden); // so many meet in any layout of banks
    const bool little = (hidden && a.banks->worst < never_hidden) || (a.loop == nothing && extra < 16);
    sink.add({.message = fmt::format("{}-way bank conflict of {} B per lane: {} passes where {} would do, by {} banks{}", a.banks->worst,
                                     width, a.banks->needed, a.banks->ideal, source, a.lanes_known ? "" : " (all lanes taken to be on)"),
              .evidence = {{"passes", static_cast<double>(a.banks->needed), "cycles"},
                           {"ideal", static_cast<double>(a.banks->ideal), "cycles"},
                           {"extra", static_cast<double>(extra), "cycles"},
                           {"worst", static_cast<double>(a.banks->worst), ""}},
              .instructions = {a.instruction},
              .severity = little || unsure ? std::optional(Severity::info) : std::nullopt,
              .cause = std::string(m)});
  }
}

void lds003(const KernelAnalysis& k, FindingSink& sink) {
  if (!k.target->lds_transpose_reads) return;
  for (const std::size_t loop : innermost_loops(k)) {
    const Instructions in_loop = k.instructions_of(loop);
    if (named(k, in_loop, "v_mfma_").empty()) continue;
    const Instructions narrow = where(in_loop, [&](std::size_t i) {
      const auto m = k.mnemonic(i);
      return m.starts_with("ds_read_u16") || m.starts_with("ds_read_u8") || m.starts_with("ds_read_i8");
    });
    if (narrow.size() >= 4)
      sink.add_counted("reads", fmt::format("{} of 1 or 2 B beside matrix operations", plural(narrow.size(), "LDS read")), narrow, loop);
  }
}

} // namespace kiln::isa::rules
