// Products in one launch with others, executed: unlike matrices, rows beside them, sums of several workgroups, launches again, drawn pairs.
#include "gen/catalog/catalog.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace together_gemm_numeric {
using namespace kiln;

namespace {

using Settings = std::vector<std::string>;
using Sizes = std::map<std::string, std::int64_t>;

void check(const KernelSpec& spec, const Target& to, const Sizes& sizes, const Settings& settings = {}, testing::OrderOptions orders = {}) {
  CompileOptions compile = own_process_options(process_environment());
  compile.warnings_as_errors = true;
  const BuiltKernel built = build_kernel(spec, to, compile, settings);
  INFO(to.arch(), "\n", to_text(built.schedule), to_text(spec));
  REQUIRE(!built.source.launch.behind.empty());
  const auto wrong = testing::check_orders(spec, built, random_inputs(spec, 17, {.sizes = sizes}), orders);
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

const testing::OrderOptions twice{.count = 2, .launches = 2, .side_by_side = true};

Expr product(const std::string& name, DType type, const Dim& m, std::int64_t n, std::int64_t k) {
  return matmul_nt(input(name + "_a", type, {m, k}), input(name + "_b", type, {n, k}));
}

void add_outputs(KernelSpec& spec, const KernelSpec& part) {
  for (const Output& o : part.outputs()) spec.output(o.name, o.dtype, o.value, {.in_place_of = o.in_place_of, .layout = o.layout});
}

// One kind of product, with inputs of its own.
Expr kind_of_product(std::uint64_t kind, const std::string& name, const Target& to, const Dim& m, std::int64_t n, std::int64_t k) {
  const DType fp8 = to.fp8();
  const auto in = [&](const char* what, DType type, Shape shape) { return input(name + what, type, std::move(shape)); };
  const std::int64_t groups = group_count(k, scale_block);
  switch (kind) {
  case 0: return product(name, f16, m, n, k);
  case 1: return product(name, bf16, m, n, k) + in("_bias", bf16, {n});
  case 2: return product(name, fp8, m, n, k) * in("_a_scale", f32, {m, 1}) * in("_b_scale", f32, {n});
  case 3: return silu(product(name, i8, m, n, k) * in("_scale", f32, {}));
  case 4: return matmul_nt(in("_a", bf16, {m, k}), in("_b", fp8, {n, k})) * in("_b_scale", f32, {n});
  case 5:
    return matmul_nt_w4(in("_a", f16, {m, k}), in("_b", u8, {n, k / 2}), in("_scale", f16, {n, groups}), in("_zero", u8, {n, groups}), 128);
  case 6:
    return matmul_nt_scaled(in("_a", fp8, {m, k}), in("_b", fp8, {n, k}), in("_a_scale", f32, {m, groups}),
                            in("_b_scale", f32, {group_count(n, scale_block), groups}));
  case 7: return matmul_nt_mx(in("_a", bf16, {m, k}), in("_b", e2m1, {n, k}), in("_scale", e8m0, {n, k / 32}));
  default: return matmul_nt_quantised(in("_a", bf16, {m, k}), in("_b", fp8, {n, k})) * in("_b_scale", f32, {n});
  }
}
constexpr std::uint64_t kinds = 9;

} // namespace

TEST_CASE("fused launch: a router in bf16 beside gate and up in fp8, unlike in A, n, k and types") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const Dim m = dynamic("m", 1, 33);
    const std::int64_t n = 96;
    const Expr both = matmul_nt(input("q", to.fp8(), {m, 768}), input("w", to.fp8(), {2 * n, 768}));
    const auto half = [&](std::int64_t first) {
      return columns(both, first, n) * (input("q_scale", f32, {m, 1}) * input("w_scale", f32, {}));
    };
    KernelSpec spec("experts");
    add_outputs(spec, catalog_spec("router", {.dtype = bf16, .top = 4, .m = 33, .n = 64, .k = 512}));
    spec.output("hidden", to.fp8(), silu(half(0)) * half(n) / input("hidden_scale", f32, {}));
    for (const std::int64_t rows : {1, 16, 33}) check(spec, to, {{"m", rows}}, {}, twice);
  }
}

