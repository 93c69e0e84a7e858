// Ill-formed MX operands: element types, scales, blocks, and what two numbers in a byte do not allow.
#include "gen/catalog/catalog.h"
#include "gen/families/make_plan.h"
#include "gen/families/schedule.h"
#include "gen/plan/target.h"
#include "gen/reference/tensor.h"
#include "gen/spec/math.h"
#include "tests/errors/expect.h"

using namespace kiln;

namespace {

Expr rows_of(const char* name, DType type, std::int64_t cols, Layout layout = Layout::contiguous) {
  return input(name, type, {dynamic("rows"), cols}, layout);
}
void plan_of(DType type, const Expr& value, const char* arch = "gfx942") {
  make_plan(KernelSpec("k").output("y", type, value), target(arch));
}

} // namespace

TEST_CASE("blocks that do not divide") {
  const Expr x = rows_of("x", f16, 100);
  expect_user_error([&] { mx_scale(e2m1, x); }, "operation 'mx_scale'", "100 columns are no whole blocks of 32", "pad the rows to 128");
  expect_user_error([&] { mx_quantise(e4m3fn, x, rows_of("s", e8m0, 4)); }, "operation 'mx_quantise'", "100 columns", "128");
  expect_user_error([] { rows_of("q", e2m1, 100); }, "input 'q'", "e2m1[rows, 100], whose rows are no whole blocks of 32",
                    "multiple of 32");
  expect_user_error([] { input("q", e2m1, {4, dynamic("cols")}); }, "input 'q'", "no whole blocks", "a number, a multiple of 32");
  expect_user_error([&] { KernelSpec("k").output("y", e2m1, x); }, "output 'y'", "e2m1[rows, 100]", "multiple of 32");
  expect_user_error([] { catalog_spec("silu_mul_mx_quant", {.cols = 4100}); }, "catalogue entry 'silu_mul_mx_quant'", "cols is 4100",
                    "multiple of 32");
  expect_user_error([] { catalog_spec("gemm_w_mxfp4", {.k = 4104}); }, "catalogue entry 'gemm_w_mxfp4'", "k is 4104", "multiple of 32");
}

TEST_CASE("scales and elements of other types and shapes") {
  const Expr x = rows_of("x", f16, 128);
  expect_user_error([&] { scale_down(x, rows_of("s", f32, 128)); }, "operation 'scale_down'", "its scale is f32", "cast(e8m0, ...)");
  expect_user_error([&] { mx_quantise(e2m1, x, rows_of("s", e8m0, 3)); }, "operation 'mx_quantise'",
                    "its scale has shape [rows, 3], but 128 columns make 4 blocks of 32", "last dimension is 4");
  expect_user_error([&] { mx_dequantise(rows_of("q", e2m1, 128), rows_of("s", e8m0, 2)); }, "operation 'mx_dequantise'", "4 blocks",
                    "last dimension is 4");
  expect_user_error([&] { mx_scale(e4m3fnuz, x); }, "operation 'mx_scale'", "e4m3fnuz is no element type of an MX format",
                    "e4m3fn or e5m2");
  expect_user_error([&] { mx_dequantise(x, rows_of("s", e8m0, 4)); }, "operation 'mx_dequantise'", "f16 is no element type", "e2m1");
  expect_user_error([] { catalog_spec("mx_quant", {.mx = f16}); }, "catalogue entry 'mx_quant'", "mx is f16", "e2m1, e4m3fn or e5m2");
  const Expr a = input("a", bf16, {dynamic("m", 1, 16), 256}), b = input("b", e2m1, {64, 256});
  expect_user_error([&] { matmul_nt_mx(a, b, input("s", e8m0, {64, 4})); }, "operation 'matmul_nt_mx', operand scale",
                    "it is e8m0[64, 4], but b [64, 256] has 8 blocks of 32 in each of its rows", "e8m0[64, 8]");
  expect_user_error([&] { matmul_nt_mx(a, b, input("s", u8, {64, 8})); }, "operation 'matmul_nt_mx', operand scale", "it is u8[64, 8]",
                    "e8m0[64, 8]");
  expect_user_error([&] { matmul_nt_mx(a, input("b", u8, {64, 256}), input("s", e8m0, {64, 8})); }, "operation 'matmul_nt_mx'",
                    "no product of bf16 and MX numbers in u8", "e2m1 for b");
  expect_user_error([&] { matmul_nt(a, b); }, "operation 'matmul_nt'", "no product of bf16 and e2m1", "f16 or bf16 with itself");
}

TEST_CASE("OCP's fp8 on a target without it: MX elements only") {
  const Expr x = rows_of("x", f16, 128), q = rows_of("q", e4m3fn, 128);
  CHECK_NOTHROW(plan_of(e4m3fn, mx_quantise(e4m3fn, x, mx_scale(e4m3fn, x))));
  CHECK_NOTHROW(plan_of(f16, mx_dequantise(q, rows_of("s", e8m0, 4))));
  expect_user_error([&] { plan_of(e4m3fn, x); }, "output 'y'", "e4m3fn is not native to gfx942", "use e4m3fnuz");
  expect_user_error([&] { plan_of(f16, mx_dequantise(q, rows_of("s", e8m0, 4)) + q); }, "input 'q'", "e4m3fn is not native", "e4m3fnuz");
}

TEST_CASE("two numbers in a byte") {
  const Expr q = rows_of("q", e2m1, 128), s = rows_of("s", e8m0, 4);
  expect_user_error([] { rows_of("q", e2m1, 128, Layout::strided); }, "input 'q'", "it is e2m1 and strided", "Layout::contiguous");
  expect_user_error([&] { plan_of(f16, partner(mx_dequantise(rows_of("q", e2m1, 96), rows_of("s", e8m0, 3)), 48)); }, "operation 'partner'",
                    "which is e2m1", "in order");
  expect_user_error([&] { plan_of(e2m1, partner(mx_quantise(e2m1, rows_of("x", f16, 128), s), 1)); }, "operation 'partner'",
                    "its operand is e2m1", "its numbers in f32");
  expect_user_error([&] { plan_of(f16, gather(input("t", e2m1, {dynamic("n", 1), 128}), input("i", i32, {dynamic("rows"), 1})) * 2.0); },
                    "input 't'", "it is e2m1, and an index, tile or repeat takes parts of it", "in order");
  expect_user_error([&] { plan_of(f16, rows_of("x", f16, 1024) * ungroup(rows_of("g", e2m1, 32), 32, 1024)); }, "input 'g'",
                    "it is e2m1, but one value a group", "for each column");
  const Plan plan = make_plan(catalog_spec("mx_dequant", {.cols = 128}), target("gfx950"));
  const Schedule schedule = choose_schedule(plan, target("gfx950"));
  expect_user_error([&] { with_overrides(schedule, {"vec=1", "threads_per_row=64"}, plan, target("gfx950")); }, "schedule of 'mx_dequant'",
                    "vec is 1, but 'q' is e2m1, two numbers a byte", "vec of 2");
  expect_user_error([] { Tensor(e2m1, {3, 33}); }, "tensor", "rows of 33 e2m1 begin inside of a byte", "even size");
}
