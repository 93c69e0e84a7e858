// Batch invariance, executed: a row's bits are the same alone, in batches of any size, with every bound, beside any neighbours.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "gen/spec/attention.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/proof/batches.h"
#include "tests/numeric/check_kernel.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>

namespace invariance_numeric {
using namespace kiln;
using testing::compares_everything;
using testing::runs_in_slice;

namespace {

// Kernels that differ in the bound of rows; 0: none, or the largest.
struct Case {
  std::string name;
  std::function<KernelSpec(std::int64_t bound)> spec;
  std::vector<std::int64_t> bounds, sizes;               // of rows; of launches
  std::vector<std::vector<std::string>> settings = {{}}; // schedules: kernels with each
  std::int64_t widest = 0;                               // the bound that stands for all rows
};

BuiltKernel build(const KernelSpec& spec, const Target& to, const std::vector<std::string>& settings) {
  return build_kernel(spec, to, own_process_options(process_environment()), settings);
}

// What differs; empty when nothing does. Rows out of one set, in any order, by kernels of all bounds.
std::string difference(const Case& c, const Target& to, std::uint64_t seed) {
  Batches batches(c.spec(c.widest), seed);
  for (const std::int64_t bound : c.bounds) {
    for (const auto& settings : c.settings) {
      const KernelSpec spec = c.spec(bound);
      const BuiltKernel kernel = build(spec, to, settings);
      for (const std::int64_t size : c.sizes) {
        if (bound > 0 && size > bound) continue;
        const std::string by = fmt::format(", bound {}, {}", bound, to_text(kernel.schedule));
        if (std::string wrong = batches.launch(spec, kernel, size, by); !wrong.empty()) return wrong;
      }
    }
  }
  return {};
}

void check(const Case& c, const Target& to, std::uint64_t seed) {
  if (!runs_in_slice(to, seed)) return;
  CAPTURE(fmt::format("{} {}", to.arch(), c.name));
  const std::string wrong = difference(c, to, seed);
  CHECK_MESSAGE(wrong.empty(), wrong);
}

using Numbers = std::vector<std::int64_t>;
Numbers sizes() { return compares_everything() ? Numbers{1, 1, 2, 3, 7, 16, 64, 128} : Numbers{1, 9, 40}; }
Numbers bounds_of_m() { return compares_everything() ? Numbers{1, 2, 3, 7, 16, 32, 64, 128} : Numbers{1, 48}; }

KernelSpec catalog(std::string_view name, CatalogOptions options, std::int64_t bound) {
  options.m = bound == 0 ? 128 : bound;
  options.max_rows = bound;
  return catalog_spec(name, options);
}

Case product(std::string_view name, const CatalogOptions& options) {
  return {.name = fmt::format("{} {} {} x {}", name, to_string(options.dtype), options.n, options.k),
          .spec = [=](std::int64_t bound) { return catalog(name, options, bound); },
          .bounds = bounds_of_m(),
          .sizes = sizes()};
}

// Products of a kernel's own text: two of one launch; groups of columns that an epilogue reduces in its tiles; a norm in front and behind.
Case written(std::string_view name, const std::function<KernelSpec(const Dim& m)>& spec, Numbers bounds) {
  return {.name = std::string(name),
          .spec = [=](std::int64_t bound) { return spec(dynamic("m", 1, bound == 0 ? 128 : bound)); },
          .bounds = std::move(bounds),
          .sizes = sizes()};
}
KernelSpec two_products(const Dim& m) {
  const Expr a = input("a", f16, {m, 512}), other = input("other", f16, {m, 1024});
  return KernelSpec("two_products")
      .output("c", f16, matmul_nt(a, input("b", f16, {64, 512})))
      .output("d", f16, matmul_nt(other, input("b2", f16, {96, 1024})));
}
KernelSpec product_beside_rows(const Dim& m) {
  const Expr a = input("a", f16, {m, 512}), x = input("x", f16, {m, 2048});
  return KernelSpec("product_beside_rows")
      .output("c", f16, matmul_nt(a, input("b", f16, {64, 512})))
      .output("y", f16, x * rsqrt(row_mean(x * x) + 1e-5));
}
KernelSpec nvfp4_weights(const Dim& m) {
  const Expr b = input("b", e2m1, {64, 512}), scale = input("b_scale", e4m3fn, {64, 32});
  return KernelSpec("nvfp4_weights").output("c", f16, matmul_nt_mx(input("a", f16, {m, 512}), b, scale));
}
// Rows are normed and quantised while they are loaded.
std::function<KernelSpec(const Dim&)> normed(DType fp8) {
  return [=](const Dim& m) {
    const Expr weight = input("weight", bf16, {1024}), squares = input("squares", f32, {m, 8}), scale = input("scale", f32, {});
    const Expr product = matmul_nt_normed(input("a", bf16, {m, 1024}), input("b", fp8, {64, 1024}), weight, squares, scale, 1e-5F);
    return KernelSpec("normed").output("c", bf16, product);
  };
}
KernelSpec groups_behind(const Dim& m) {
  const Expr product = matmul_nt(input("a", bf16, {m, 1024}), input("b", bf16, {128, 1024}));
  return KernelSpec("groups_behind").output("c", bf16, product).output("squares", f32, group_sum(product * product, 64));
}
KernelSpec rows_behind(const Dim& m) {
  const Expr product = matmul_nt(input("a", bf16, {m, 1024}), input("b", bf16, {96, 1024}));
  return KernelSpec("rows_behind").output("c", bf16, product * rsqrt(row_mean(product * product) + 1e-5));
}
KernelSpec long_rows_behind(const Dim& m) {
  const Expr product = matmul_nt(input("a", bf16, {m, 1024}), input("b", bf16, {1088, 1024}));
  return KernelSpec("long_rows_behind").output("c", bf16, product * rsqrt(row_mean(product * product) + 1e-5));
}
// An adapter beside a product, which its rows join in a second phase.
KernelSpec product_of_product(const Dim& m) {
  const Expr x = input("x", bf16, {m, 512}), shrunk = matmul_nt(x, input("a", bf16, {16, 512}));
  return KernelSpec("product_of_product")
      .output("y", bf16, matmul_nt(x, input("w", bf16, {96, 512})) + matmul_nt(shrunk, input("b", bf16, {96, 16})));
}

// Sequences have lengths of their own.
Case attention(std::string_view name, const CatalogOptions& options) {
  return {.name = fmt::format("{} {} of {}", name, options.heads, options.d),
          .spec = [=](std::int64_t) { return catalog_spec(name, options); },
          .bounds = {0},
          .sizes = compares_everything() ? Numbers{1, 1, 2, 3, 7, 16} : Numbers{1, 5},
          .settings = {{}, {"workgroups=5"}}}; // which take several parts each, of one or more sequences
}

// Three query tokens a sequence, each of which sees the keys up to itself.
KernelSpec several_tokens(std::int64_t) {
  const Dim sequences = dynamic("sequences");
  const Expr q = input("q", f16, {sequences, 3, 4, 64}), k = input("k", f16, {sequences, 700, 1, 64}),
             v = input("v", f16, {sequences, 700, 1, 64});
  return KernelSpec("several_tokens")
      .output("o", f16, attention(attention_scores(q, k) * 0.125, v, input("lengths", i32, {sequences, 1, 1, 1})));
}

} // namespace

TEST_CASE("batch-invariant rows") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch).with_batch_invariance();
    std::uint64_t seed = 0;
    for (const auto& [name, cols] : {std::pair{"rmsnorm", 4096},
                                     {"softmax", 1000},
                                     {"add_rmsnorm_quant", 16384},
                                     {"layernorm", 333},
                                     {"silu_mul", 512},
                                     {"topk_softmax", 256},
                                     {"group_quant", 1024},
                                     {"mx_quant", 1024},
                                     {"qk_norm", 128},
                                     {"gated_norm", 1024},
                                     {"sample_top_k_top_p", 20000},
                                     {"sample_gumbel", 3000}}) {
      const Case c{.name = fmt::format("{} {}", name, cols),
                   .spec = [=](std::int64_t bound) { return catalog(name, {.cols = cols, .fp8 = to.fp8(), .top = 4}, bound); },
                   .bounds = {0, 1, 8, 200},
                   .sizes = sizes()};
      check(c, to, ++seed);
    }
    const auto running_sums = [](std::int64_t bound) {
      const Expr x = input("x", f16, {bound > 0 ? dynamic("rows", 1, bound) : dynamic("rows"), 5000});
      return KernelSpec("running_sums").output("y", f32, row_cumsum(x));
    };
    check({.name = "running sums", .spec = running_sums, .bounds = {0, 1, 8, 200}, .sizes = sizes()}, to, ++seed);
  }
}

