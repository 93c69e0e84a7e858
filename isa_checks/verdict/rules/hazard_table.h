// The wait states that gfx90a, gfx942 and gfx950 need between two instructions and do not make themselves.
#pragma once
#include "isa_checks/analysis/kernel_analysis.h"
#include <optional>
#include <string_view>

namespace kiln::isa::rules {

inline constexpr int most_hazard_states = 20;        // no entry needs more,
inline constexpr int most_states_without_matrix = 5; // and none that is not about matrix results more than this

struct Hazard {
  std::string_view name;
  int states = 0; // between the two: an instruction is one, s_nop N is N + 1
};

// The largest that applies, or nothing. LLVM's GCNHazardRecognizer is the source; only entries that compilers' code confirms.
std::optional<Hazard> hazard_between(const KernelAnalysis& kernel, std::size_t producer, std::size_t consumer);

// What an instruction leaves behind that some entry is about, and what it could suffer from, as bits: where the two have
// none in common, hazard_between has nothing to say. Nearly all pairs are told apart by this alone.
std::uint8_t hazards_made(const KernelAnalysis& kernel, std::size_t producer);
std::uint8_t hazards_met(const KernelAnalysis& kernel, std::size_t consumer);

} // namespace kiln::isa::rules
