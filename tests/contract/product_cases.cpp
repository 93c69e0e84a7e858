// The kinds of products whose promises are broken one by one, and what only they have.
#include "gen/catalog/catalog.h"
#include "gen/spec/math.h"
#include "tests/contract/altered.h"

namespace kiln::testing {
namespace {

const std::string lds_lane = "[platform::thread_id() % wave_size]";

// Words move between registers and LDS a number at a time.
std::string one_by_one(const std::string& to, const std::string& from) {
  const auto number = [](const std::string& word) { return "reinterpret_cast<u32*>(&" + word + ")[j]"; };
  return "for (int j = 0; j < 4; ++j) { " + number(to) + " = " + number(from) + "; asm volatile(\"\" ::: \"memory\"); }";
}
Alteration narrow_reads() {
  const std::string b = "slot.b[p][i][u]", a = "slot.a[i][u * Operands::ratio + w]";
  const std::string of_b = "memory.words[at_.slot][n]" + lds_lane, of_a = "memory.words[at_.slot][Slots::b_loads + n]" + lds_lane;
  const std::string between = " });\n      Slots::template each_load<false>([&](int n, int i, int w, int u) KILN_LAMBDA {\n        ";
  return {"narrower reads of LDS", b + " = " + of_b + ";" + between + a + " = " + of_a + ";",
          one_by_one(b, of_b) + between + one_by_one(a, of_a)};
}
Alteration narrow_writes() {
  const std::string to = "memory.words[at_.slot][first + n]" + lds_lane, from = "words_[place][n]";
  return {"narrower writes of LDS", to + " = " + from + ";", one_by_one(to, from)};
}
Alteration narrow_rows() {
  return {"narrower reads of LDS", "return *reinterpret_cast<const Word16*>(in_lds() + at);",
          halves_of("reinterpret_cast<const char*>(in_lds() + at)")};
}
Alteration narrow_shared_rows() {
  const std::string to = "rows_.a[r][u]", from = "rows()[from][r][u][lane]";
  return {"narrower reads of LDS", to + " = " + from + ";", one_by_one(to, from)};
}
Alteration early_conversion() {
  return {"a conversion at the load", "return *reinterpret_cast<const T*>(uniform + offset);",
          "u32 early = *reinterpret_cast<const T*>(uniform + offset); asm volatile(\"\" : \"+v\"(early)); return static_cast<T>(early);"};
}

KernelSpec plain_product() {
  return KernelSpec("gemm").output("c", f32, matmul_nt(input("a", f16, {dynamic("m", 1, 16), 8192}), input("b", f16, {4096, 8192})));
}

// Without direct loads words pass through registers.
ContractCase producers(const Target& to, bool direct) {
  const std::string load = "__builtin_amdgcn_global_load_lds((Global*)(base + offset), (Local*)to, 16, 0, streamed ? 2 : 0);";
  const std::string narrow = "__builtin_amdgcn_global_load_lds((Global*)(base + offset), (Local*)to, 4, 0, 0);";
  const Alteration narrow_load{"narrower loads", load, narrow};
  const Alterations both = {{"no_spills", no_scalars()},
                            {"required ds_read_b128", narrow_reads()},
                            {"required s_sleep", {"no sleep", "__builtin_amdgcn_s_sleep(1);", ""}},
                            {"required v_mfma_", no_f16_matrix(to)}};
  if (direct)
    return {"gemm producers",
            plain_product(),
            {"method=producers"},
            joined(joined(of_loop("platform::await_loads<(ring - 1) * loads>();"), both),
                   {{"loop_loads", {"a narrow load beside", load, load + " " + narrow}},
                    {"global_loads", narrow_load},
                    {"min_loops", narrow_load},
                    {"required global_load_lds_dwordx4", narrow_load},
                    {"lds", narrow_reads()}})};
  return {"gemm producers through registers",
          plain_product(),
          {"method=producers", "direct=0"},
          joined(joined(of_loop("fetch(i, smaller(ring + i, left - 1));"), both),
                 {{"global_loads", narrow_stream()}, {"lds", narrow_writes()}, {"min_loops", narrow_writes()}})};
}

// Rows that the waves share.
void add_shared(std::vector<ContractCase>& cases, const Target& to) {
  const Alterations loop = of_loop("load(place, step);"), ring = of_ring(to);
  const Alterations own = joined(joined({{"no_spills", loop.at("max_vgpr_spills")}, {"loop_lds", narrow_shared_rows()}}, loop), ring);
  cases.push_back({"gemm shared rows", catalog_spec("gemm", {.m = 128, .n = 4096, .k = 4096}), {"method=shared_rows"}, own});
  cases.push_back({"gemm shared rows block scaled",
                   catalog_spec("gemm_block_scaled", {.fp8 = to.fp8(), .m = 128, .n = 4096, .k = 8192}),
                   {"method=shared_rows"},
                   joined({{"required v_mfma_", no_fp8_matrix(to.has_scaled_mfma())}}, own)});
  if (to.has_scaled_mfma())
    cases.push_back({"gemm shared rows MXFP4",
                     catalog_spec("gemm_mx", {.m = 128, .n = 4096, .k = 16384}),
                     {"method=shared_rows"},
                     joined({{"required v_mfma_", no_mx_matrix()}}, own)});
}

Expr nvfp4_product() {
  return matmul_nt_mx(input("a", f16, {dynamic("m", 1, 16), 8192}), input("b", e2m1, {4096, 8192}), input("scale", e4m3fn, {4096, 512}));
}
Expr normed_product(const Target& to) {
  const Dim m = dynamic("m", 1, 16);
  return matmul_nt_normed(input("a", bf16, {m, 4096}), input("b", to.fp8(), {4096, 4096}), input("weight", bf16, {4096}),
                          input("squares", f32, {m, 128}), input("scale", f32, {}), 1e-5F);
}

// Operands of 8 bits, and rows that become such.
void add_quantised(std::vector<ContractCase>& cases, const Target& to) {
  const Alterations fp8 = joined({{"required v_mfma_", no_fp8_matrix(to.has_scaled_mfma())}}, of_ring(to));
  const Alterations few = {{"no_spills", few_registers("amdgpu_num_vgpr(12)")}},
                    staged = joined(joined({{"loop_lds", narrow_rows()}}, few), fp8);
  cases.push_back({"gemm staged", catalog_spec("gemm_dynamic_quant", {.fp8 = to.fp8()}), {"waves=4"}, staged});
  cases.push_back({"gemm normed", KernelSpec("normed").output("c", f32, normed_product(to)), {}, staged});
  cases.push_back({"gemm block scaled", catalog_spec("gemm_block_scaled", {.fp8 = to.fp8()}), {}, joined(few, fp8)});
  cases.push_back({"gemm w8", catalog_spec("gemm_w8a16", {.fp8 = to.fp8(), .k = 16384}), {}, of_ring(to)});
}

// Weights of 4 bits, and operands of MX formats.
void add_narrow(std::vector<ContractCase>& cases, const Target& to) {
  const Alterations ring = of_ring(to), bf16_ring = joined({{"required v_mfma_", no_bf16_matrix(to)}}, ring);
  const Alterations early = {{"min_loop_wait", early_conversion()}, {"min_bytes_in_flight", early_conversion()}};
  const Alterations mx = joined({{"required v_mfma_", to.has_scaled_mfma() ? no_mx_matrix() : no_bf16_matrix(to)}}, ring);
  cases.push_back({"gemm w4", catalog_spec("gemm_w4a16", {.packed_zeros = true}), {}, joined(early, ring)});
  cases.push_back({"gemm w4 wide scales", catalog_spec("gemm_w4a16", {.group = 32, .k = 16384}), {}, ring});
  cases.push_back({"gemm MXFP4 weights", catalog_spec("gemm_w_mxfp4", {.k = 16384}), {}, ring});
  cases.push_back({"gemm MXFP4 weights bf16", catalog_spec("gemm_w_mxfp4", {.dtype = bf16, .k = 16384}), {}, bf16_ring});
  cases.push_back({"gemm MXFP4", catalog_spec("gemm_mx", {.k = 16384}), {}, mx});
  cases.push_back({"gemm MXFP8", catalog_spec("gemm_mx", {.mx = e4m3fn, .k = 16384}), {}, mx});
  cases.push_back({"gemm NVFP4", KernelSpec("nvfp4").output("c", f16, nvfp4_product() * scalar("of_all")), {}, ring});
}

void add_experts(std::vector<ContractCase>& cases, const Target& to) {
  const Alterations ring = of_ring(to);
  cases.push_back({"gemm by expert", catalog_spec("grouped_gemm", {}), {}, ring});
  cases.push_back({"gemm by expert MXFP4", catalog_spec("grouped_gemm", {.weights = e2m1}), {}, ring});
  cases.push_back({"gemm by expert summed", catalog_spec("grouped_gemm_sum", {}), {}, ring});
}

} // namespace

std::vector<ContractCase> product_cases(const Target& to) {
  const Alterations ring = of_ring(to);
  const Alteration no_sparse{"no matrix instruction", "return __builtin_amdgcn_smfmac_f32_16x16x32_f16(x, y, sums, pairs, 0, 0);",
                             "return sums + static_cast<float>(x[0] * y[0]);"};
  const CatalogOptions deep{.n = 4096, .k = 16384};
  const auto of_rows = [&](std::int64_t m) {
    CatalogOptions options = deep;
    options.m = m;
    return catalog_spec("gemm", options);
  };
  std::vector<ContractCase> cases = {
      {"gemm", of_rows(16), {}, ring},
      {"gemm many rows", of_rows(64), {"method=matrix"}, ring},
      {"gemm 8 waves", of_rows(16), {"waves=8", "loads=1"}, joined({{"no_spills", ring.at("max_vgpr_spills")}}, ring)},
      {"gemm sparse", of_rows(8), {"method=sparse"}, joined({{"required v_smfmac_", no_sparse}}, ring)},
      {"gemm dot", of_rows(4), {"method=dot"}, ring},
      {"gemm dot f32", catalog_spec("gemm", {.dtype = to.fp8(), .m = 4, .k = 16384}), {"method=dot"}, ring},
      {"router", catalog_spec("router", {.n = 256, .k = 7168}), {}, ring},
      {"router sorted", catalog_spec("router", {.n = 256, .k = 7168, .sorted = true}), {}, ring},
      producers(to, false),
  };
  if (to.has_wide_lds_dma()) cases.push_back(producers(to, true));
  add_shared(cases, to);
  add_quantised(cases, to);
  add_narrow(cases, to);
  add_experts(cases, to);
  return cases;
}

} // namespace kiln::testing