TEST_CASE("batch-invariant products") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch).with_batch_invariance();
    const DType fp8 = to.fp8();
    std::uint64_t seed = 100;
    for (const DType type : {f16, bf16, fp8, DType(i8)}) {
      check(product("gemm", {.dtype = type, .n = 96, .k = 1024}), to, ++seed);
      check(product("gemm_residual", {.dtype = type, .n = 80, .k = 528}), to, ++seed);
    }
    check(product("gemm", {.dtype = f32, .n = 48, .k = 256}), to, ++seed);
    Case swiglu = product("gemm_swiglu_quant", {.dtype = f16, .fp8 = fp8, .n = 64, .k = 512});
    std::erase(swiglu.bounds, 128); // LDS of gfx942 has no room for them, batch-invariant or not
    check(swiglu, to, ++seed);
    for (const DType type : {f16, bf16}) {
      check(product("gemm_w8a16", {.dtype = type, .fp8 = fp8, .n = 64, .k = 768}), to, ++seed);
      check(product("gemm_w_mxfp4", {.dtype = type, .n = 64, .k = 512}), to, ++seed);
      check(product("gemm_dynamic_quant", {.dtype = type, .fp8 = fp8, .n = 64, .k = 1024}), to, ++seed);
      for (const std::int64_t group : {32, 128})
        check(product("gemm_w4a16", {.dtype = type, .group = group, .n = 64, .k = 1024}), to, ++seed);
    }
    for (const DType type : {e2m1, e4m3fn}) check(product("gemm_mx", {.dtype = bf16, .mx = type, .n = 64, .k = 512}), to, ++seed);
    for (const DType type : {f16, fp8}) check(product("gemm", {.dtype = type, .n = 64, .k = 1024, .preshuffled = true}), to, ++seed);
    check(product("gemm_w4a16", {.dtype = bf16, .group = 64, .n = 64, .k = 1024, .preshuffled = true}), to, ++seed);
    check(written("NVFP4 weights", nvfp4_weights, bounds_of_m()), to, ++seed);
    check(written("a norm in front", normed(fp8), bounds_of_m()), to, ++seed);
    check(product("gemm_block_scaled", {.dtype = bf16, .fp8 = fp8, .n = 128, .k = 512}), to, ++seed);
    check(product("router", {.dtype = bf16, .top = 4, .n = 64, .k = 512}), to, ++seed);
    check(product("gemm", {.dtype = fp8, .n = 5120, .k = 256}), to, ++seed); // workgroups with several tiles
    check(written("two products", two_products, {1, 16, 48}), to, ++seed);
    check(written("a product beside rows", product_beside_rows, bounds_of_m()), to, ++seed);
    check(written("rows behind a product", rows_behind, bounds_of_m()), to, ++seed);
    check(written("a phase of rows behind a product", long_rows_behind, bounds_of_m()), to, ++seed);
    Case low_rank = written("a product of a product", product_of_product, bounds_of_m());
    std::erase(low_rank.bounds, 128), low_rank.widest = 64; // LDS of gfx942 has no room for the sums of three products of 128 rows
    check(low_rank, to, ++seed);
    check(written("groups behind a product", groups_behind, {1, 16, 48}), to, ++seed); // of more rows LDS has no room for four waves' sums
  }
}