TEST_CASE("fused launch: a product beside norms of other rows, and beside a run of elements") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const Dim m = dynamic("m", 1, 16), rows = dynamic("rows");
    const Expr x = input("x", f16, {rows, 2, 640}), z = input("z", f32, {dynamic("elements")});
    const Expr norm = x * rsqrt(row_mean(x * x) + 1e-6) * input("gain", f16, {640});
    KernelSpec spec("normed");
    spec.output("y", f16, norm).output("c", f32, product("c", f16, m, 80, 1024)).output("doubled", f32, z * 2);
    KernelSpec other_way("normed");
    other_way.output("c", f32, product("c", f16, m, 80, 1024)).output("y", f16, norm);
    check(spec, to, {{"m", 5}, {"rows", 3}, {"elements", 3000}}, {}, twice);
    check(spec, to, {{"m", 16}, {"rows", 0}, {"elements", 0}}, {}, twice);
    check(other_way, to, {{"m", 1}, {"rows", 9}}, {"y.threads_per_row=64", "y.rows_per_block=1"}, twice);
    check(other_way, to, {{"m", 7}, {"rows", 4}}, {"y.threads_per_row=64", "y.rows_per_block=8", "c.waves_per_eu=2"}, twice);
  }
}

TEST_CASE("fused launch: sums of several workgroups of two products, each in its part of the workspace, in any order and again") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const Dim m = dynamic("m", 1, 16);
    KernelSpec spec("split");
    spec.output("c", f32, product("c", f16, m, 48, 2048)).output("d", f32, product("d", to.fp8(), m, 32, 4096));
    const testing::OrderOptions orders{.count = 20, .launches = 2, .side_by_side = true};
    check(spec, to, {{"m", 11}}, {"c.workgroups=7", "c.tile_n=16", "d.workgroups=5", "d.tile_n=16"}, orders);
    check(spec, to, {{"m", 16}}, {"c.workgroups=3", "c.tile_n=16", "d.workgroups=6", "d.tile_n=16"}, orders);
  }
}

TEST_CASE("fused launch: methods, each with threads and LDS of its own") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const Dim m = dynamic("m", 1, 4);
    KernelSpec spec("methods");
    spec.output("c", f32, product("c", f16, m, 64, 1024)).output("d", f32, product("d", f16, m, 96, 768));
    for (const auto& [c, d] : {std::pair{"dot", "matrix"}, {"sparse", "dot"}, {"matrix", "matrix32"}})
      check(spec, to, {{"m", 3}}, {fmt::format("c.method={}", c), fmt::format("d.method={}", d)}, twice);
    check(spec, to, {{"m", 4}}, {"c.method=producers", "d.waves_per_eu=2"}, twice);
  }
}

TEST_CASE("fused launch: drawn pairs of products and rows, of 1 to 33 rows") {
  constexpr std::int64_t columns[] = {16, 48, 100, 128, 160}, rows[] = {1, 3, 16, 33};
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    for (const std::string_view arch : known_archs()) {
      const Target to = target(arch);
      if (!testing::runs_in_slice(to, seed)) continue;
      std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL;
      const auto draw = [&](std::uint64_t count) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        return (state >> 33U) % count;
      };
      const Dim m = dynamic("m", 1, 33);
      KernelSpec spec(fmt::format("drawn{}", seed));
      for (const char* name : {"c", "d"})
        spec.output(
            name, f32,
            kind_of_product(draw(kinds), name, to, m, columns[draw(std::size(columns))], 256 * static_cast<std::int64_t>(1 + draw(4))));
      if (draw(3) == 0) spec.output("y", f32, row_sum(input("x", bf16, {m, 3, 256})));
      CAPTURE(seed);
      check(spec, to, {{"m", rows[draw(std::size(rows))]}}, {}, twice);
    }
  }
}

} // namespace together_gemm_numeric
