// KernelFacts: classes, widths and waits of assembled kernels.
#include "isa_checks/analysis/facts.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace facts_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

KernelFacts facts_of(std::string_view body, std::string_view arch, const Snippet& snippet = {}) {
  const CodeObject object = assemble_kernel(body, arch, snippet);
  Disassembler disassembler(object.target());
  return kernel_facts(object, object.kernel("k"), disassembler);
}

struct OpCase {
  const char* text;
  MemorySpace space;
  MemoryDirection direction;
  int bytes;
  bool to_lds = false;
};

void check_ops(std::span<const OpCase> cases, std::string_view arch) {
  for (const OpCase& c : cases) {
    CAPTURE(arch);
    CAPTURE(c.text);
    const KernelFacts facts = facts_of(c.text, arch);
    REQUIRE(facts.instructions == 2);
    REQUIRE(facts.memory.size() == 1);
    CHECK(facts.memory.begin()->first == MemoryOp{c.space, c.direction, c.bytes, c.to_lds});
  }
}

using enum MemorySpace;
using enum MemoryDirection;

constexpr OpCase common_ops[] = {
    {"global_load_ubyte v0, v1, s[2:3]", global, load, 1},
    {"global_load_sbyte_d16_hi v0, v1, s[2:3]", global, load, 1},
    {"global_load_ushort v0, v1, s[2:3]", global, load, 2},
    {"global_load_short_d16 v0, v1, s[2:3]", global, load, 2},
    {"global_load_dword v0, v[2:3], off", global, load, 4},
    {"global_load_dwordx2 v[0:1], v[2:3], off", global, load, 8},
    {"global_load_dwordx3 v[0:2], v4, s[2:3]", global, load, 12},
    {"global_load_dwordx4 v[0:3], v4, s[2:3]", global, load, 16},
    {"global_load_dwordx4 a[0:3], v4, s[2:3]", global, load, 16},
    {"global_store_byte v1, v0, s[2:3]", global, store, 1},
    {"global_store_byte_d16_hi v1, v0, s[2:3]", global, store, 1},
    {"global_store_short v1, v0, s[2:3]", global, store, 2},
    {"global_store_dword v1, v0, s[2:3]", global, store, 4},
    {"global_store_dwordx2 v4, v[0:1], s[2:3]", global, store, 8},
    {"global_store_dwordx3 v4, v[0:2], s[2:3]", global, store, 12},
    {"global_store_dwordx4 v4, v[0:3], s[2:3]", global, store, 16},
    {"global_atomic_add v0, v1, s[2:3]", global, atomic, 4},
    {"global_atomic_add_x2 v0, v[2:3], s[2:3]", global, atomic, 8},
    {"global_atomic_add_f32 v0, v1, s[2:3]", global, atomic, 4},
    {"global_atomic_add_f64 v0, v[2:3], s[2:3]", global, atomic, 8},
    {"global_atomic_pk_add_f16 v0, v1, s[2:3]", global, atomic, 4},
    {"global_atomic_cmpswap_x2 v0, v[2:5], s[2:3]", global, atomic, 8},
    {"global_load_lds_dword v0, s[2:3]", global, load, 4, true},
    {"flat_load_dwordx4 v[0:3], v[4:5]", flat, load, 16},
    {"flat_store_short v[4:5], v0", flat, store, 2},
    {"flat_atomic_add v[4:5], v0", flat, atomic, 4},
    {"scratch_load_dword v0, off, s0", scratch, load, 4},
    {"scratch_store_dwordx2 off, v[0:1], s0", scratch, store, 8},
    {"buffer_load_dwordx4 v[0:3], off, s[0:3], 0", buffer, load, 16},
    {"buffer_load_ubyte v0, off, s[0:3], 0", buffer, load, 1},
    {"buffer_load_format_xyz v[0:2], off, s[0:3], 0", buffer, load, 12},
    {"buffer_load_format_d16_xyzw v[0:1], off, s[0:3], 0", buffer, load, 8},
    {"buffer_load_dword off, s[0:3], 0 lds", buffer, load, 4, true},
    {"buffer_store_dwordx4 v[0:3], off, s[0:3], 0", buffer, store, 16},
    {"buffer_atomic_add v0, off, s[0:3], 0", buffer, atomic, 4},
    {"ds_read_u8 v0, v1", lds, load, 1},
    {"ds_read_i16 v0, v1", lds, load, 2},
    {"ds_read_u16_d16_hi v0, v1", lds, load, 2},
    {"ds_read_u8_d16 v0, v1", lds, load, 1},
    {"ds_read_b32 v0, v1", lds, load, 4},
    {"ds_read_b64 v[0:1], v2", lds, load, 8},
    {"ds_read_b96 v[0:2], v3", lds, load, 12},
    {"ds_read_b128 v[0:3], v4", lds, load, 16},
    {"ds_read2_b32 v[0:1], v2 offset1:1", lds, load, 8},
    {"ds_read2_b64 v[0:3], v4 offset1:1", lds, load, 16},
    {"ds_read2st64_b32 v[0:1], v2 offset1:1", lds, load, 8},
    {"ds_read2st64_b64 v[0:3], v4 offset1:1", lds, load, 16},
    {"ds_read_addtid_b32 v0", lds, load, 4},
    {"ds_write_b8 v0, v1", lds, store, 1},
    {"ds_write_b8_d16_hi v0, v1", lds, store, 1},
    {"ds_write_b16 v0, v1", lds, store, 2},
    {"ds_write_b32 v0, v1", lds, store, 4},
    {"ds_write_b64 v0, v[2:3]", lds, store, 8},
    {"ds_write_b96 v0, v[2:4]", lds, store, 12},
    {"ds_write_b128 v0, v[4:7]", lds, store, 16},
    {"ds_write2_b32 v0, v1, v2 offset1:1", lds, store, 8},
    {"ds_write2_b64 v0, v[2:3], v[4:5] offset1:1", lds, store, 16},
    {"ds_write2st64_b64 v0, v[2:3], v[4:5] offset1:1", lds, store, 16},
    {"ds_add_u32 v0, v1", lds, atomic, 4},
    {"ds_add_rtn_u64 v[0:1], v2, v[4:5]", lds, atomic, 8},
    {"ds_add_f64 v0, v[2:3]", lds, atomic, 8},
    {"ds_max_f32 v0, v1", lds, atomic, 4},
    {"ds_wrxchg2_rtn_b32 v[0:1], v2, v3, v4", lds, atomic, 8},
    {"ds_append v0", lds, atomic, 4},
    {"s_load_dword s0, s[2:3], 0x0", scalar, load, 4},
    {"s_load_dwordx2 s[0:1], s[2:3], 0x0", scalar, load, 8},
    {"s_load_dwordx4 s[4:7], s[2:3], 0x0", scalar, load, 16},
    {"s_load_dwordx8 s[8:15], s[2:3], 0x0", scalar, load, 32},
    {"s_load_dwordx16 s[8:23], s[2:3], 0x0", scalar, load, 64},
    {"s_buffer_load_dwordx2 s[0:1], s[4:7], 0x0", scalar, load, 8},
};

