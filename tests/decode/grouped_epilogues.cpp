// Epilogues of products that reduce groups of columns, and products of normed rows: executed on both architectures, alike in every
// interleaving, and what they refuse.
#include "gen/families/make_plan.h"
#include "gen/families/schedule.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "tests/decode/check_product.h"
#include "tests/errors/expect.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace grouped_epilogues_tests {
using namespace kiln;
using testing::check_product, testing::check_product_orders, testing::up_to;

namespace {

Expr product(std::int64_t most, std::int64_t n, std::int64_t k, DType type = bf16, Layout layout = {}) {
  return matmul_nt(input("a", type, {up_to(most), k}), input("b", type, {n, k}, layout));
}

// A product that is added to a residual stream, and the sums of squares of its groups.
KernelSpec with_squares(std::int64_t most, std::int64_t n, std::int64_t k, std::int64_t group, DType type = bf16, Layout layout = {}) {
  const Expr h = cast(bf16, product(most, n, k, type, layout) + input("residual", bf16, {up_to(most), n}));
  return KernelSpec("with_squares").output("h", bf16, h, {.in_place_of = "residual"}).output("squares", f32, group_sum(h * h, group));
}

// fp8 with a scale for each group.
KernelSpec quantised_by_group(const Target& to, std::int64_t most, std::int64_t n, std::int64_t k, std::int64_t group) {
  const Expr y = product(most, n, k), scale = max(group_absmax(y, group) / 240, 1e-6);
  return KernelSpec("by_group").output("q", to.fp8_e4m3(), y / ungroup(scale, group, n)).output("scale", f32, scale);
}

// SwiGLU to MXFP4 or MXFP8.
KernelSpec swiglu_mx(DType type, std::int64_t most, std::int64_t n, std::int64_t k) {
  const Expr both = product(most, 2 * n, k), y = silu(columns(both, 0, n)) * columns(both, n, n);
  const Expr scale = cast(e8m0, scale_down(cast(e8m0, group_absmax_nan(y, 32)), cast(e8m0, type == e2m1 ? 4 : 256)));
  return KernelSpec("swiglu_mx").output("q", type, cast(type, scale_down(y, ungroup(scale, 32, n)))).output("scale", e8m0, scale);
}

Expr normed(DType type, DType fp8, std::int64_t most, std::int64_t n, std::int64_t k, std::int64_t parts, Layout layout = {}) {
  return matmul_nt_normed(input("a", type, {up_to(most), k}), input("b", fp8, {n, k}, layout), input("weight", type, {k}),
                          input("squares", f32, {up_to(most), parts}), input("scale", f32, {}), 1e-5F);
}
KernelSpec norming(DType type, DType fp8, std::int64_t most, std::int64_t n, std::int64_t k, std::int64_t parts, Layout layout = {}) {
  return KernelSpec("norming").output("c", f32, normed(type, fp8, most, n, k, parts, layout));
}

} // namespace

TEST_CASE("groups of columns behind a product: sums of squares, scales, MX formats, methods, tails, split sums") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    CAPTURE(arch);
    check_product(with_squares(16, 192, 512, 32), to, 1, 13);
    check_product(with_squares(1, 64, 256, 64), to, 2, 1);
    check_product(with_squares(8, 96, 1040, 16, f16), to, 3, 7, {"workgroups=11", "stages=3", "tile_n=32", "waves=2"});
    check_product(with_squares(4, 64, 512, 8), to, 4, 3, {"method=dot"});
    check_product(with_squares(40, 128, 512, 64, f16), to, 5, 33, {"method=matrix32"});
    check_product(with_squares(16, 128, 1024, 32, to.fp8_e4m3()), to, 6, 9, {"method=producers"});
    check_product(with_squares(8, 128, 512, 32, to.fp8_e4m3(), Layout::preshuffled), to, 7, 8);
    check_product(quantised_by_group(to, 16, 256, 512, 128), to, 8, 13);
    check_product(quantised_by_group(to, 1, 256, 512, 128), to, 9, 1);
    check_product(swiglu_mx(e2m1, 16, 96, 512), to, 10, 9);
    check_product(swiglu_mx(e4m3fn, 5, 64, 256), to, 11, 5);
    check_product(KernelSpec("packed").output("q", e2m1, product(1, 64, 256)), to, 12, 1);
    const Expr scaled = product(8, 128, 256) * ungroup(input("of_group", f32, {up_to(8), 4}), 32, 128);
    check_product(KernelSpec("dequantised").output("c", f32, scaled), to, 13, 6);
  }
}

