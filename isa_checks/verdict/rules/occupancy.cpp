// OCC001, OCC002, OCC003: what limits the waves of a SIMD.
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa::rules {
namespace {

// Matrix kernels that keep loads in flight run one or two waves on purpose.
bool few_waves_by_design(const KernelAnalysis& k) {
  return !k.matrix.uses.empty() &&
         std::all_of(k.waits.loops.begin(), k.waits.loops.end(), [](const LoopFlight& f) { return f.loads == 0 || f.max_back_bytes > 0; });
}

// Waves that the registers allow which the descriptor allocates. LLVM allocates as many as keep further waves out where LDS or an
// attribute limits them anyway (AMDGPUAsmPrinter.cpp, NumVGPRsForWavesPerEU): then those that are used count.
int waves_by_registers(const KernelAnalysis& k) {
  const int allocated = static_cast<int>(k.kernel.descriptor.vgprs), granule = vgpr_granule;
  const int waves = std::clamp(max_vgprs / std::max(allocated, 1), 0, max_waves_per_simd);
  const int raised_to = max_vgprs / (waves + 1) / granule * granule + granule; // the fewest that allow no more waves
  return allocated == raised_to ? k.occupancy.now.vgpr_waves : std::min(waves, k.occupancy.now.vgpr_waves);
}

} // namespace

void occ001(const KernelAnalysis& k, FindingSink& sink) {
  // 1024 lanes are what a kernel has that says nothing: then waves count one by one, as they do for small workgroups.
  Resources resources = k.facts.resources;
  const bool bound = resources.workgroup_size == max_workgroup_size && !(k.kernel.metadata && k.kernel.metadata->required_workgroup_size);
  if (bound) resources.workgroup_size = wave_size;
  const OccupancyReport occupancy = bound ? occupancy_report(*k.target, resources) : k.occupancy;
  const auto& step = occupancy.vgprs;
  if (!step || step->fewer > vgpr_granule || few_waves_by_design(k)) return;
  const double now = occupancy.now.waves_per_simd;
  sink.add({.message = fmt::format("{} fewer would give {:g} waves per SIMD instead of {:g}",
                                   plural(static_cast<std::size_t>(step->fewer), "VGPR"), step->waves_per_simd, now),
            .evidence = {{"vgprs", static_cast<double>(k.facts.resources.vgprs), "registers"},
                         {"fewer", static_cast<double>(step->fewer), "registers"},
                         {"waves_per_simd", now, ""},
                         {"waves_then", step->waves_per_simd, ""}}});
}

void occ002(const KernelAnalysis& k, FindingSink& sink) {
  const Occupancy& o = k.occupancy.now;
  const int by_registers = waves_by_registers(k);
  if (o.limit != OccupancyLimit::lds || o.waves_per_simd >= by_registers) return;
  sink.add({.message = fmt::format("{} B of LDS ({} allocated) allow {} on a CU, {:g} waves per SIMD; registers allow {}",
                                   k.facts.resources.lds_bytes, o.allocated_lds_bytes,
                                   plural(static_cast<std::size_t>(o.lds_workgroups), "workgroup"), o.waves_per_simd, by_registers),
            .evidence = {{"lds_bytes", static_cast<double>(k.facts.resources.lds_bytes), "B"},
                         {"workgroups_per_cu", static_cast<double>(o.workgroups_per_cu), ""},
                         {"waves_per_simd", o.waves_per_simd, ""},
                         {"vgpr_waves", static_cast<double>(by_registers), ""}}});
}

void occ003(const KernelAnalysis& k, FindingSink& sink) {
  if (k.facts.resources.sgprs <= 100) return;
  sink.add({.message = fmt::format("{} SGPRs; LLVM gives 7 waves per SIMD to more than 100", k.facts.resources.sgprs),
            .evidence = {{"sgprs", static_cast<double>(k.facts.resources.sgprs), "registers"}}});
}

} // namespace kiln::isa::rules