constexpr OpCase gfx950_ops[] = {
    {"global_load_lds_dwordx3 v0, s[2:3]", global, load, 12, true},
    {"global_load_lds_dwordx4 v0, s[2:3]", global, load, 16, true},
    {"buffer_load_dwordx4 off, s[0:3], 0 lds", buffer, load, 16, true},
    {"ds_read_b64_tr_b16 v[0:1], v2", lds, load, 8},
    {"ds_read_b64_tr_b8 v[0:1], v2", lds, load, 8},
    {"ds_read_b96_tr_b6 v[0:2], v4", lds, load, 12},
    {"buffer_atomic_pk_add_bf16 v0, off, s[0:3], 0", buffer, atomic, 4},
};

} // namespace

TEST_CASE("the width, space and direction of each memory instruction") {
  for (std::string_view arch : {"gfx942", "gfx950"}) check_ops(common_ops, arch);
  check_ops(gfx950_ops, "gfx950");
}

TEST_CASE("the class of each kind of instruction") {
  using enum InstructionClass;
  struct Case {
    const char* text;
    InstructionClass expected;
  };
  const Case cases[] = {
      {"v_add_f32_e32 v0, v1, v2", valu},
      {"v_fma_f32 v0, v1, v2, v3", valu},
      {"v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf", valu},
      {"v_cvt_pk_fp8_f32 v0, v1, v2", valu},
      {"v_accvgpr_read_b32 v0, a0", valu},
      {"v_readlane_b32 s0, v1, 3", valu},
      {"v_exp_f32_e32 v0, v1", trans},
      {"v_exp_f32_e64 v0, |v1|", trans},
      {"v_rcp_iflag_f32_e32 v0, v1", trans},
      {"v_rsq_f64_e32 v[0:1], v[2:3]", trans},
      {"v_exp_f16_sdwa v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD", trans},
      {"v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]", packed},
      {"v_pk_add_f16 v0, v1, v2", packed},
      {"v_dot2_f32_f16 v0, v1, v2, v3", dot},
      {"v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]", mfma},
      {"v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10", mfma},
      {"s_add_u32 s0, s1, s2", salu},
      {"s_getpc_b64 s[0:1]", salu},
      {"s_load_dword s0, s[2:3], 0x0", smem},
      {"s_memtime s[0:1]", smem},
      {"s_dcache_wb", smem},
      {"global_load_dword v0, v1, s[2:3]", vmem_load},
      {"global_store_dword v1, v0, s[2:3]", vmem_store},
      {"global_atomic_add v0, v1, s[2:3]", vmem_atomic},
      {"ds_bpermute_b32 v0, v1, v2", lds},
      {"ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)", lds},
      {"s_setpc_b64 s[0:1]", branch},
      {"s_waitcnt lgkmcnt(0)", wait},
      {"s_nop 3", nop},
      {"v_nop", nop},
      {"s_barrier", barrier},
      {"s_sleep 1", other},
      {"buffer_inv sc1", other},
      {"buffer_wbl2 sc1", other},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const KernelFacts facts = facts_of(c.text, "gfx942");
    ClassCounts expected{};
    ++expected[static_cast<std::size_t>(c.expected)];
    ++expected[static_cast<std::size_t>(other)]; // s_endpgm
    CHECK(facts.classes == expected);
  }
  for (const char* text : {"ds_bpermute_b32 v0, v1, v2", "ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)", "buffer_inv sc1"})
    CHECK(facts_of(text, "gfx942").memory.empty());
}

