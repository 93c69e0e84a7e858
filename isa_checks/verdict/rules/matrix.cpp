// MFM001 to MFM005: matrix operations.
#include "isa_checks/analysis/readers.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace kiln::isa::rules {
namespace {

bool bound_by_matrix(const KernelAnalysis& k, std::size_t loop) {
  const LoopIssue& issue = issue_of(k, loop);
  return issue.busiest == Pipe::matrix && !issue.memory_bound();
}

} // namespace

void mfm001(const KernelAnalysis& k, FindingSink& sink) {
  std::map<std::string_view, Instructions> kinds;
  for (const MatrixUse& use : k.matrix.uses)
    if (!doubled_shape(k.mnemonic(use.instruction), *k.target).empty())
      kinds[base_mnemonic(k.mnemonic(use.instruction))].push_back(use.instruction);
  for (const auto& [name, list] : kinds) {
    const bool bound = std::any_of(list.begin(), list.end(), [&](std::size_t i) { return bound_by_matrix(k, k.loop_of(i)); });
    sink.add({.message = fmt::format("{} of {} at half the rate of {}{}", list.size(), name, doubled_shape(name, *k.target),
                                     bound ? "" : "; something else takes longer where they stand"),
              .evidence = {{"instructions", number(list.size()), "instructions"}},
              .instructions = list,
              .severity = bound ? std::nullopt : std::optional(Severity::info)});
  }
}

void mfm002(const KernelAnalysis& k, FindingSink& sink) {
  Instructions found;
  for (const std::size_t i : where(all_instructions(k), [&](std::size_t n) {
         return k.mnemonic(n).starts_with("v_cvt_f32_f16") || k.mnemonic(n).starts_with("v_cvt_f32_bf16");
       }))
    for (const Reader& r : readers_of(k.program, i, k.operands[i][0].registers, 256).list) {
      const MatrixUse* use = k.matrix.find(r.instruction);
      if (use && (use->shape.input == "f32" || use->shape.input == "xf32") &&
          std::find(found.begin(), found.end(), r.instruction) == found.end())
        found.push_back(r.instruction);
    }
  std::sort(found.begin(), found.end());
  sink.add_counted("instructions",
                   fmt::format("{} in f32 on values that were converted from 16 bits", plural(found.size(), "matrix operation")), found);
}

void mfm003(const KernelAnalysis& k, FindingSink& sink) {
  constexpr int many = 4;         // wait states
  constexpr double little = 0.02; // of the loop's time
  struct Stall {
    std::set<std::size_t> nops; // several results may wait in one s_nop
    int states = 0;
  };
  std::map<std::size_t, Stall> loops;
  for (const MatrixUse& use : k.matrix.uses)
    if (use.loop != nothing && use.nop_states >= many) {
      Stall& stall = loops[use.loop];
      for (std::size_t i = use.instruction + 1; i < use.states_end; ++i)
        if (nop_states(k.instruction(i)) > 0) stall.nops.insert(i);
      stall.states = std::max(stall.states, use.nop_states);
    }
  for (const auto& [loop, stall] : loops) {
    int all = 0;
    for (const std::size_t i : stall.nops) all += nop_states(k.instruction(i));
    const double share = 4.0 * all / min_loop_clocks(k, loop); // a wait state is 4 clocks
    sink.add({.message = fmt::format("{} in s_nop until a matrix result may be read ({}, {:.1f} % of the loop's time at the least)",
                                     plural(static_cast<std::size_t>(stall.states), "wait state"), plural(stall.nops.size(), "s_nop"),
                                     100 * share),
              .evidence = {{"states", static_cast<double>(stall.states), "wait states"},
                           {"nops", number(stall.nops.size()), ""},
                           {"share", 100 * share, "%"}},
              .instructions = Instructions(stall.nops.begin(), stall.nops.end()),
              .loop = loop,
              .severity = share < little ? std::optional(Severity::info) : std::nullopt});
  }
}

void mfm004(const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t loop : innermost_loops(k)) {
    std::vector<const MatrixUse*> uses;
    for (const MatrixUse& use : k.matrix.uses)
      if (use.loop == loop) uses.push_back(&use);
    const bool one = uses.size() >= 2 && std::all_of(uses.begin(), uses.end(),
                                                     [&](const MatrixUse* u) { return u->result == uses[0]->result && u->next_in_chain; });
    if (!one) continue;
    Instructions list;
    for (const MatrixUse* use : uses) list.push_back(use->instruction);
    sink.add({.message = fmt::format("all {} accumulate onto the same registers", plural(list.size(), "matrix operation")),
              .evidence = {{"instructions", number(list.size()), "instructions"},
                           {"clocks", static_cast<double>(uses[0]->shape.cycles()), "cycles"}},
              .instructions = list,
              .loop = loop});
  }
}

void mfm005(const KernelAnalysis& k, FindingSink& sink) {
  constexpr std::size_t many = 8; // multiply-adds a load
  for (const std::size_t loop : innermost_loops(k)) {
    const Instructions in_loop = k.instructions_of(loop);
    const auto of_class = [&](InstructionClass c) {
      return where(in_loop, [&](std::size_t i) { return k.instruction(i).kind == c; }).size();
    };
    const Instructions fused = where(in_loop, [&](std::size_t i) {
      const auto m = k.mnemonic(i);
      return m.starts_with("v_fma") || m.starts_with("v_pk_fma");
    });
    const std::size_t loads = where(in_loop, [&](std::size_t i) {
                                const MemoryAccess* a = k.memory.find(i);
                                return a && a->op.direction == MemoryDirection::load && a->op.space != MemorySpace::scalar;
                              }).size();
    if (loads == 0 || fused.size() < many * loads || of_class(InstructionClass::mfma) + of_class(InstructionClass::dot) > 0) continue;
    sink.add({.message = fmt::format("{} on the vector ALU for {}", plural(fused.size(), "multiply-add"), plural(loads, "load")),
              .evidence = {{"multiply_adds", number(fused.size()), "instructions"}, {"loads", number(loads), "instructions"}},
              .instructions = fused,
              .loop = loop});
  }
}

} // namespace kiln::isa::rules
