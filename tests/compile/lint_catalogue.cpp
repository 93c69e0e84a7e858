// Kiln's own kernels under its own rules: nothing but what is stated here.
#include "gen/catalog/catalog.h"
#include "isa_checks/verdict/lint.h"
#include "runtime/build/build_kernel.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <functional>
#include <set>

using namespace kiln;

namespace {

// Rules whose findings are right, and that the kernels have for a reason.
using Expected = std::set<std::string>;

std::string text_of(const std::vector<isa::Finding>& findings) {
  std::string text;
  for (const isa::Finding& f : findings) text += isa::to_text(f).substr(0, isa::to_text(f).find("  why:"));
  return text;
}

void check_catalogue(std::string_view arch, const CatalogOptions& base, bool gemm,
                     const std::function<Expected(std::string_view entry)>& expected) {
  CompileOptions compile = own_process_options(process_environment());
  for (const CatalogEntry& entry : catalog()) {
    if (entry.is.gemm != gemm || entry.is.attention || why_not(entry, base)) continue; // tests/attention/attention_code.cpp
    const Target to = target(arch);
    CatalogOptions options = base;
    options.fp8 = to.fp8();
    const BuiltKernel built = build_kernel(entry.build(options), to, compile);
    const isa::CodeObject object = isa::load_code_object(built.object.bytes, std::string(entry.name));
    for (const isa::Kernel& kernel : object.kernels()) {
      std::vector<isa::Finding> findings = isa::lint(isa::analyse(object, kernel));
      std::erase_if(findings, [&](const isa::Finding& f) { return expected(entry.name).contains(f.rule); });
      CHECK_MESSAGE(findings.empty(), entry.name, "\n", text_of(findings));
    }
  }
}

// Both architectures when KILN_LINT_ALL is set, else the one named.
std::vector<std::string_view> archs(std::string_view usual) {
  if (std::getenv("KILN_LINT_ALL") == nullptr) return {usual};
  const auto all = known_archs();
  return {all.begin(), all.end()};
}

} // namespace

// Elementwise kernels of sizes that are no multiple of a tile have one loop, which the last, partial workgroup runs chunk by
// chunk; the others run straight through.
const Expected partial_workgroup{"MEM001", "WAIT001", "WAIT002"};

// A row's number over the rows of a batch, which are known at launch.
const Expected batch_of_row{"MTH002"};

// The lanes of a wave find out together which pairs name the same expert.
const Expected a_pair_a_lane{"MEM001"};

// Temperatures divide to the last bit, as the reference does: a token does not depend on who divides.
const Expected exact_temperature{"MTH001"};

TEST_CASE("the catalogue has no findings: 4096 columns of f16") {
  for (const std::string_view arch : archs("gfx950"))
    check_catalogue(arch, {.cols = 4096, .dtype = f16}, false, [](std::string_view entry) {
      return entry == "cast"                 ? partial_workgroup
             : entry == "layernorm_modulate" ? batch_of_row
             : entry == "moe_sort"           ? a_pair_a_lane
             : entry.starts_with("sample_")  ? exact_temperature
                                             : Expected{};
    });
}
TEST_CASE("the catalogue has no findings: 5003 columns of bf16") {
  check_catalogue("gfx942", {.cols = 5003, .dtype = bf16}, false, [](std::string_view entry) {
    Expected expected{"CVT001"}; // gfx942 has no conversion to bf16
    if (entry == "layernorm_modulate") expected.insert(batch_of_row.begin(), batch_of_row.end());
    if (entry == "moe_sort") expected.insert(a_pair_a_lane.begin(), a_pair_a_lane.end());
    if (entry == "softmax_temperature") expected.insert("MEM003"); // one lane stores what the row ends with, number by number
    if (entry.starts_with("sample_")) expected.insert(exact_temperature.begin(), exact_temperature.end());
    if (entry == "gated_delta_update") expected.insert("OCC001"); // rows of the state stay in registers, five waves a SIMD
    if (entry == "sample_top_k_top_p") expected.insert("OCC002"); // candidates and what is counted of them lie in LDS, once a workgroup
    for (const std::string_view name : {"swiglu_quant", "gelu_mul", "silu_mul", "scaled_add", "cast"})
      if (entry == name) expected.insert(partial_workgroup.begin(), partial_workgroup.end());
    return expected;
  });
}
TEST_CASE("the catalogue has no findings: products") {
  for (const std::string_view arch : archs("gfx950"))
    check_catalogue(arch, {.dtype = bf16, .m = 8, .n = 4096, .k = 4096}, true, [arch](std::string_view entry) {
      Expected expected{"MEM001", "WAIT001", "WAIT002"}; // the loops that wait for the parts of a split tile, and add them up
      expected.insert("CVT001");
      for (const std::string_view name : {"gemm_swiglu_quant", "gemm_w_mxfp4", "gemm_dynamic_quant"})
        if (entry == name) expected.insert("LDS002");                              // two-way, once a tile
      if (entry == "gemm_dynamic_quant") expected.insert("MTH001");                // scales of rows are right to the last bit
      for (const std::string_view family : {"grouped_gemm", "lora_", "gemm_lora"}) // sums of waves, once a tile
        if (entry.starts_with(family)) expected.insert("LDS002");
      if (entry.starts_with("grouped_gemm")) expected.insert("SPL003"); // six scalar registers in lanes, outside of the loop
      for (const std::string_view name :
           {"gemm_w8a16", "gemm_w_mxfp4", "grouped_gemm", "grouped_gemm_swiglu", "grouped_gemm_sum", "lora_shrink", "lora_expand_add"})
        if (entry == name) expected.insert("OCC001"); // bytes in flight instead of waves
      // Four scales a row are 8 bytes of a cache line that the next turns of the ring use; sums are read once a tile.
      if (entry == "gemm_w4a16") expected.insert({"MEM003", "LDS002"});
      if (entry == "gemm_block_scaled") expected.insert("MEM010"); // scales of steps that follow one another
      expected.insert("MFM004");                                   // as many tiles of 16 columns as CUs have one accumulator each
      // Tiles of 16 columns: one product a step, which has no other to wait behind.
      if (entry == "gemm_block_scaled") expected.insert("MFM003");
      // A of 8 rows lies in LDS as fp8, 35 KB with the sums. The grid has 256 workgroups, so that no CU has to hold two.
      if (arch == "gfx942" && entry == "gemm_dynamic_quant") expected.insert("OCC002");
      return expected;
    });
}