TEST_CASE("groups of columns behind a product do not wait for all of it") {
  const Plan plan = make_plan(quantised_by_group(target("gfx942"), 16, 2048, 512, 128), target("gfx942")); // beyond 1024 columns
  const auto config = std::get<GemmConfig>(choose_schedule(plan, target("gfx942")).config);
  CHECK(!config.rows_at_end);
  CHECK(config.epilogue_group == 128);
  CHECK(config.tile_n % 128 == 0);
  const Plan ragged = make_plan(with_squares(16, 72, 512, 16), target("gfx942")); // no whole groups: the last workgroup reduces rows
  CHECK(std::get<GemmConfig>(choose_schedule(ragged, target("gfx942")).config).rows_at_end);
  // 64 rows of two groups of 128 columns, of a gate and its partner, are more than LDS has.
  const Expr both = product(64, 512, 256);
  const Expr y = silu(columns(both, 0, 256)) * columns(both, 256, 256);
  check_product(KernelSpec("gate").output("y", f32, y - ungroup(group_max(y, 128), 128, 256)), target("gfx942"), 1, 50);
  const Expr wide = product(64, 4096, 256);
  const Expr z = silu(columns(wide, 0, 2048)) * columns(wide, 2048, 2048); // of more columns: a phase of its own
  CHECK(make_plan(KernelSpec("gate").output("y", f32, group_max(z, 128)), target("gfx942")).phases.size() == 2);
}

TEST_CASE("rows normed inside the product: types, parts, tails, many rows, staged or not") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const DType e4 = to.fp8_e4m3(), e5 = to.fp8_e5m2();
    CAPTURE(arch);
    check_product(norming(f16, e4, 16, 77, 1040, 65), to, 1, 13, {"staged=0"});
    check_product(norming(f16, e4, 16, 77, 1040, 65), to, 2, 13, {"staged=1"});
    check_product(norming(bf16, e5, 8, 64, 512, 1), to, 3, 8);
    check_product(norming(bf16, e4, 33, 40, 272, 17), to, 4, 30, {"tile_n=16", "staged=0"});
    check_product(norming(bf16, e4, 33, 40, 272, 17), to, 5, 30, {"tile_n=16", "staged=1"});
    check_product(norming(f16, e4, 1, 1, 16, 3), to, 6, 1);
    check_product(norming(bf16, e4, 64, 48, 768, 24, Layout::preshuffled), to, 7, 50);
    check_product(norming(f16, e4, 8, 96, 2048, 128), to, 8, 8, {"staged=1", "workgroups=11", "stages=3", "tile_n=32", "waves=2"});
    check_product(norming(f16, e4, 8, 96, 2048, 128), to, 9, 8, {"staged=0", "workgroups=11", "stages=3", "tile_n=32", "waves=2"});
    const Expr both = normed(bf16, e4, 4, 128, 512, 16);
    check_product(KernelSpec("swiglu").output("q", e4, silu(columns(both, 0, 64)) * columns(both, 64, 64)), to, 10, 3);
    const Expr quantised = matmul_nt_quantised(input("a", bf16, {up_to(8), 1040}), input("b", e4, {96, 1040}));
    check_product(KernelSpec("quantising").output("c", f32, quantised), to, 11, 8, {"staged=1", "workgroups=7", "stages=2", "tile_n=32"});
    check_product(KernelSpec("quantising").output("c", f32, quantised), to, 12, 8, {"staged=0"});
  }
}