TEST_CASE("batch-invariant products of experts") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch).with_batch_invariance();
    std::uint64_t seed = 200;
    const CatalogOptions few{.dtype = bf16, .fp8 = to.fp8(), .top = 2, .n = 64, .k = 512, .experts = 6};
    for (const char* name : {"lora_shrink", "lora_expand_add"}) check(product(name, few), to, ++seed);
    for (const char* name : {"grouped_gemm", "grouped_gemm_swiglu", "grouped_gemm_sum"}) {
      CatalogOptions options = few;
      check(product(name, options), to, ++seed);
      options.weights = e2m1;
      check(product(name, options), to, ++seed);
      options.weights = f32, options.dtype = to.fp8(), options.n = 128;
      check(product(name, options), to, ++seed);
    }
  }
}

TEST_CASE("schedules that are not batch-invariant are named so, and give other bits") {
  const Target any = target("gfx942"), wanted = any.with_batch_invariance();
  const auto named = [&](const KernelSpec& spec) {
    const Plan plan = make_plan(spec, any);
    const SumOrder own = sum_order(plan, choose_schedule(plan, any), any);
    return !own.depends_on.empty() || own != invariant_order(plan, any);
  };
  const auto rows = [](std::int64_t bound) { return catalog("rmsnorm", {.cols = 16384}, bound); };
  CHECK(named(catalog("rmsnorm", {.cols = 16384}, 1))); // a cluster
  CHECK(difference({.name = "", .spec = rows, .bounds = {0, 8}, .sizes = {8, 8, 8, 8, 8}}, any, 1).find("differ") != std::string::npos);
  CHECK(difference({.name = "", .spec = rows, .bounds = {0, 8}, .sizes = {8, 8, 8, 8, 8}}, wanted, 1).empty());

  Case experts =
      product("grouped_gemm", {.dtype = bf16, .top = 2, .n = 1024, .k = 512, .experts = 6}); // fewer experts, more parts of a tile
  experts.spec = [of_catalog = experts.spec](std::int64_t bound) { // in f32: rounding to bf16 hides most of the differences
    return KernelSpec("sums").output("y", f32, of_catalog(bound).outputs().front().value.operands().front());
  };
  CHECK(named(experts.spec(16)));
  CHECK(difference(experts, any, 2).find("differ") != std::string::npos);
  Case sequences = attention("attention_decode", {.dtype = f16, .heads = 4, .kv_heads = 1, .d = 64, .length = 1500});
  sequences.settings = {{}}, sequences.sizes = {1, 24};
  CHECK(named(sequences.spec(0)));
  CHECK(difference(sequences, any, 3).find("differ") != std::string::npos);
}

