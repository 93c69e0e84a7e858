// The capabilities of machine/arch.h are those of LLVM's assembler: each one's instruction assembles exactly where the table has it.
#include "isa_checks/decode/assembler.h"
#include "isa_checks/error.h"
#include "isa_checks/target/matrix_shape.h"
#include <doctest/doctest.h>
#include <string>

namespace target_test {
using namespace kiln::isa;

namespace {

bool assembles(const TargetFacts& target, const char* instruction) {
  try {
    assemble(std::string(instruction) + "\n", target);
    return true;
  } catch (const Error&) {
    return false;
  }
}

struct Capability {
  const char* instruction;
  bool (*has)(const TargetFacts&);
};

constexpr Capability capabilities[] = {
    {"v_add_f32 v0, v1, v2", [](const TargetFacts&) { return true; }},
    {"global_load_lds_dwordx4 v[0:1], off", [](const TargetFacts& t) { return t.wide_lds_dma; }},
    {"buffer_load_dwordx3 v0, s[0:3], 0 offen lds", [](const TargetFacts& t) { return t.wide_lds_dma; }},
    {"ds_read_b64_tr_b16 v[0:1], v2", [](const TargetFacts& t) { return t.lds_transpose_reads; }},
    {"ds_read_b96_tr_b6 v[0:2], v4", [](const TargetFacts& t) { return t.lds_transpose_reads; }},
    {"v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]", [](const TargetFacts& t) { return t.doubled_mfma; }},
    {"v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3]", [](const TargetFacts& t) { return t.scaled_mfma; }},
    {"v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3], v20, v21", [](const TargetFacts& t) { return t.scaled_mfma; }},
    {"v_cvt_scalef32_pk_f32_fp4 v[0:1], v2, v3", [](const TargetFacts& t) { return t.scaled_convert; }},
    {"v_cvt_pk_bf16_f32 v0, v1, v2", [](const TargetFacts& t) { return t.native_bf16_convert; }},
    {"v_dot2_f32_bf16 v0, v1, v2, v3", [](const TargetFacts& t) { return t.dot2_bf16; }},
    {"v_permlane32_swap_b32 v0, v1", [](const TargetFacts& t) { return t.permlane_swap; }},
    {"v_cvt_pk_fp8_f32 v0, v1, v2", [](const TargetFacts& t) { return t.fp8 != Fp8Format::none; }},
    {"v_mov_b32 v255, 0", [](const TargetFacts&) { return kiln::max_arch_vgprs > 255; }},
    {"v_mov_b32 v256, 0", [](const TargetFacts&) { return kiln::max_arch_vgprs > 256; }},
    {"s_waitcnt vmcnt(63)", [](const TargetFacts&) { return kiln::max_vmcnt >= 63; }},
    {"s_waitcnt vmcnt(64)", [](const TargetFacts&) { return kiln::max_vmcnt >= 64; }},
    {"s_waitcnt lgkmcnt(15)", [](const TargetFacts&) { return kiln::max_lgkmcnt >= 15; }},
    {"s_waitcnt lgkmcnt(16)", [](const TargetFacts&) { return kiln::max_lgkmcnt >= 16; }},
};

} // namespace

TEST_CASE("target table: each capability is what the assembler accepts") {
  for (const TargetFacts& target : kiln::machine::archs)
    for (const Capability& c : capabilities) {
      CAPTURE(target.name);
      CAPTURE(c.instruction);
      CHECK(assembles(target, c.instruction) == c.has(target));
    }
}

TEST_CASE("target table: names, machines and messages agree") {
  for (const TargetFacts& target : kiln::machine::archs) {
    CHECK(find_target(target.name) == &target);
    CHECK(find_target_by_machine(target.elf_machine) == &target);
    CHECK(known_target_names().find(target.name) != std::string_view::npos);
  }
  CHECK(find_target("gfx1100") == nullptr);
  CHECK_THROWS_AS(target_facts("gfx1100"), UnknownArch);
}

TEST_CASE("matrix shapes: sizes and passes of each kind of name") {
  struct Case {
    const char *arch, *mnemonic;
    int m, k, blocks, passes;
    OperandFormats formats = {};
  };
  constexpr Case cases[] = {
      {"gfx90a", "v_mfma_f32_32x32x8f16", 32, 8, 1, 16},
      {"gfx90a", "v_mfma_f32_16x16x4f16", 16, 4, 4, 8},
      {"gfx90a", "v_mfma_f64_4x4x4f64", 4, 4, 4, 4},
      {"gfx90a", "v_mfma_f32_32x32x1f32", 32, 1, 2, 16},
      {"gfx942", "v_mfma_f32_32x32x8_f16", 32, 8, 1, 8},
      {"gfx942", "v_mfma_f32_16x16x16_f16", 16, 16, 1, 4},
      {"gfx942", "v_mfma_f32_4x4x4_16b_f16", 4, 4, 16, 2},
      {"gfx942", "v_mfma_f32_16x16x4_4b_f16", 16, 4, 4, 8},
      {"gfx942", "v_mfma_f32_16x16x4_f32", 16, 4, 1, 8},
      {"gfx942", "v_mfma_f32_32x32x2_f32", 32, 2, 1, 16},
      {"gfx942", "v_mfma_f32_16x16x8_xf32", 16, 8, 1, 4},
      {"gfx942", "v_mfma_f64_16x16x4_f64", 16, 4, 1, 8},
      {"gfx942", "v_mfma_i32_32x32x16_i8", 32, 16, 1, 8},
      {"gfx942", "v_smfmac_f32_16x16x32_f16", 16, 32, 1, 4},
      {"gfx950", "v_mfma_f64_16x16x4_f64", 16, 4, 1, 16},
      {"gfx950", "v_mfma_f32_16x16x32_f16", 16, 32, 1, 4},
      {"gfx950", "v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, 8},
      {"gfx950", "v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, 8, {0, 4}},
      {"gfx950", "v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, 4, {4, 2}},
      {"gfx950", "v_mfma_scale_f32_32x32x64_f8f6f4", 32, 64, 1, 8, {4, 4}},
      {"gfx950", "v_mfma_scale_f32_32x32x64_f8f6f4", 32, 64, 1, 16},
  };
  for (const Case& c : cases) {
    CAPTURE(c.arch);
    CAPTURE(c.mnemonic);
    const auto shape = matrix_shape(c.mnemonic, target_facts(c.arch), c.formats);
    REQUIRE(shape);
    CHECK(shape->m == c.m);
    CHECK(shape->n == c.m);
    CHECK(shape->k == c.k);
    CHECK(shape->blocks == c.blocks);
    CHECK(shape->passes == c.passes);
  }
  CHECK(!matrix_shape("v_mfma_ld_scale_b32", target_facts("gfx950")));
  CHECK(!matrix_shape("v_add_f32", target_facts("gfx950")));
}

} // namespace target_test
