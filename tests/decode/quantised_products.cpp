// Products of quantised operands, executed on both architectures: zero points of 4 bits, operands of MX formats, rows quantised inside.
#include "gen/catalog/catalog.h"
#include "gen/families/make_plan.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/decode/check_product.h"
#include "tests/errors/expect.h"
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace quantised_products_tests {
using namespace kiln;
using testing::check_product, testing::check_product_orders, testing::up_to;

namespace {

KernelSpec with_packed_zeros(DType type, std::int64_t most, std::int64_t n, std::int64_t k, std::int64_t group, Layout layout = {}) {
  const std::int64_t groups = group_count(k, group);
  const Expr product = matmul_nt_w4(input("a", type, {up_to(most), k}), input("b", u8, {n, k / 2}, layout),
                                    input("scale", type, {n, groups}), input("zero", i32, {groups, n / 8}), group);
  return KernelSpec("w4").output("c", f32, product);
}

Expr of_mx(DType a, DType b, std::int64_t most, std::int64_t n, std::int64_t k, Layout layout = {}) {
  return matmul_nt_mx_mx(input("a", a, {up_to(most), k}), input("b", b, {n, k}, layout), input("a_scale", e8m0, {up_to(most), k / 32}),
                         input("b_scale", e8m0, {n, k / 32}));
}
KernelSpec mx_product(DType a, DType b, std::int64_t most, std::int64_t n, std::int64_t k, Layout layout = {}) {
  return KernelSpec("mx").output("c", f32, of_mx(a, b, most, n, k, layout));
}

KernelSpec quantising(DType type, DType fp8, std::int64_t most, std::int64_t n, std::int64_t k, Layout layout = {}) {
  const Expr product = matmul_nt_quantised(input("a", type, {up_to(most), k}), input("b", fp8, {n, k}, layout));
  return KernelSpec("quantising").output("c", f32, product);
}

} // namespace

TEST_CASE("zero points of 4 bits: types, groups, methods, tails, columns, experts") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    CAPTURE(arch);
    check_product(with_packed_zeros(f16, 16, 72, 1056, 128), to, 1, 13); // tails of n, of k and of groups
    check_product(with_packed_zeros(bf16, 8, 64, 512, 32), to, 2, 8);
    check_product(with_packed_zeros(f16, 3, 40, 480, 96), to, 3, 3); // groups that steps do not divide
    check_product(with_packed_zeros(bf16, 33, 48, 768, 256), to, 4, 30, {"tile_n=16"});
    check_product(with_packed_zeros(f16, 4, 80, 1024, 64), to, 5, 3, {"method=dot", "tile_n=16", "stages=1"});
    check_product(with_packed_zeros(f16, 40, 96, 352, 32), to, 6, 35, {"method=matrix32", "loads=2", "stages=1", "tile_n=32"});
    check_product(with_packed_zeros(f16, 8, 64, 512, 128, Layout::preshuffled), to, 7, 5);
    const Expr both = with_packed_zeros(f16, 8, 96, 256, 64).outputs()[0].value;
    check_product(KernelSpec("pair").output("c", f16, columns(both, 0, 40) * columns(both, 56, 40)), to, 8, 7);
    const Dim m = up_to(6);
    const Expr of_experts = matmul_nt_w4(input("a", f16, {m, 128}), input("b", u8, {5, 72, 64}), input("scale", f16, {5, 72, 2}),
                                         input("zero", i32, {5, 2, 9}), 64);
    check_product(KernelSpec("experts").output("y", f32, by_expert(of_experts, input("order", i32, {m, 2}), input("offsets", i32, {6}))),
                  to, 9, 6);
  }
}

TEST_CASE("operands of MX formats: a8w8, a4w4, a8w4, tails of k and n, many rows, preshuffled, columns, experts") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    CAPTURE(arch);
    check_product(mx_product(e4m3fn, e4m3fn, 16, 77, 1056), to, 1, 13); // k is 8 instructions and a block
    check_product(mx_product(e2m1, e2m1, 16, 77, 1056), to, 2, 13);
    check_product(mx_product(e4m3fn, e2m1, 16, 77, 1056), to, 3, 13);
    check_product(mx_product(e4m3fn, e2m1, 8, 64, 2048), to, 4, 8);
    check_product(mx_product(e5m2, e5m2, 33, 40, 544), to, 5, 30);
    check_product(mx_product(e5m2, e2m1, 33, 40, 992), to, 6, 33, {"tile_n=16"});
    check_product(mx_product(e2m1, e2m1, 1, 1, 32), to, 7, 1);
    check_product(mx_product(e4m3fn, e2m1, 5, 17, 96), to, 8, 4, {"loads=2", "stages=1"});
    check_product(mx_product(e4m3fn, e4m3fn, 64, 48, 768, Layout::preshuffled), to, 9, 50);
    check_product(mx_product(e4m3fn, e2m1, 8, 96, 4096), to, 10, 8, {"workgroups=11", "stages=3", "tile_n=32", "waves=2"});
    const Expr both = of_mx(e4m3fn, e2m1, 8, 192, 256);
    check_product(KernelSpec("swiglu").output("y", bf16, silu(columns(both, 0, 96)) * columns(both, 96, 96)), to, 11, 7);
    const Dim m = up_to(6);
    const Expr of_experts = matmul_nt_mx_mx(input("a", e4m3fn, {m, 160}), input("b", e2m1, {5, 72, 160}), input("a_scale", e8m0, {m, 5}),
                                            input("b_scale", e8m0, {5, 72, 5}));
    check_product(KernelSpec("experts").output("y", f32, by_expert(of_experts, input("order", i32, {m, 2}), input("offsets", i32, {6}))),
                  to, 12, 6);
  }
}

