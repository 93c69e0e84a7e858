// BND001, BND003, BND004: LDS, registers and alignment beyond what the kernel descriptor allocates. BND002 is in launch.cpp.
#include "isa_checks/analysis/dataflow/wave_uniform.h"
#include "isa_checks/analysis/lanes/lds_bytes.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa::rules {
namespace {

// The first wave, which every workgroup has, and the last one of a workgroup as large as the kernel was compiled for. 1024 lanes that
// nobody required are a bound: most workgroups are smaller.
std::vector<int> waves_to_look_at(const KernelAnalysis& k) {
  const Resources& r = k.facts.resources;
  const bool required = k.kernel.metadata && k.kernel.metadata->required_workgroup_size;
  const int waves = r.workgroup_size / wave_size;
  if (!r.workgroup_size_known || waves < 2 || (!required && r.workgroup_size == max_workgroup_size)) return {0};
  return {0, waves - 1};
}

// Those of at least so many bytes that every wave comes to.
Instructions lds_accesses(const KernelAnalysis& k, int min_bytes) {
  Instructions result;
  for (const MemoryAccess& a : k.memory.accesses)
    if (a.op.space == MemorySpace::lds && a.op.bytes >= min_bytes) result.push_back(a.instruction);
  if (result.empty()) return result;
  const std::vector<bool> shared = blocks_of_all_waves(k.program);
  return where(result, [&](std::size_t i) { return shared[k.program.block_of(i)]; });
}

template <class Visit> void each_lds_access(const KernelAnalysis& k, int min_bytes, Visit visit) {
  const Instructions accesses = lds_accesses(k, min_bytes);
  if (accesses.empty()) return;
  const std::vector<int> waves = waves_to_look_at(k);
  const std::vector<LaneAddresses> addresses = lane_addresses_of(waves, k.program, k.operands, k.kernel, k.facts.resources);
  for (const std::size_t i : accesses) {
    std::vector<LdsBytes> bytes;
    for (std::size_t n = 0; n < waves.size(); ++n)
      add_lds_bytes(k.program, k.operands, addresses[n], waves[n], i, bytes, std::min(k.facts.resources.workgroup_size, wave_size));
    if (!bytes.empty()) visit(i, bytes);
  }
}

} // namespace

void bnd001(const KernelAnalysis& k, FindingSink& sink) {
  const auto allocated = static_cast<std::uint32_t>(k.facts.resources.lds_bytes);
  if (allocated == 0) return; // what the launch allocates is not known here
  each_lds_access(k, 1, [&](std::size_t i, const std::vector<LdsBytes>& bytes) {
    const auto& last = *std::ranges::max_element(bytes, {}, &LdsBytes::end);
    if (last.end <= allocated) return;
    // An array that the launch allocates lies wholly behind what the descriptor does.
    const bool inside = std::ranges::any_of(bytes, [&](const LdsBytes& b) { return b.begin < allocated; });
    if (!inside && last.end <= static_cast<std::uint32_t>(k.target->lds_bytes)) return;
    const bool always = std::ranges::any_of(bytes, [&](const LdsBytes& b) { return b.wave == 0 && b.end > allocated; });
    sink.add({.message = fmt::format("touches LDS up to byte {} in wave {}, the kernel has {}", last.end, last.wave, allocated),
              .evidence = {{"end", static_cast<double>(last.end), "B"}, {"allocated", static_cast<double>(allocated), "B"}},
              .instructions = {i},
              .severity = always ? Severity::error : Severity::warning,
              .cause = "beyond"});
  });
}

void bnd003(const KernelAnalysis& k, FindingSink& sink) {
  const KernelDescriptor& d = k.kernel.descriptor;
  const int total = static_cast<int>(d.vgprs), arch = std::min(total, static_cast<int>(d.accum_offset));
  for (const std::size_t i : all_instructions(k)) {
    int needed = 0; // of the unified file
    for (const auto& list : {k.instruction(i).use.reads(), k.instruction(i).use.writes()})
      for (const RegisterRange r : list)
        if (r.first < reg::agpr) needed = std::max(needed, r.first + r.count - reg::vgpr);
        else if (r.vector()) needed = std::max(needed, arch + r.first + r.count - reg::agpr);
    if (needed <= total) continue;
    sink.add({.message = fmt::format("needs {} vector registers, the descriptor allocates {}", needed, total),
              .evidence = {{"needed", static_cast<double>(needed), "registers"}, {"allocated", static_cast<double>(total), "registers"}},
              .instructions = {i},
              .cause = "registers"});
  }
}

void bnd004(const KernelAnalysis& k, FindingSink& sink) {
  each_lds_access(k, 12, [&](std::size_t i, const std::vector<LdsBytes>& bytes) {
    const auto m = k.mnemonic(i);
    const std::uint32_t alignment = m.starts_with("ds_read_b128") || m.starts_with("ds_write_b128") ? 16
                                    : m.starts_with("ds_read_b96") || m.starts_with("ds_write_b96") ? 4
                                                                                                    : 1;
    const auto at = std::ranges::find_if(bytes, [&](const LdsBytes& b) { return b.begin % alignment != 0; });
    if (at == bytes.end()) return;
    sink.add({.message = fmt::format("LDS byte {:#x} is no multiple of the {} B that {} is made for", at->begin, alignment, m),
              .evidence = {{"address", static_cast<double>(at->begin), "B"}, {"alignment", static_cast<double>(alignment), "B"}},
              .instructions = {i},
              .cause = "alignment"});
  });
}

} // namespace kiln::isa::rules
