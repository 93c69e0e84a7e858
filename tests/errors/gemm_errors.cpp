// Plain matrix products that cannot be: operands, columns, plans and schedules are refused with subject, fact and remedy.
#include "expect.h"
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "gen/spec/math.h"

using namespace kiln;

namespace {

const Dim m16 = dynamic("m", 1, 16);
const Target gfx942 = target("gfx942");

Expr a_of(DType type, std::int64_t k, Dim m = m16) { return input("a", type, {m, k}); }
Expr b_of(DType type, std::int64_t n, std::int64_t k) { return input("b", type, {n, k}); }
KernelSpec product(const Expr& c) { return KernelSpec("gemm").output("c", f32, c); }

} // namespace

TEST_CASE("operands that do not fit each other") {
  expect_user_error([] { matmul_nt(a_of(f16, 64), b_of(f16, 32, 128)); }, "operation 'matmul_nt'", "k is 64", "[n, k]");
  expect_user_error([] { matmul_nt(a_of(f32, 64), b_of(i8, 32, 64)); }, "operation 'matmul_nt'", "no product of f32 and i8",
                    "f32 with itself");
  expect_user_error([] { matmul_nt(a_of(f16, 64), b_of(f32, 32, 64)); }, "operation 'matmul_nt'", "no product of f16 and f32",
                    "f32 with itself");
  expect_user_error([] { matmul_nt(a_of(f16, 64), b_of(bf16, 32, 64)); }, "operation 'matmul_nt'", "no product of f16 and bf16", "itself");
  expect_user_error([] { matmul_nt(a_of(e4m3fn, 64), b_of(e4m3fnuz, 32, 64)); }, "operation 'matmul_nt'", "no product", "same kind");
  expect_user_error([] { matmul_nt(a_of(i8, 64), b_of(f16, 32, 64)); }, "operation 'matmul_nt'", "no product of i8 and f16", "i8");
  expect_user_error([] { matmul_nt(a_of(f16, 64) * 2.0, b_of(f16, 32, 64)); }, "operation 'matmul_nt', operand a", "'mul', not an input",
                    "kernel of its own");
  expect_user_error([] { matmul_nt(input("a", f16, {4, 4, 64}), b_of(f16, 32, 64)); }, "operation 'matmul_nt'", "b [32, 64] has no experts",
                    "[m, k]");
  expect_user_error([] { matmul_nt(input("a", f16, {m16, 64}, Layout::strided), b_of(f16, 32, 64)); }, "operation 'matmul_nt', operand a",
                    "strided", "contiguous");
  expect_user_error([] { matmul_nt(a_of(f16, 64), input("b", f16, {dynamic("n"), 64})); }, "operation 'matmul_nt'", "'n'", "number");
  expect_user_error([] { matmul_nt(input("a", f16, {m16, dynamic("k")}), input("b", f16, {32, dynamic("k")})); },
                    "operation 'matmul_nt', operand a", "'k'", "number");
}

TEST_CASE("columns of a product") {
  const Expr c = matmul_nt(a_of(f16, 64), b_of(f16, 32, 64));
  expect_user_error([&] { columns(c, 16, 17); }, "operation 'columns'", "17 columns from 16", "up to 32");
  expect_user_error([&] { columns(c, -1, 4); }, "operation 'columns'", "4 columns from -1", "from 0");
  expect_user_error([&] { columns(c * 2.0, 0, 16); }, "operation 'columns'", "'mul'", "matmul_nt");
  expect_user_error([&] { columns(c, 9223372036854775807, 1); }, "operation 'columns'", "do not lie", "from 0");
}

