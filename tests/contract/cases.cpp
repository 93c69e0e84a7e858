// The kernels whose promises are broken one by one, and what only they have.
#include "gen/catalog/catalog.h"
#include "gen/spec/math.h"
#include "tests/contract/altered.h"

namespace kiln::testing {
namespace {

// A load of 16 bytes in two halves, which the compiler may not join.
std::string halves_of(const std::string& address) {
  return "Vec<u32, 2> part[2]; part[0] = *reinterpret_cast<const Vec<u32, 2>*>(" + address +
         "); asm volatile(\"\" ::: \"memory\"); part[1] = *reinterpret_cast<const Vec<u32, 2>*>(" + address +
         " + 8); return {part[0][0], part[0][1], part[1][0], part[1][1]};";
}

Alteration few_registers(const std::string& attribute) {
  const std::string threads = "amdgpu_flat_work_group_size(threads, threads)";
  return {"few registers", threads, threads + ", " + attribute};
}
// No scalar register keeps its value where a lane asks for its number.
Alteration no_scalars() {
  std::string all;
  for (int i = 0; i < 100; ++i) all += (i ? ", \"s" : "\"s") + std::to_string(i) + "\"";
  return {"no scalar register", "KILN_DEVICE u32 thread_id() {", "KILN_DEVICE u32 thread_id() { asm volatile(\"\" ::: " + all + ");"};
}
const Alteration narrow_stream = {"narrower loads", "  return __builtin_nontemporal_load(reinterpret_cast<const u32x4*>(base + offset));",
                                  halves_of("base + offset")};
// No product: what it would have been is added.
const Alteration no_matrix = {"no matrix instruction", "__builtin_amdgcn_mfma_f32_16x16x32_f16(x, y, sums, 0, 0, 0)",
                              "(sums + static_cast<float>(x[0] * y[0]))"};
const Alteration no_scaled_matrix = {"no matrix instruction",
                                     "__builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x, y, sums, x_format, y_format, 0, 0, 0, 0)",
                                     "(sums + static_cast<float>(x[0] * y[0]))"};

// In a streaming loop, behind `loads`, a statement of its.
Alterations of_loop(const std::string& loads) {
  const auto behind = [&](const std::string& title, const std::string& code) { return Alteration{title, loads, loads + " " + code}; };
  return {{"max_loop_drains", behind("a drain", "asm volatile(\"s_waitcnt vmcnt(0)\" ::: \"memory\");")},
          {"min_loop_wait", behind("a wait for all but one", "asm volatile(\"s_waitcnt vmcnt(1)\" ::: \"memory\");")},
          {"min_bytes_in_flight", behind("a wait for all but one", "asm volatile(\"s_waitcnt vmcnt(1)\" ::: \"memory\");")},
          {"max_loop_barriers", behind("a barrier in the loop", "asm volatile(\"s_barrier\" ::: \"memory\");")}};
}

Alterations joined(Alterations a, const Alterations& b) {
  a.insert(b.begin(), b.end());
  return a;
}

Alterations of_ring() {
  return joined(of_loop("ring_[i].load(operands_, config.stages + i);"),
                {{"loop_loads", narrow_stream},
                 {"loads_outside_loops", narrow_stream},
                 {"required v_mfma_", no_matrix},
                 {"min_loops", {"the loop left out", "for (; left >= 2 * config.stages; left -= config.stages) {", "for (; false;) {"}}});
}

KernelSpec of_catalog(const std::string& name, CatalogOptions options = {}) {
  options.fp8 = target("gfx950").fp8();
  return catalog_spec(name, options);
}

KernelSpec two_products() {
  const Expr a = input("a", f16, {dynamic("m", 1, 16), 16384}), b = input("b", f16, {dynamic("m", 1, 16), 16384});
  return KernelSpec("two")
      .output("c", f32, matmul_nt(a, input("u", f16, {4096, 16384})))
      .output("d", f32, matmul_nt(b, input("w", f16, {2048, 16384})));
}

KernelSpec plain_product() {
  return KernelSpec("gemm").output("c", f32, matmul_nt(input("a", f16, {dynamic("m", 1, 16), 8192}), input("b", f16, {4096, 8192})));
}
// Words move between registers and LDS a number at a time.
std::string one_by_one(const std::string& to, const std::string& from) {
  const auto number = [](const std::string& word) { return "reinterpret_cast<u32*>(&" + word + ")[j]"; };
  return "for (int j = 0; j < 4; ++j) { " + number(to) + " = " + number(from) + "; asm volatile(\"\" ::: \"memory\"); }";
}
Alteration narrow_reads() {
  const std::string lane = "[platform::thread_id() % wave_size]", b = "slot.b[p][i][u]", a = "slot.a[i][u * Operands::ratio + w]";
  const std::string of_b = "memory.words[at_.slot][n]" + lane, of_a = "memory.words[at_.slot][Slots::b_loads + n]" + lane;
  const std::string between = " });\n      Slots::template each_load<false>([&](int n, int i, int w, int u) KILN_LAMBDA {\n        ";
  return {"narrower reads of LDS", b + " = " + of_b + ";" + between + a + " = " + of_a + ";",
          one_by_one(b, of_b) + between + one_by_one(a, of_a)};
}
Alteration narrow_writes() {
  const std::string to = "memory.words[at_.slot][first + n][platform::thread_id() % wave_size]", from = "words_[place][n]";
  return {"narrower writes of LDS", to + " = " + from + ";", one_by_one(to, from)};
}

// Loads go straight to LDS.
ContractCase direct_producers() {
  const std::string load = "__builtin_amdgcn_global_load_lds((Global*)(base + offset), (Local*)to, 16, 0, streamed ? 2 : 0);";
  return {
      "gemm producers",
      plain_product(),
      "gfx950",
      {"method=producers"},
      12,
      joined(
          of_loop("platform::await_loads<(ring - 1) * loads>();"),
          {{"loop_loads",
            {"a narrow load beside", load, load + " __builtin_amdgcn_global_load_lds((Global*)(base + offset), (Local*)to, 4, 0, 0);"}},
           {"global_loads", {"narrower loads", load, "__builtin_amdgcn_global_load_lds((Global*)(base + offset), (Local*)to, 4, 0, 0);"}},
           {"min_loops", {"narrower loads", load, "__builtin_amdgcn_global_load_lds((Global*)(base + offset), (Local*)to, 4, 0, 0);"}},
           {"required global_load_lds_dwordx4",
            {"narrower loads", load, "__builtin_amdgcn_global_load_lds((Global*)(base + offset), (Local*)to, 4, 0, 0);"}},
           {"no_spills", no_scalars()},
           {"lds", narrow_reads()},
           {"required ds_read_b128", narrow_reads()},
           {"required s_sleep", {"no sleep", "__builtin_amdgcn_s_sleep(1);", ""}},
           {"required v_mfma_", no_matrix}})};
}

// Loads go to LDS through registers.
ContractCase register_producers() {
  return {"gemm producers, registers",
          plain_product(),
          "gfx942",
          {"method=producers"},
          12,
          joined(of_loop("fetch(i, smaller(ring + i, left - 1));"),
                 {{"loop_loads", narrow_stream},
                  {"global_loads", narrow_stream},
                  {"no_spills", no_scalars()},
                  {"lds", narrow_writes()},
                  {"required ds_read_b128", narrow_reads()},
                  {"min_loops", narrow_writes()},
                  {"required s_sleep", {"no sleep", "__builtin_amdgcn_s_sleep(1);", ""}},
                  {"no_errata",
                   {"a write-back with no wait", "KILN_DEVICE u32 thread_id() { ",
                    "KILN_DEVICE u32 thread_id() { asm volatile(\"buffer_wbl2 sc1\\n\\ts_barrier\" ::: \"memory\"); "}},
                  {"required v_mfma_",
                   {"no matrix instruction", "__builtin_amdgcn_mfma_f32_16x16x16f16(x, y, sums, 0, 0, 0)",
                    "(sums + static_cast<float>(x[0] * y[0]))"}}})};
}

} // namespace

std::vector<ContractCase> contract_cases() {
  const std::string chunk = "pieces.at[i] = reinterpret_cast<const Place*>(address + i * piece)->value;";
  const Alteration narrow_chunk = {"narrower loads", chunk,
                                   "{ struct Parts { u8 at[piece]; } parts; for (int j = 0; j < piece; ++j) { parts.at[j] = "
                                   "*reinterpret_cast<const u8*>(address + i * piece + j); "
                                   "asm volatile(\"\" ::: \"memory\"); } pieces.at[i] = __builtin_bit_cast(W, parts); }"};
  const std::string take = "return *reinterpret_cast<const Word16*>(in_lds() + at);";
  const std::string of_group = "return *reinterpret_cast<const T*>(uniform + offset);";
  const Alteration early = {
      "a conversion at the load", of_group,
      "u32 early = *reinterpret_cast<const T*>(uniform + offset); asm volatile(\"\" : \"+v\"(early)); return static_cast<T>(early);"};
  const Alteration steps = {"narrower loads", narrow_stream.from, narrow_stream.to};
  return {
      {"elementwise", of_catalog("swiglu_quant"), "gfx950", {}, 4, {{"global_loads", narrow_chunk}}},
      {"rowwise", of_catalog("add_rmsnorm_quant"), "gfx950", {}, 6, {{"global_loads", narrow_chunk}}},
      {"expert_sort",
       of_catalog("moe_sort"),
       "gfx950",
       {},
       4,
       {{"required v_mbcnt_hi", {"no count of lanes below", "__builtin_amdgcn_mbcnt_hi(", "__builtin_amdgcn_mbcnt_lo("}}}},
      {"gemm", of_catalog("gemm", {.n = 4096, .k = 16384}), "gfx950", {}, 12, of_ring()},
      {"gemm staged",
       of_catalog("gemm_dynamic_quant"),
       "gfx950",
       {},
       12,
       joined({{"no_spills", few_registers("amdgpu_num_vgpr(12)")},
               {"required v_mfma_", no_scaled_matrix},
               {"loop_lds", {"narrower reads of LDS", take, halves_of("reinterpret_cast<const char*>(in_lds() + at)")}}},
              of_ring())},
      {"gemm w4",
       of_catalog("gemm_w4a16", {.packed_zeros = true}),
       "gfx950",
       {},
       12,
       joined({{"min_loop_wait", early}, {"min_bytes_in_flight", early}}, of_ring())},
      {"gemm sparse",
       of_catalog("gemm", {.m = 8, .n = 4096, .k = 16384}),
       "gfx950",
       {"method=sparse"},
       12,
       joined({{"required v_smfmac_",
                {"no matrix instruction", "return __builtin_amdgcn_smfmac_f32_16x16x32_f16(x, y, sums, pairs, 0, 0);",
                 "return sums + static_cast<float>(x[0] * y[0]);"}}},
              of_ring())},
      {"gemm by expert", of_catalog("grouped_gemm"), "gfx950", {}, 12, of_ring()},
      {"gemm block scaled", of_catalog("gemm_block_scaled"), "gfx950", {}, 12, joined({{"required v_mfma_", no_scaled_matrix}}, of_ring())},
      direct_producers(),
      register_producers(),
      {"attention",
       of_catalog("attention_decode"),
       "gfx950",
       {},
       12,
       joined(of_loop("load_k(cache, next);"),
              {{"loop_loads", steps},
               {"loads_outside_loops", steps},
               {"required v_mfma_", no_matrix},
               {"required v_exp_f32", {"no exponential", "return __builtin_amdgcn_exp2f(x);", "return x * x;"}}})},
      {"attention latent",
       of_catalog("attention_decode", {.kv_heads = 1, .d = 576}),
       "gfx950",
       {},
       12,
       joined(of_loop("load_k(cache, next);"),
              {{"no_spills", few_registers("amdgpu_num_vgpr(12)")},
               {"loop_loads", steps},
               {"loads_outside_loops", steps},
               {"required v_mfma_", no_matrix},
               {"loop_lds",
                {"narrower reads of LDS", "return shared_q[r * config.q_words() + w][lane];",
                 "{ " + halves_of("reinterpret_cast<const char*>(&shared_q[r * config.q_words() + w][lane])") + " }"}},
               {"required v_exp_f32", {"no exponential", "return __builtin_amdgcn_exp2f(x);", "return x * x;"}}})},
      {"fused_launch", two_products(), "gfx950", {}, 12, of_ring()},
  };
}

} // namespace kiln::testing
