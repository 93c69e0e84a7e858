// Products with scales of blocks, weights of 4 bits or preshuffled weights: what does not fit is refused with subject, fact and remedy.
#include "expect.h"
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "gen/plan/plan.h"
#include "gen/plan/validate.h"
#include "gen/spec/math.h"
#include "gen/spec/preshuffle.h"

using namespace kiln;

namespace {

const Dim m = dynamic("m", 1, 16);
Expr matrix(const char* name, DType type, Shape shape, Layout layout = Layout::contiguous) {
  return input(name, type, std::move(shape), layout);
}
Expr a8() { return matrix("a", e4m3fnuz, {m, 320}); }
Expr b8() { return matrix("b", e4m3fnuz, {200, 320}); }
Expr a_scale() { return matrix("a_scale", f32, {m, 3}); }
Expr b_scale() { return matrix("b_scale", f32, {2, 3}); }
Expr a16() { return matrix("a", f16, {m, 256}); }
Expr b4() { return matrix("b", u8, {200, 128}); }
Expr scale4() { return matrix("scale", f16, {200, 2}); }
Expr zero4() { return matrix("zero", u8, {200, 2}); }

} // namespace

TEST_CASE("scales of blocks that do not fit") {
  const std::string subject = "operation 'matmul_nt_scaled'";
  expect_user_error([] { matmul_nt_scaled(a8(), b8(), matrix("s", f32, {m, 2}), b_scale()); }, subject + ", operand a_scale",
                    "it is f32[m[1..16], 2], but a [m[1..16], 320] has 3 groups of 128", "give it f32[m[1..16], 3]");
  expect_user_error([] { matmul_nt_scaled(a8(), b8(), matrix("s", f32, {dynamic("other", 1, 16), 3}), b_scale()); },
                    subject + ", operand a_scale", "it is f32[other[1..16], 3]", "give it f32[m[1..16], 3]");
  expect_user_error([] { matmul_nt_scaled(a8(), b8(), a_scale(), matrix("s", f32, {200, 3})); }, subject + ", operand b_scale",
                    "it is f32[200, 3], but b [200, 320] has 2 by 3 blocks", "give it f32[2, 3]");
  expect_user_error([] { matmul_nt_scaled(a8(), b8(), matrix("s", f16, {m, 3}), b_scale()); }, subject + ", operand a_scale", "it is f16",
                    "give it f32");
  expect_user_error([] { matmul_nt_scaled(a8(), matrix("b", e4m3fn, {200, 320}), a_scale(), b_scale()); }, subject, "e4m3fnuz and e4m3fn",
                    "same kind");
  expect_user_error([] { matmul_nt_scaled(a8(), b8(), a_scale() * 2.0, b_scale()); }, subject + ", operand a_scale", "it is a 'mul'",
                    "kernel of its own");
  const auto plan_of = [](const Expr& value) { make_plan(KernelSpec("k").output("c", f32, value), target("gfx942")); };
  const Expr product = matmul_nt_scaled(a8(), b8(), a_scale(), b_scale());
  expect_user_error([&] { plan_of(columns(product, 0, 64) + columns(product, 64, 64)); }, "operation 'columns' of a product with 'b'",
                    "column 64, inside of a block of 128 rows", "multiple of 128");
  expect_user_error(
      [&] { plan_of(product + matmul_nt_scaled(a8(), matrix("d", e4m3fnuz, {200, 320}), matrix("other", f32, {m, 3}), b_scale())); },
      "kernel 'k'", "scale 'a' by 'a_scale' and by 'other'", "one a_scale");
  expect_user_error([&] { plan_of(product + matmul_nt(a8(), matrix("d", e4m3fnuz, {200, 320}))); }, "kernel 'k'",
                    "'matmul_nt_scaled' and 'matmul_nt'", "one kind of weights");
  const Expr one = matrix("a_scale", f32, {m, 1}); // of one block of k
  const Expr short_product =
      matmul_nt_scaled(matrix("a", e4m3fnuz, {m, 128}), matrix("b", e4m3fnuz, {128, 128}), one, matrix("b_scale", f32, {1, 1}));
  expect_user_error([&] { plan_of(short_product * one); }, "input 'a_scale'", "a matrix product and another operation use it",
                    "its own name");
}