TEST_CASE("s_waitcnt operands: every value of every counter") {
  for (int vmcnt = 0; vmcnt < 64; ++vmcnt) {
    const KernelFacts facts = facts_of("s_waitcnt vmcnt(" + std::to_string(vmcnt) + ")", "gfx942");
    CHECK(facts.vmcnt == (vmcnt == 63 ? WaitHistogram{} : WaitHistogram{{vmcnt, 1}})); // 63 waits for nothing
    CHECK(facts.lgkmcnt.empty());
    CHECK(facts.expcnt.empty());
  }
  for (int lgkmcnt = 0; lgkmcnt < 15; ++lgkmcnt)
    CHECK(facts_of("s_waitcnt lgkmcnt(" + std::to_string(lgkmcnt) + ")", "gfx950").lgkmcnt == WaitHistogram{{lgkmcnt, 1}});
  for (int expcnt = 0; expcnt < 7; ++expcnt)
    CHECK(facts_of("s_waitcnt expcnt(" + std::to_string(expcnt) + ")", "gfx950").expcnt == WaitHistogram{{expcnt, 1}});
  const KernelFacts both = facts_of("s_waitcnt vmcnt(17) lgkmcnt(3)\n s_waitcnt vmcnt(0)\n s_waitcnt vmcnt(0)", "gfx942");
  CHECK(both.vmcnt == WaitHistogram{{0, 2}, {17, 1}});
  CHECK(both.lgkmcnt == WaitHistogram{{3, 1}});
}

