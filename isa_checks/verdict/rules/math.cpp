// MTH001 to MTH006: arithmetic that expands into many instructions, or uses half of what an instruction can do.
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace kiln::isa::rules {
namespace {

bool has_literal(const KernelAnalysis& k, std::size_t i, std::uint32_t bits) {
  const auto all = k.operands[i].all();
  return std::any_of(all.begin(), all.end(),
                     [bits](const Operand& o) { return o.is(Operand::Kind::number) && static_cast<std::uint32_t>(o.number) == bits; });
}

Instructions with_literal(const KernelAnalysis& k, const Instructions& list, std::uint32_t bits) {
  return where(list, [&](std::size_t i) { return has_literal(k, i, bits); });
}

// Instructions of the innermost loops; of the whole kernel when it has no loops.
Instructions hot_instructions(const KernelAnalysis& k) {
  if (k.program.loops.empty()) return all_instructions(k);
  return where(all_instructions(k), [&](std::size_t i) {
    const std::size_t loop = k.loop_of(i);
    return loop != nothing && k.is_innermost(loop);
  });
}

// Two instructions of one name, one after the other, that a packed one could be: registers 2n and 2n + 1.
Instructions unpacked_pairs(const KernelAnalysis& k, const Instructions& list, std::span<const std::string_view> names, bool halves) {
  Instructions found;
  for (std::size_t n = 1; n < list.size(); ++n) {
    const std::size_t i = list[n - 1], j = list[n];
    const std::string_view name = base_mnemonic(k.mnemonic(i));
    if (j != i + 1 || name != base_mnemonic(k.mnemonic(j)) || std::find(names.begin(), names.end(), name) == names.end()) continue;
    const Operands &a = k.operands[i], &b = k.operands[j];
    if (!a.modifiers.empty() || !b.modifiers.empty() || a.count != b.count || !a[0].is(Operand::Kind::registers) ||
        !b[0].is(Operand::Kind::registers))
      continue;
    const bool neighbours = halves || (a[0].registers.first % 2 == 0 && b[0].registers.first == a[0].registers.first + 1);
    if (!neighbours || a[0].registers == b[0].registers || k.instruction(j).use.reads_any(a[0].registers)) continue;
    if (!found.empty() && found.back() == i) continue;
    found.push_back(i);
    found.push_back(j);
  }
  return found;
}

void pairs(const KernelAnalysis& k, FindingSink& sink, std::span<const std::string_view> names, bool halves, std::string_view packed) {
  for (const std::size_t loop : innermost_loops(k)) {
    const Instructions found = unpacked_pairs(k, k.instructions_of(loop), names, halves);
    if (!found.empty())
      sink.add({.message = fmt::format("{} that {} would do in one instruction each", plural(found.size() / 2, "pair"), packed),
                .evidence = {{"pairs", number(found.size() / 2), ""}},
                .instructions = found,
                .loop = loop});
  }
}

} // namespace

void mth001(const KernelAnalysis& k, FindingSink& sink) {
  const Instructions divisions =
      where(all_instructions(k), [&](std::size_t i) { return base_mnemonic(k.mnemonic(i)) == "v_div_fixup_f32"; });
  if (divisions.empty()) return;
  sink.add({.message = fmt::format("{} to the last bit, about 10 instructions each", plural(divisions.size(), "f32 division")),
            .evidence = {{"divisions", number(divisions.size()), ""}},
            .instructions = divisions});
}

void mth002(const KernelAnalysis& k, FindingSink& sink) {
  constexpr std::uint32_t two_to_64 = 0x5f7ffffc; // the factor of LLVM's expansion of 64-bit division
  const Instructions hot = hot_instructions(k);
  Instructions found = named(k, hot, "v_rcp_iflag_f32");
  for (const std::size_t i : with_literal(k, hot, two_to_64)) found.push_back(i);
  if (found.empty()) return;
  const Instructions high = named(k, hot, "v_mul_hi_u32");
  sink.add({.message = fmt::format("{} by numbers that are not known when compiling{}", plural(found.size(), "integer division"),
                                   k.program.loops.empty() ? "" : ", in innermost loops"),
            .evidence = {{"divisions", number(found.size()), ""}, {"v_mul_hi_u32", number(high.size()), "instructions"}},
            .instructions = found});
}

void mth003(const KernelAnalysis& k, FindingSink& sink) {
  const Instructions all = all_instructions(k);
  const Instructions up = named(k, all, "v_cvt_f64_f32"), down = named(k, all, "v_cvt_f32_f64");
  const Instructions work =
      where(all, [&](std::size_t i) { return k.mnemonic(i).starts_with("v_") && k.mnemonic(i).find("_f64") != std::string_view::npos; });
  if (up.empty() || down.empty()) return;
  sink.add({.message = fmt::format("{}, with {} from f32 and {} to it", plural(work.size(), "f64 instruction"),
                                   plural(up.size(), "conversion"), plural(down.size(), "conversion")),
            .evidence = {{"f64", number(work.size()), "instructions"},
                         {"widened", number(up.size()), "instructions"},
                         {"rounded", number(down.size()), "instructions"}},
            .instructions = up});
}

void mth004(const KernelAnalysis& k, FindingSink& sink) {
  struct Expansion {
    std::string_view name;
    std::array<std::uint32_t, 2> literals; // both occur in LLVM's or the device library's expansion and hardly elsewhere
  };
  static constexpr Expansion expansions[] = {{"exp", {0x3fb8aa3b, 0x32a5705f}},
                                             {"log", {0x3f317217, 0x3377d1cf}},
                                             {"log10", {0x3e9a209a, 0x3284fbcf}},
                                             {"sqrt", {0xf800000, 0x4f800000}}};
  const Instructions all = all_instructions(k);
  for (const Expansion& e : expansions) {
    const Instructions first = with_literal(k, all, e.literals[0]), second = with_literal(k, all, e.literals[1]);
    if (first.empty() || second.empty()) continue;
    const std::size_t count = std::max(first.size(), second.size());
    sink.add({.message = fmt::format("accurate {}, of the order of a dozen instructions", e.name),
              .evidence = {{"literals", number(count), "instructions"}},
              .instructions = first});
  }
}

void mth005(const KernelAnalysis& k, FindingSink& sink) {
  static constexpr std::array<std::string_view, 3> names{"v_add_f32", "v_mul_f32", "v_fma_f32"};
  pairs(k, sink, names, false, "v_pk_*_f32");
}

void mth006(const KernelAnalysis& k, FindingSink& sink) {
  static constexpr std::array<std::string_view, 3> names{"v_add_f16", "v_mul_f16", "v_fma_f16"};
  pairs(k, sink, names, true, "v_pk_*_f16");
}

} // namespace kiln::isa::rules