TEST_CASE("groups behind split sums and staged rows: the same bits in 20 interleavings of two launches on one workspace") {
  check_product_orders(quantised_by_group(target("gfx942"), 8, 64, 1024, 32), "gfx942", 7, 20, {"workgroups=5", "tile_n=32", "stages=2"});
  check_product_orders(swiglu_mx(e2m1, 8, 64, 1024), "gfx950", 7, 20, {"workgroups=5", "tile_n=32", "stages=2"});
  check_product_orders(norming(bf16, e4m3fnuz, 8, 48, 1024, 32), "gfx942", 7, 20, {"staged=1", "workgroups=5", "tile_n=16", "stages=2"});
  check_product_orders(norming(bf16, e4m3fn, 8, 48, 1024, 32), "gfx950", 7, 20, {"staged=1", "workgroups=5", "tile_n=16", "stages=2"});
}

TEST_CASE("what normed products and groups of columns take") {
  const Dim m = up_to(8);
  const Expr a = input("a", bf16, {m, 128}), b = input("b", e4m3fnuz, {64, 128}), weight = input("weight", bf16, {128});
  const Expr squares = input("squares", f32, {m, 4}), scale = input("scale", f32, {});
  const std::string op = "operation 'matmul_nt_normed'";
  expect_user_error([&] { matmul_nt_normed(a, input("b", bf16, {64, 128}), weight, squares, scale, 1e-5F); }, op,
                    "bf16, normed and quantised, and bf16", "an fp8 for b");
  expect_user_error([&] { matmul_nt_normed(a, b, input("weight", f32, {128}), squares, scale, 1e-5F); }, op + ", operand weight",
                    "f32[128]", "bf16[128]");
  expect_user_error([&] { matmul_nt_normed(a, b, weight * 2, squares, scale, 1e-5F); }, op + ", operand weight", "not an input",
                    "a kernel of its own");
  expect_user_error([&] { matmul_nt_normed(a, b, weight, input("s", f32, {4, 4}), scale, 1e-5F); }, op + ", operand squares", "f32[4, 4]",
                    "f32[m[1..8], 4]");
  expect_user_error([&] { matmul_nt_normed(a, b, weight, input("s", f32, {m, dynamic("p")}), scale, 1e-5F); }, op + ", operand squares",
                    "only at launch", "a number");
  expect_user_error([&] { matmul_nt_normed(a, b, weight, input("s", f32, {m, 5000}), scale, 1e-5F); }, op + ", operand squares",
                    "5000 parts", "larger groups");
  expect_user_error([&] { matmul_nt_normed(a, b, weight, squares, input("scale", f32, {1}), 1e-5F); }, op + ", operand scale", "f32[1]",
                    "f32[]");
  expect_user_error([&] { matmul_nt_normed(a, b, weight, squares, scale, 0); }, op, "epsilon is 0", "a positive number");
  expect_user_error(
      [&] {
        const Expr first = matmul_nt_normed(a, b, weight, squares, scale, 1e-5F);
        const Expr second = matmul_nt_normed(a, input("b2", e4m3fnuz, {64, 128}), weight, squares, scale, 1e-6F);
        make_plan(KernelSpec("k").output("c", f32, first * second), target("gfx942"));
      },
      "kernel 'k'", "other weights, squares or scales", "norm a once");
  expect_user_error([&] { build_kernel(norming(bf16, e4m3fnuz, 16, 64, 8192, 8), target("gfx942"), {}, {"staged=1", "workgroups=4"}); },
                    "schedule of 'norming'", "bytes of LDS", "a smaller tile_n");
}

} // namespace grouped_epilogues_tests