TEST_CASE("resources come from the note, and without a note from the descriptor and the code") {
  const KernelFacts facts = facts_of(
      "", "gfx942",
      {.vgprs = 133, .accum_offset = 132, .sgprs = 30, .lds_bytes = 4100, .scratch_bytes = 64, .workgroup_size = 512, .spills = 3});
  CHECK(facts.resources.vgprs == 133);
  CHECK(facts.resources.sgprs == 30);
  CHECK(facts.resources.lds_bytes == 4100);
  CHECK(facts.resources.scratch_bytes == 64);
  CHECK(facts.resources.vgpr_spills == 3);
  CHECK(facts.resources.workgroup_size == 512);
  CHECK(facts.resources.kernarg_bytes == 24);
  CHECK(facts.occupancy.waves_per_simd == 2); // 136 registers allow 3, but 8 waves come at once
  const std::string text = R"(
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl k
k:
  v_accvgpr_write_b32 a[5], v0
  v_mfma_f32_16x16x16_f16 a[8:11], v[4:5], v[6:7], a[8:11]
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 44
  .amdhsa_accum_offset 32
  .amdhsa_next_free_sgpr 8
  .amdhsa_group_segment_fixed_size 512
.end_amdhsa_kernel
)";
  const CodeObject object = load_code_object(assemble(text, target_facts("gfx942")));
  Disassembler disassembler(object.target());
  const KernelFacts bare = kernel_facts(object, object.kernel("k"), disassembler);
  CHECK(bare.resources.vgprs == 48); // the descriptor knows the allocation only
  CHECK(bare.resources.agprs == 16); // what is allocated from accum_offset on
  CHECK(bare.resources.lds_bytes == 512);
  CHECK_FALSE(bare.resources.workgroup_size_known);
  CHECK(bare.resources.workgroup_size == 1024);
}

TEST_CASE("the entry for firmware that cannot preload arguments does not count") {
  const KernelFacts facts = facts_of("  s_load_dwordx2 s[8:9], s[0:1], 0x0\n  s_waitcnt lgkmcnt(0)\n  s_branch body\n.p2align 8\nbody:\n"
                                     "  v_mov_b32_e32 v0, s8\n",
                                     "gfx942", {.descriptor = ".amdhsa_user_sgpr_kernarg_preload_length 2"});
  CHECK(facts.instructions == 2); // with s_endpgm
  CHECK(facts.code_bytes == 8);
  CHECK(facts.memory.empty());
  CHECK(facts.lgkmcnt.empty());
}

TEST_CASE("text and JSON") {
  const KernelFacts facts =
      facts_of("global_load_dwordx4 v[0:3], v4, s[2:3]\n global_load_dword v5, v4, s[2:3]\n s_waitcnt vmcnt(0) lgkmcnt(0)", "gfx950",
               {.vgprs = 72, .accum_offset = 72});
  const std::string text = to_text(facts);
  CHECK(text.find("global_load      16B x1, 4B x1\n") != std::string::npos);
  CHECK(text.find("7 waves per SIMD, 7 workgroups per CU, limited by vgprs (8 fewer would allow more)") != std::string::npos);
  CHECK(text.find("vmcnt(0) x1, lgkmcnt(0) x1\n") != std::string::npos);
  const auto json = nlohmann::json::parse(to_json(facts));
  CHECK(json["kernel"] == "k");
  CHECK(json["resources"]["vgprs"] == 72);
  CHECK(json["occupancy"]["waves_per_simd"] == 7);
  CHECK(json["classes"]["vmem_load"] == 2);
  CHECK(json["memory"].size() == 2);
  CHECK(json["waits"]["vmcnt"]["0"] == 1);
}

} // namespace facts_test