TEST_CASE("operands of MX formats: every code with scales of all sizes, NaN and infinity") {
  for (const std::string_view arch : known_archs())
    for (const auto& [a, b] : {std::pair(e4m3fn, e4m3fn), std::pair(e5m2, e5m2), std::pair(e4m3fn, e2m1), std::pair(e2m1, e2m1)}) {
      CAPTURE(fmt::format("{} {} {}", arch, to_string(a), to_string(b)));
      const KernelSpec spec = mx_product(a, b, 16, 64, 256);
      CompileOptions compile = own_process_options(process_environment());
      const BuiltKernel built = build_kernel(spec, target(arch), compile);
      Inputs inputs = random_inputs(spec, 1, {.dynamic_size = 16});
      for (const auto& [name, type] : {std::pair("a", a), std::pair("b", b)}) {
        Tensor &values = inputs.tensors.at(name), &scale = inputs.tensors.at(fmt::format("{}_scale", name));
        const std::uint64_t codes = type == e2m1 ? 16 : 256, other = name[0] == 'b' ? 7 : 3;
        for (std::int64_t i = 0; i < values.size(); ++i) // specials in every eighth row only: they decide all of it
          for (std::uint64_t code = static_cast<std::uint64_t>(i) * other % codes;; code = (code + 1) % codes) {
            values.set_bits(i, code);
            if (i / 256 % 8 == 7 || std::isfinite(values.at(i))) break;
          }
        for (std::int64_t i = 0; i < scale.size(); ++i)
          scale.set_bits(i, static_cast<std::uint64_t>(i / 8 % 8 == 5 ? i * 37 % 256 : 100 + i * 11 % 50)); // every eighth row of any size
      }
      const EmulatedRun done = emulate(spec, built.source, built.object, inputs, {});
      CHECK(done.result.defects.empty());
      const auto wrong = find_mismatch(done.outputs, evaluate_bounds(spec, inputs, bounds_options(built.schedule)));
      CHECK_MESSAGE(!wrong, (wrong ? to_text(*wrong) : std::string()));
    }
}

TEST_CASE("rows quantised inside the product: types, tails, many rows, rows of zeros, of NaN and of infinities") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const DType e4 = to.fp8_e4m3(), e5 = to.fp8_e5m2();
    CAPTURE(arch);
    check_product(quantising(f16, e4, 16, 77, 1040), to, 1, 13);
    check_product(quantising(bf16, e5, 8, 64, 512), to, 2, 8);
    check_product(quantising(bf16, e4, 33, 40, 272), to, 3, 30, {"tile_n=16"});
    check_product(quantising(f16, e4, 1, 1, 16), to, 4, 1);
    check_product(quantising(bf16, e4, 64, 48, 768, Layout::preshuffled), to, 5, 50);
    check_product(quantising(f16, e4, 8, 96, 2048), to, 6, 8, {"workgroups=11", "stages=3", "tile_n=32", "waves=2"});
    const KernelSpec spec = quantising(bf16, e4, 8, 32, 256);
    CompileOptions compile = own_process_options(process_environment());
    const BuiltKernel built = build_kernel(spec, to, compile);
    Inputs inputs = random_inputs(spec, 1, {.dynamic_size = 8});
    Tensor& a = inputs.tensors.at("a");
    for (std::int64_t i = 0; i < 256; ++i) a.set(i, 0), a.set(256 + i, a.at(256 + i) * 1e-36F), a.set(512 + i, a.at(512 + i) * 1e30F);
    a.set(3 * 256 + 7, INFINITY);
    a.set(4 * 256 + 9, NAN);
    const EmulatedRun done = emulate(spec, built.source, built.object, inputs, {});
    CHECK(done.result.defects.empty());
    const auto wrong = find_mismatch(done.outputs, evaluate_bounds(spec, inputs, bounds_options(built.schedule)));
    CHECK_MESSAGE(!wrong, (wrong ? to_text(*wrong) : std::string()));
    const Tensor& c = done.outputs.at("c");
    CHECK(c.at(5) == 0);
    CHECK(std::isnan(c.at(3 * 32)));
    CHECK(std::isnan(c.at(4 * 32)));
    CHECK(std::isfinite(c.at(2 * 32)));
  }
}