TEST_CASE("batch-invariant states and caches") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch).with_batch_invariance();
    std::uint64_t seed = 400;
    const auto state = [&](std::string_view name, const CatalogOptions& options) {
      check({.name = fmt::format("{} {}, {} tokens", name, to_string(options.dtype), options.tokens),
             .spec = [=](std::int64_t) { return catalog_spec(name, options); },
             .bounds = {0},
             .sizes = compares_everything() ? Numbers{1, 1, 2, 3, 7, 16, 29, 29} : Numbers{1, 9, 29}},
            to, ++seed);
    };
    for (const std::int64_t tokens : {1, 3}) {
      state("conv1d_update", {.cols = 1024, .dtype = bf16, .tokens = tokens});
      state("gated_delta_update", {.cols = 64, .dtype = f32, .heads = 4, .kv_heads = 2, .d = 16, .tokens = tokens});
      state("gated_delta_update", {.cols = 128, .dtype = bf16, .heads = 4, .kv_heads = 2, .d = 16, .state = bf16, .tokens = tokens});
      state("ssm_update", {.cols = 128, .dtype = bf16, .heads = 4, .kv_heads = 2, .d = 16, .tokens = tokens});
    }
    state("rope_kv_write", {.cols = 64, .dtype = bf16, .fp8 = to.fp8(), .heads = 4, .kv_heads = 2});
  }
}

TEST_CASE("rows that are written by index are compared where they lie") {
  const auto spec = [](double added) {
    const Dim rows = dynamic("rows"), slots = dynamic("slots");
    const Expr x = input("x", f32, {rows, 64}), slot = input("slot", i64, {rows, 1});
    return KernelSpec("kept")
        .output("y", f32, x * 2)
        .output("state_out", f32, scatter(input("state", f32, {slots, 64}), slot, x + added), {.in_place_of = "state"});
  };
  const Target to = target("gfx942");
  const KernelSpec one = spec(1), other = spec(2);
  Batches batches(one, 7);
  CHECK(batches.launch(one, build(one, to, {}), 29).empty());
  CHECK(batches.launch(one, build(one, to, {}), 9).empty());
  CHECK(batches.compared() == 9);
  CHECK(batches.launch(other, build(other, to, {}), 9).find("differ") != std::string::npos);
}

TEST_CASE("batch-invariant attention") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch).with_batch_invariance();
    std::uint64_t seed = 300;
    check(attention("attention_decode", {.dtype = f16, .heads = 4, .kv_heads = 1, .d = 64, .length = 1500}), to, ++seed);
    check(attention("attention_decode",
                    {.dtype = bf16, .fp8 = to.fp8(), .heads = 8, .kv_heads = 2, .d = 128, .length = 700, .cache = to.fp8()}),
          to, ++seed);
    check(attention("attention_decode", {.dtype = bf16, .heads = 16, .kv_heads = 1, .d = 576, .length = 600}), to, ++seed);
    check(attention("attention_paged", {.dtype = f16, .heads = 4, .kv_heads = 1, .d = 128, .length = 900, .page = 16}), to, ++seed);
    Case tokens = attention("several tokens", {.heads = 4, .d = 64});
    tokens.spec = several_tokens;
    check(tokens, to, ++seed);
  }
}

} // namespace invariance_numeric
