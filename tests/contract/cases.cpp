// The kernels whose promises are broken one by one, and what only they have; products are in product_cases.cpp.
#include "gen/catalog/catalog.h"
#include "gen/spec/attention.h"
#include "gen/spec/math.h"
#include "tests/contract/altered.h"

namespace kiln::testing {
namespace {

// ---- rows and elements

void add_streams(std::vector<ContractCase>& cases, const Target& to) {
  const Alterations divided = {{"forbidden v_div_", {"IEEE division", "return __builtin_amdgcn_rcpf(x);", "return 1.0f / x;"}}};
  cases.push_back({.name = "elementwise", .spec = catalog_spec("swiglu_quant", {.fp8 = to.fp8()}), .own = divided, .few_registers = 4});
  cases.push_back({.name = "elementwise e5m2", .spec = catalog_spec("cast", {.fp8 = to.fp8_e5m2()}), .few_registers = 4});
  cases.push_back({.name = "rowwise", .spec = catalog_spec("add_rmsnorm_quant", {.fp8 = to.fp8()}), .own = divided, .few_registers = 6});
  for (const auto& [name, type] : {std::pair{"rowwise MXFP4", e2m1}, {"rowwise MXFP8", e4m3fn}, {"rowwise MXFP8 e5m2", e5m2}})
    cases.push_back({.name = name, .spec = catalog_spec("add_rmsnorm_mx_quant", {.mx = type}), .few_registers = 6});
  cases.push_back({.name = "rowwise state", .spec = catalog_spec("gated_delta_update", {.cols = 128, .dtype = bf16}), .few_registers = 6});
  cases.push_back({.name = "rowwise cluster",
                   .spec = catalog_spec("rmsnorm", {.cols = 32768, .max_rows = 8}),
                   .settings = {"tiles=4"},
                   .few_registers = 6});
  const Alterations sampled = {
      {"required ds_add_u32",
       {"counts with no atomics", "__hip_atomic_fetch_add(count, by, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)", "(*count += by)"}},
      {"no_spills", no_vectors_behind("of_columns.find(key, k, k);")}};
  cases.push_back(
      {.name = "wide_ranks", .spec = catalog_spec("sample_top_k_top_p", {.cols = 32768, .max_rows = 8, .dtype = bf16}), .own = sampled});
  const Alterations counted = {
      {"required v_mbcnt_hi", {"no count of lanes below", "__builtin_amdgcn_mbcnt_hi(", "__builtin_amdgcn_mbcnt_lo("}}};
  const Expr row = input("x", f32, {dynamic("rows", 1, 8), 5000});
  cases.push_back({.name = "row_sort",
                   .spec = KernelSpec("row_sort").output("column", i32, row_top(row, 5000)),
                   .own = joined(counted, {{"no_spills", no_vectors_behind("items[i] = load(place < cols ? place : cols - 1);")}})});
  cases.push_back({.name = "expert_sort", .spec = catalog_spec("moe_sort", {}), .own = counted, .few_registers = 4, .place = lane_id});
}

// ---- attention

Alterations of_attention(const Target& to) {
  const Alterations loop = of_loop("load_k(cache, next);");
  return joined(loop, {{"no_spills", loop.at("max_vgpr_spills")},
                       {"loop_loads", narrow_stream()},
                       {"loads_outside_loops", narrow_stream()},
                       {"required v_mfma_", no_f16_matrix(to)},
                       {"required v_exp_f32", no_exponential()}});
}

// Each key and head has a scale of its own, and each key and head of q a bias.
KernelSpec scaled_keys(const Target& to) {
  const Dim sequences = dynamic("sequences");
  const std::int64_t heads = 8, kv_heads = 2, keys = 8192, d = 128;
  const auto cache = [&](const std::string& name) {
    return input(name, to.fp8(), {sequences, keys, kv_heads, d}) * input(name + "_scale", f32, {sequences, keys, kv_heads, 1});
  };
  const Expr lengths = input("lengths", i32, {sequences, 1, 1}), bias = input("bias", f16, {heads, keys});
  const Expr scores = attention_scores(input("q", f16, {sequences, heads, d}), cache("k")) * 0.0884 + bias;
  return KernelSpec("scaled_keys").output("o", f16, attention(scores, cache("v"), lengths));
}

void add_attention(std::vector<ContractCase>& cases, const Target& to) {
  const Alterations own = of_attention(to);
  const Alteration narrow_q{"narrower reads of LDS", "return shared_q[r * config.q_words() + w][lane];",
                            "{ " + halves_of("reinterpret_cast<const char*>(&shared_q[r * config.q_words() + w][lane])") + " }"};
  cases.push_back({"attention", catalog_spec("attention_decode", {}), {}, own});
  cases.push_back(
      {"attention latent", catalog_spec("attention_decode", {.kv_heads = 1, .d = 576}), {}, joined({{"loop_lds", narrow_q}}, own)});
  cases.push_back({"attention 8 bits", catalog_spec("attention_decode", {.cache = to.fp8()}), {}, own});
  cases.push_back({"attention scaled keys", scaled_keys(to), {}, own});
  cases.push_back({"attention paged", catalog_spec("attention_paged", {}), {}, own});
  cases.push_back({"attention small pages", catalog_spec("attention_paged", {.page = 4}), {}, own});
  cases.push_back({"attention paged 8 bits", catalog_spec("attention_paged", {.page = 1, .cache = to.fp8()}), {}, own});
}

// ---- several problems in a launch

Expr product(const std::string& name, DType type, std::int64_t m, std::int64_t n, std::int64_t k) {
  return matmul_nt(input(name + "_a", type, {dynamic("m", 1, m), k}), input(name + "_b", type, {n, k}));
}

void add_fused(std::vector<ContractCase>& cases, const Target& to) {
  const Alterations own = of_ring(to);
  const Expr x = input("x", f16, {dynamic("rows"), 1024}), norm = x * rsqrt(row_mean(x * x) + 1e-6) * input("gain", f16, {1024});
  KernelSpec two("two"), beside("beside"), unlike("unlike");
  two.output("c", f32, product("c", f16, 16, 4096, 16384)).output("d", f32, product("d", f16, 16, 2048, 16384));
  beside.output("c", f32, product("c", f16, 16, 4096, 16384)).output("y", f16, norm);
  unlike.output("c", f32, product("c", f16, 4, 4096, 16384)).output("d", f32, product("d", f16, 4, 2048, 16384));
  cases.push_back({"fused_launch", two, {}, own});
  cases.push_back({"fused_launch of rows", catalog_spec("qk_norm", {.cols = 128}), {}, {}, 4});
  cases.push_back({"fused_launch with rows", beside, {"y.threads_per_row=64"}, own});
  cases.push_back(
      {"fused_launch of unlike loops", unlike, {"c.method=dot", "d.method=matrix"}, joined({{"global_loads", narrow_stream()}}, own)});
}

} // namespace

std::vector<ContractCase> contract_cases(const Target& to) {
  std::vector<ContractCase> cases;
  add_streams(cases, to);
  for (ContractCase& product : product_cases(to)) cases.push_back(std::move(product));
  add_attention(cases, to);
  add_fused(cases, to);
  return cases;
}

} // namespace kiln::testing