TEST_CASE("weights of 4 bits that do not fit") {
  const std::string subject = "operation 'matmul_nt_w4'";
  expect_user_error([] { matmul_nt_w4(a16(), matrix("b", u8, {200, 256}), scale4(), zero4(), 128); }, subject,
                    "k is 256 in a [m[1..16], 256], but rows of b [200, 256] hold 512", "[n, k/2]");
  expect_user_error([] { matmul_nt_w4(a16(), matrix("b", i8, {200, 128}), scale4(), zero4(), 128); }, subject, "4-bit numbers in i8",
                    "u8 for b");
  expect_user_error([] { matmul_nt_w4(a16(), b4(), scale4(), zero4(), 48); }, subject, "the group size is 48", "multiple of 32");
  expect_user_error([] { matmul_nt_w4(a16(), b4(), matrix("scale", bf16, {200, 2}), zero4(), 128); }, subject + ", operand scale",
                    "it is bf16[200, 2], but b [200, 128] has 2 groups of 128", "give it f16[200, 2]");
  expect_user_error([] { matmul_nt_w4(a16(), b4(), scale4(), matrix("zero", u8, {200, 3}), 128); }, subject + ", operand zero",
                    "u8[200, 3]", "u8[200, 2]");
  const auto odd = [] {
    const Expr product =
        matmul_nt_w4(matrix("a", f16, {m, 144}), matrix("b", u8, {8, 72}), matrix("s", f16, {8, 2}), matrix("z", u8, {8, 2}), 128);
    make_plan(KernelSpec("k").output("c", f16, product), target("gfx942"));
  };
  expect_user_error(odd, "operand 'b' of matmul_nt_w4", "k is 144, but rows of 4-bit numbers", "pad k to 160, a multiple of 32");
}

TEST_CASE("preshuffled where it means nothing") {
  const Expr shuffled = matrix("b", f16, {200, 256}, Layout::preshuffled);
  expect_user_error([&] { matmul_nt(shuffled, a16()); }, "operation 'matmul_nt', operand a", "it is preshuffled", "Layout::contiguous");
  expect_user_error([&] { validate(KernelSpec("k").output("y", f16, shuffled * 2.0)); }, "input 'b'", "no product reads it",
                    "Layout::contiguous");
  expect_user_error([&] { validate(KernelSpec("k").output("y", f16, matmul_nt(a16(), shuffled), {.layout = Layout::preshuffled})); },
                    "output 'y'", "it is preshuffled", "preshuffle()");
  expect_user_error([] { matrix("b", f16, {dynamic("n"), 256}, Layout::preshuffled); }, "input 'b'", "its shape is [n, 256]",
                    "rows in number");
  const auto inside = [&] {
    const Expr both = matmul_nt(a16(), shuffled);
    make_plan(KernelSpec("k").output("c", f16, columns(both, 0, 40) * columns(both, 40, 40)), target("gfx942"));
  };
  expect_user_error(inside, "operation 'columns' of a product with 'b'", "column 40, inside of 16 preshuffled rows", "multiple of 16");
  const std::vector<std::byte> bytes(100);
  expect_user_error([&] { preshuffle(bytes, 4, 25); }, "preshuffle", "4 rows of 25 bytes", "multiple of 16");
  expect_user_error([&] { preshuffle(bytes, 4, 32); }, "preshuffle", "the matrix has 100 bytes, but 4 rows of 32 have 128", "whole matrix");
}

TEST_CASE("schedules of products that cannot be") {
  const Target to = target("gfx942");
  const auto set = [&](const char* name, const CatalogOptions& options, const std::vector<std::string>& settings) {
    const Plan plan = make_plan(catalog_spec(name, options), to);
    with_overrides(choose_schedule(plan, to), settings, plan, to);
  };
  const CatalogOptions options{.dtype = f16, .fp8 = e4m3fnuz, .n = 512, .k = 1024};
  const auto refused = [&](const char* name, const std::vector<std::string>& settings, const char* remedy) {
    try {
      set(name, options, settings);
      FAIL_CHECK("no error");
    } catch (const UserError& error) {
      CHECK(error.subject == std::string("schedule of '") + name + "'");
      CHECK(error.remedy.find(remedy) != error.remedy.npos);
    }
  };
  refused("gemm", {"method=matrix32", "tile_n=16"}, "tile_n of 32");
  refused("gemm", {"loads=3"}, "1, 2 or 4");
  refused("gemm_block_scaled", {"loads=4"}, "must not exceed a block of 128");
  refused("gemm_block_scaled", {"tile_n=256", "stages=1"}, "must not exceed a block of 128");
}