TEST_CASE("quantised products: the same bits in 20 interleavings") {
  check_product_orders(mx_product(e4m3fn, e2m1, 8, 48, 1024), "gfx950", 7, 20, {"workgroups=5", "tile_n=16", "stages=2"});
  check_product_orders(quantising(bf16, e4m3fnuz, 8, 48, 1024), "gfx942", 7, 20, {"workgroups=5", "tile_n=16", "stages=2"});
}

TEST_CASE("what quantised products take") {
  const Dim m = up_to(8);
  const Expr a = input("a", f16, {m, 128}), b = input("b", u8, {64, 64}), scale = input("scale", f16, {64, 2});
  const std::string zero = "operation 'matmul_nt_w4', operand zero";
  expect_user_error([&] { matmul_nt_w4(a, b, scale, input("zero", i32, {2, 64}), 64); }, zero, "i32[2, 64]", "i32[2, 8]");
  expect_user_error([&] { matmul_nt_w4(a, b, scale, input("zero", i32, {64, 2}), 64); }, zero, "i32[64, 2]", "i32[2, 8]");
  expect_user_error([&] { matmul_nt_w4(a, input("b", u8, {60, 64}), input("scale", f16, {60, 2}), input("zero", i32, {2, 8}), 64); }, zero,
                    "60 rows", "a multiple of 8 rows");
  expect_user_error([&] { catalog_spec("gemm_w4a16", {.n = 20, .packed_zeros = true}); }, "catalogue entry 'gemm_w4a16'", "n is 20",
                    "multiple of 8");
  const Expr w4 = matmul_nt_w4(a, b, scale, input("zero", i32, {2, 8}), 64);
  expect_user_error([&] { make_plan(KernelSpec("k").output("y", f16, columns(w4, 4, 32)), target("gfx942")); },
                    "operation 'columns' of a product with 'b'", "inside of a word of 8 zero points", "multiple of 8");

  const std::string mx = "operation 'matmul_nt_mx_mx'";
  const auto mx_of = [&](DType of_a, DType of_b, std::int64_t k) {
    return matmul_nt_mx_mx(input("a", of_a, {m, k}), input("b", of_b, {64, k}), input("s", e8m0, {m, 4}), input("t", e8m0, {64, 4}));
  };
  expect_user_error([&] { mx_of(e2m1, e4m3fn, 128); }, mx, "e2m1 and e4m3fn", "e2m1 for b alone");
  expect_user_error([&] { mx_of(e4m3fnuz, e4m3fnuz, 128); }, mx, "e4m3fnuz", "e4m3fn or e5m2");
  expect_user_error([&] { mx_of(e4m3fn, e4m3fn, 144); }, mx, "k is 144", "pad k to 160");
  expect_user_error([&] { mx_of(e4m3fn, e4m3fn, 256); }, mx + ", operand a_scale", "8 blocks of 32", "e8m0[m[1..8], 8]");
  expect_user_error([&] { catalog_spec("gemm_mx", {.mx = e2m1, .weights = e4m3fn}); }, mx, "e2m1 and e4m3fn", "e2m1 for b alone");
  expect_user_error([&] { catalog_spec("gemm_mx", {.dtype = i8}); }, "catalogue entry 'gemm_mx'", "dtype is i8", "f16, bf16 or f32");

  const std::string quantises = "operation 'matmul_nt_quantised'";
  expect_user_error([&] { matmul_nt_quantised(a, input("b", f16, {64, 128})); }, quantises, "f16, quantised, and f16", "an fp8 for b");
  expect_user_error([&] { matmul_nt_quantised(input("a", f32, {m, 128}), input("b", e4m3fn, {64, 128})); }, quantises, "f32",
                    "f16 or bf16");
  expect_user_error([&] { matmul_nt_quantised(a, input("b", e4m3fn, {4, 64, 128})); }, quantises, "a matrix for each expert",
                    "kernel of its own");
  expect_user_error([] { catalog_spec("gemm_dynamic_quant", {.dtype = f32}); }, "catalogue entry 'gemm_dynamic_quant'", "dtype is f32",
                    "f16 or bf16");
  expect_user_error([&] { make_plan(quantising(f16, e4m3fn, 8, 64, 128), target("gfx942")); }, "input 'b'", "not native", "e4m3fnuz");
}

} // namespace quantised_products_tests