TEST_CASE("products that no kernel computes") {
  const auto plan_of = [](const KernelSpec& spec) { return make_plan(spec, gfx942); };
  const auto c = [](const Expr& a, const Expr& b) { return product(matmul_nt(a, b)); };
  expect_user_error([&] { plan_of(c(a_of(e4m3fnuz, 100), b_of(e4m3fnuz, 32, 100))); }, "operand 'a' of matmul_nt", "k is 100",
                    "pad k to 112");
  expect_user_error([&] { plan_of(c(a_of(f16, 12), b_of(f16, 32, 12))); }, "operand 'a' of matmul_nt", "k is 12", "pad k to 16");
  expect_user_error([&] { plan_of(c(a_of(f16, 24), b_of(e4m3fnuz, 32, 24))); }, "operand 'b' of matmul_nt", "k is 24", "pad k to 32");
  expect_user_error([&] { plan_of(c(a_of(f16, 64, dynamic("m")), b_of(f16, 32, 64))); }, "rows of 'a'", "no upper bound",
                    "dynamic(\"m\", 1, 16)");
  expect_user_error([&] { plan_of(c(a_of(f16, 64, dynamic("m", 1, 129)), b_of(f16, 32, 64))); }, "rows of 'a'", "129", "1 to 128");
  expect_user_error([&] { plan_of(c(a_of(f16, 64, 200), b_of(f16, 32, 64))); }, "rows of 'a'", "200", "1 to 128");
  expect_user_error([&] { plan_of(c(a_of(f16, 1 << 25), b_of(f16, 32, 1 << 25))); }, "kernel 'gemm'", "k is 33554432", "16777216");
  expect_user_error([&] { plan_of(c(a_of(e4m3fn, 64), b_of(e4m3fn, 32, 64))); }, "input 'a'", "not native to gfx942", "e4m3fnuz");
  const Expr a = a_of(f16, 64);
  const auto by = [&](const char* name, std::int64_t n) { return matmul_nt(a, input(name, f16, {n, 64})); };
  expect_user_error([&] { plan_of(product(by("u", 32) + by("v", 32) + by("w", 32))); }, "kernel 'gemm'", "3 matrix products", "at most 2");
  expect_user_error([&] { plan_of(product(by("u", 32) + matmul_nt(input("x", f16, {m16, 64}), input("v", f16, {32, 64})))); },
                    "kernel 'gemm'", "'a' and 'x'", "two kernels");
  expect_user_error([&] { plan_of(product(by("u", 64) + a)); }, "input 'a'", "matrix product and another operation", "its own name");
  expect_user_error([&] { plan_of(product(row_sum(pick(by("u", 2048), row_top(by("u", 2048), 4))) * by("u", 2048))); },
                    "operation 'row_top'", "epilogue of a matrix product, whose rows have 2048 columns", "rank in a kernel of its own");
  expect_user_error([&] { plan_of(product(by("u", 32) + input("bias", f16, {33}))); }, "operation 'add'", "32 against 33", "equal");
}

TEST_CASE("schedules that cannot run a product") {
  const Plan plan = make_plan(catalog_spec("gemm", {.dtype = e4m3fnuz, .m = 8, .n = 256, .k = 1024}), gfx942);
  const Schedule chosen = choose_schedule(plan, gfx942);
  const auto with = [&](std::vector<std::string> settings) { return with_overrides(chosen, settings, plan, gfx942); };
  expect_user_error([&] { with({"tile_n=48"}); }, "schedule of 'gemm'", "tile_n=48", "tile_n must be");
  expect_user_error([&] { with({"stages=0"}); }, "schedule of 'gemm'", "stages=0", "stages must be");
  expect_user_error([&] { with({"tile_n=64", "stages=16"}); }, "schedule of 'gemm'", "stages=16", "vmcnt");
  expect_user_error([&] { with({"workgroups=100000"}); }, "schedule of 'gemm'", "workgroups=100000", "steps of the work");
  expect_user_error([&] { with({"waves=3"}); }, "schedule of 'gemm'", "waves=3", "waves must be");
  expect_user_error([&] { with({"method=magic"}); }, "setting 'method=magic'", "no method", "matrix32, sparse");
  expect_user_error([&] { with({"residency=lds"}); }, "setting 'residency=lds'", "no 'residency'", "tile_n");
  expect_user_error([&] { with({"method=dot"}); }, "schedule of 'gemm'", "method=dot", "at most 4 rows");
  const Plan many = make_plan(catalog_spec("gemm", {.dtype = e4m3fnuz, .m = 16, .n = 256, .k = 1024}), gfx942);
  expect_user_error([&] { with_overrides(choose_schedule(many, gfx942), {"method=sparse"}, many, gfx942); }, "schedule of 'gemm'",
                    "method=sparse", "at most 8 rows");
  const Plan most = make_plan(catalog_spec("gemm", {.dtype = e4m3fnuz, .m = 64, .n = 256, .k = 1024}), gfx942);
  expect_user_error([&] { with_overrides(choose_schedule(most, gfx942), {"tile_n=256", "stages=1", "workgroups=8"}, most, gfx942); },
                    "schedule of 'gemm'", "bytes of LDS", "tile_n");
}

TEST_CASE("every shape of a product that is no multiple has its natural vector named") {
  for (const DType type : {f16, bf16, i8, e4m3fnuz, e5m2fnuz})
    for (std::int64_t k = 1; k <= 64; ++k) {
      const std::int64_t natural = 16 / size_bytes(type);
      const KernelSpec spec = product(matmul_nt(a_of(type, k), b_of(type, 32, k)));
      if (k % natural == 0) CHECK_NOTHROW(make_plan(spec, gfx942));
      else expect_user_error([&] { make_plan(spec, gfx942); }, "operand 'a' of matmul_nt", "16 bytes at a time", "a multiple of");
    }
}
