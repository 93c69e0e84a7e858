// The text around a test kernel's body.
#include "tests/isa/snippet.h"
#include <fmt/format.h>

namespace kiln::isa::testing {

std::string loop(const std::string& body) { return "loop:\n" + body + "\n s_cbranch_scc1 loop\n"; }
std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text + "\n";
  return all;
}

std::string kernel_text(std::string_view body, std::string_view arch, const Snippet& s) {
  std::string text = fmt::format(
      R"(
.amdgcn_target "amdgcn-amd-amdhsa--{arch}"
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{body}
  s_endpgm
.L{name}_end:
.size {name}, .L{name}_end-{name}
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_private_segment_fixed_size {scratch}
  {enable_private_segment} {enable_scratch}
  .amdhsa_next_free_vgpr {vgprs}
  .amdhsa_accum_offset {accum_offset}
  .amdhsa_next_free_sgpr {sgprs}
{descriptor}
.end_amdhsa_kernel
)",
      fmt::arg("arch", arch), fmt::arg("name", s.name), fmt::arg("body", body), fmt::arg("lds", s.lds_bytes),
      fmt::arg("scratch", s.scratch_bytes),
      // gfx90a has no architected flat scratch, and its assembler another word for this.
      fmt::arg("enable_private_segment",
               arch == "gfx90a" ? ".amdhsa_system_sgpr_private_segment_wavefront_offset" : ".amdhsa_enable_private_segment"),
      fmt::arg("enable_scratch", s.scratch_bytes > 0 ? 1 : 0), fmt::arg("vgprs", s.vgprs), fmt::arg("accum_offset", s.accum_offset),
      fmt::arg("sgprs", s.sgprs), fmt::arg("descriptor", s.descriptor));
  text += fmt::format(R"(
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{arch}
amdhsa.kernels:
  - .name: {name}
    .symbol: {name}.kd
    .vgpr_count: {vgprs}
    .agpr_count: {agprs}
    .sgpr_count: {sgprs}
    .vgpr_spill_count: {spills}
    .sgpr_spill_count: {sgpr_spills}
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: {scratch}
    .kernarg_segment_size: 24
    .kernarg_segment_align: 8
    .wavefront_size: 64
    .max_flat_workgroup_size: {workgroup}
    .args:
      - {{.name: x, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
      - {{.name: count, .offset: 8, .size: 4, .value_kind: by_value}}
      - {{.offset: 16, .size: 4, .value_kind: hidden_block_count_x}}
...
.end_amdgpu_metadata
)",
                      fmt::arg("arch", arch), fmt::arg("name", s.name), fmt::arg("vgprs", s.vgprs),
                      fmt::arg("agprs", s.vgprs > s.accum_offset && s.vgprs > 256 ? s.vgprs - s.accum_offset : 0),
                      fmt::arg("sgprs", s.sgprs), fmt::arg("spills", s.spills), fmt::arg("sgpr_spills", s.sgpr_spills),
                      fmt::arg("lds", s.lds_bytes), fmt::arg("scratch", s.scratch_bytes), fmt::arg("workgroup", s.workgroup_size));
  return text;
}

CodeObject assemble_kernel(std::string_view body, std::string_view arch, const Snippet& snippet) {
  const TargetFacts& target = target_facts(arch);
  return load_code_object(assemble(kernel_text(body, arch, snippet), target), "snippet");
}

} // namespace kiln::isa::testing
