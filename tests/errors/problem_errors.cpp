// A program whose outputs have unlike shapes is told why they do not share a launch, and which schedules do not suit all of them.
#include "expect.h"
#include "gen/families/schedule.h"
#include "gen/plan/validate.h"
#include "gen/spec/math.h"

using namespace kiln;

namespace {

const Dim some_rows = dynamic("rows"), some_others = dynamic("others");
const Target to = target("gfx942");
Expr of_rows(std::string name, std::int64_t cols = 4096) { return input(std::move(name), f16, {some_rows, cols}); }
Expr of_others(std::string name) { return input(std::move(name), f16, {some_others, 128}); }

} // namespace

TEST_CASE("problems: values that two problems share are those of one shape") {
  const Expr total = row_sum(of_rows("x"));
  KernelSpec spec("k");
  spec.output("y", f16, of_rows("x") * total).output("z", f16, of_rows("w", 128) * total);
  expect_user_error([&] { validate(spec); }, "kernel 'k'", "values of shape [rows, 128] and of 4096 columns", "two kernels");
  expect_user_error([&] { make_plan(spec, to); }, "kernel 'k'", "values of shape [rows, 128] and of 4096 columns", "two kernels");
}

TEST_CASE("problems: as many as a kernel takes") {
  KernelSpec spec("k");
  for (std::int64_t i = 1; i <= 8; ++i) spec.output("y" + std::to_string(i), f16, of_rows("x" + std::to_string(i), 64 * i) * 2);
  CHECK(make_plan(spec, to).problems.size() == 8);
  spec.output("y9", f16, of_others("x9") * 2);
  expect_user_error([&] { validate(spec); }, "kernel 'k'", "its outputs have 9 unlike shapes", "at most 8");
}

TEST_CASE("problems: a product and attention have kernels of their own") {
  const Dim m = dynamic("m", 1, 16);
  const Expr c = matmul_nt(input("a", f16, {m, 64}), input("b", f16, {32, 64}));
  const Expr d = matmul_nt(input("e", f16, {m, 64}), input("f", f16, {48, 64}));
  expect_user_error([&] { make_plan(KernelSpec("k").output("c", f16, c).output("y", f16, of_others("x") * 2), to); }, "kernel 'k'",
                    "do not belong to one iteration space", "two kernels");
  expect_user_error([&] { make_plan(KernelSpec("k").output("c", f16, c).output("d", f16, d), to); }, "kernel 'k'", "and of 48 columns",
                    "two kernels");
}

TEST_CASE("problems: what one overwrites, no other reads") {
  const Expr x = of_rows("x"), weight = input("weight", f16, {128});
  KernelSpec spec("k");
  spec.output("y", f16, x * 2, {.in_place_of = "x"}).output("z", f16, input("z_in", f16, {3, some_rows, 4096}) + x);
  expect_user_error([&] { validate(spec); }, "output 'y' in place of 'x'", "output 'z' has another shape and reads 'x' too",
                    "memory of its own");
  CHECK_NOTHROW(validate(KernelSpec("k").output("y", f16, x * 2, {.in_place_of = "x"}).output("z", f16, of_others("w") * weight)));
}

TEST_CASE("problems: a schedule suits all of them") {
  const Plan plan =
      make_plan(KernelSpec("k").output("y", f16, of_rows("x") - row_max(of_rows("x"))).output("z", f16, of_others("w") * 2), to);
  const Schedule schedule = choose_schedule(plan, to);
  const auto with = [&](std::vector<std::string> settings) { return [&, settings] { with_overrides(schedule, settings, plan, to); }; };
  CHECK_NOTHROW(with({"y.vec=4", "z.vec=4"})());
  expect_user_error(with({"vec=4"}), "setting 'vec=4'", "a together schedule has no 'vec'", "y.vec");
  CHECK_NOTHROW(with({"y.threads_per_row=1024", "y.ahead=1", "z.threads=64"})());
  expect_user_error(with({"num_warps=4"}), "setting 'num_warps=4'", "no such choice", "--emit schedule");
  expect_user_error(with({"z.vec=3"}), "schedule of 'k'", "'z': vec=3", "vec must be 1");
}

TEST_CASE("problems: workgroups that wait for each other have a kernel of their own") {
  const Dim few = dynamic("few", 1, 2);
  const Expr x = input("x", f16, {few, 65536});
  const Plan plan = make_plan(KernelSpec("k").output("y", f16, x - row_max(x)).output("z", f16, of_others("w") * 2), to);
  for (const Schedule& schedule : candidates(plan, to)) CHECK(to_text(schedule).find("y.tiles=1 ") != std::string::npos);
  const Schedule schedule = choose_schedule(plan, to);
  expect_user_error([&] { with_overrides(schedule, {"y.tiles=8", "y.ahead=1"}, plan, to); }, "schedule of 'k'", "y.tiles is 8",
                    "y.tiles=1");
}
