// A program whose outputs have unlike shapes is told why they do not share a launch, and which schedules do not suit all of them.
#include "expect.h"
#include "gen/families/schedule.h"
#include "gen/plan/validate.h"
#include "gen/spec/attention.h"
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

TEST_CASE("problems: attention, experts and a sort have kernels of their own") {
  const Expr x = of_others("x") * 2;
  const Dim sequences = dynamic("sequences"), keys = dynamic("keys");
  const Expr q = input("q", f16, {sequences, 8, 128}), k = input("k", f16, {sequences, keys, 1, 128}),
             v = input("v", f16, {sequences, keys, 1, 128});
  const Expr decoded = attention(attention_scores(q, k), v, input("lengths", i32, {sequences, 1, 1}));
  expect_user_error([&] { make_plan(KernelSpec("k").output("o", f16, decoded).output("y", f16, x), to); }, "kernel 'k'",
                    "8 against others in dimension 2", "two kernels");
  const Expr experts = input("experts", i32, {some_rows, 4});
  KernelSpec sorts("k");
  sorts.output("order", i32, expert_order(experts, 16)).output("offsets", i32, expert_offsets(experts, 16)).output("y", f16, x);
  expect_user_error([&] { make_plan(sorts, to); }, "kernel 'k'", "sorts its input 'experts', and computes other things",
                    "a kernel of its own");
}

TEST_CASE("problems: ranks of wide rows have a kernel of their own") {
  for (const int ranks : {2, 64}) { // workgroups that meet, and a sort in LDS
    KernelSpec spec("k");
    spec.output("found", f32, row_top(of_rows("x"), ranks)).output("y", f16, of_others("w") * 2);
    expect_user_error([&] { make_plan(spec, to); }, "output 'found' beside outputs of other shapes", "has no room for others",
                      "a kernel of its own");
  }
}

TEST_CASE("problems: products of one output share A") {
  const Dim m = dynamic("m", 1, 16);
  const auto product = [&](const char* a, const char* b, std::int64_t n, DType type = f16) {
    return matmul_nt(input(a, type, {m, 64}), input(b, type, {n, 64}));
  };
  const Expr sum = product("a", "b", 32) + product("e", "f", 32);
  expect_user_error([&] { make_plan(KernelSpec("k").output("c", f32, sum).output("y", f16, of_others("x") * 2), to); }, "kernel 'k'",
                    "its products read 'a' and 'e'", "two kernels");
  const KernelSpec apart = KernelSpec("k").output("c", f32, product("a", "b", 32)).output("d", f32, product("e", "f", 32, bf16));
  CHECK(make_plan(apart, to).problems.size() == 2);
}

TEST_CASE("problems: a product beside others is refused for what it is refused for alone") {
  const auto beside = [&](const Dim& m, std::int64_t k, std::int64_t n = 32) {
    const Expr c = matmul_nt(input("a", f16, {m, k}), input("b", f16, {n, k}));
    return KernelSpec("k").output("c", f16, c * rsqrt(row_sum(c))).output("y", f16, of_others("x") * 2);
  };
  expect_user_error([&] { make_plan(beside(dynamic("m"), 64), to); }, "rows of 'a'", "no upper bound", "dynamic(\"m\", 1, 16)");
  expect_user_error([&] { make_plan(beside(dynamic("m", 1, 16), 12), to); }, "operand 'a' of matmul_nt", "k is 12", "pad k to 16");
  const Plan phases = make_plan(beside(dynamic("m", 1, 16), 64, 2048), to);
  expect_user_error([&] { emit_source(phases, choose_schedule(phases, to), to); }, "run-time size 'others'", "no upper bound",
                    "dim others[..4096]");
}

TEST_CASE("problems: a matrix that one product reads is nobody's output") {
  const Dim m = dynamic("m", 1, 16);
  const Expr a = input("a", f16, {m, 64}), c = matmul_nt(a, input("b", f16, {32, 64}));
  expect_user_error([&] { validate(KernelSpec("k").output("c", f32, c).output("y", f16, a * 2, {.in_place_of = "a"})); },
                    "output 'y' in place of 'a'", "output 'c' is of another problem and reads 'a' too", "memory of its own");
}

TEST_CASE("problems: schedules of products suit the registers and the LDS that the launch has") {
  const Dim m = dynamic("m", 1, 16);
  const auto product = [&](const char* a, const char* b, std::int64_t n) {
    return matmul_nt(input(a, f16, {m, 4096}), input(b, f16, {n, 4096}));
  };
  KernelSpec spec("k");
  spec.output("c", f32, product("a", "b", 4096)).output("d", f32, product("e", "f", 2048)).output("y", f16, of_others("x") * 2);
  const Plan plan = make_plan(spec, to);
  const Schedule schedule = choose_schedule(plan, to);
  const auto with = [&](std::vector<std::string> settings) { return [&, settings] { with_overrides(schedule, settings, plan, to); }; };
  expect_user_error(with({"y.threads=1024"}), "schedule of 'k'",
                    "a wave of 'c' takes up to 512 registers, and workgroups of 1024 threads leave it 128",
                    "c.waves_per_eu=4, or fewer threads for the other problems");
  expect_user_error(with({"c.method=producers", "d.method=producers", "c.tile_n=32", "d.tile_n=32"}), "schedule of 'k'",
                    "its problems take 75424 bytes of LDS, gfx942 has 65536", "a smaller tile_n for products");
  expect_user_error(with({"c.tile_n=17"}), "schedule of 'k'", "'c': ", "");
  CHECK_NOTHROW(with({"c.waves_per_eu=4", "d.waves_per_eu=4", "y.threads=1024"})());
}

TEST_CASE("problems: what one overwrites, no other reads") {
  const Expr x = of_rows("x"), weight = input("weight", f16, {128});
  KernelSpec spec("k");
  spec.output("y", f16, x * 2, {.in_place_of = "x"}).output("z", f16, input("z_in", f16, {3, some_rows, 4096}) + x);
  expect_user_error([&] { validate(spec); }, "output 'y' in place of 'x'", "output 'z' is of another problem and reads 'x' too",
                    "memory of its own");
  CHECK_NOTHROW(validate(KernelSpec("k").output("y", f16, x * 2, {.in_place_of = "x"}).output("z", f16, of_others("w") * weight)));
}

TEST_CASE("problems: a schedule suits all of them") {
  const Plan plan =
      make_plan(KernelSpec("k").output("y", f16, of_rows("x") - row_max(of_rows("x"))).output("z", f16, of_others("w") * 2), to);
  const Schedule schedule = choose_schedule(plan, to);
  const auto with = [&](std::vector<std::string> settings) { return [&, settings] { with_overrides(schedule, settings, plan, to); }; };
  CHECK_NOTHROW(with({"y.vec=4", "z.vec=4"})());
  expect_user_error(with({"vec=4"}), "setting 'vec=4'", "a fused_launch schedule has no 'vec'", "y.vec");
  CHECK_NOTHROW(with({"y.threads_per_row=1024", "y.prefetch_depth=1", "z.threads=64"})());
  expect_user_error(with({"num_warps=4"}), "setting 'num_warps=4'", "no such choice", "--emit schedule");
  expect_user_error(with({"z.vec=3"}), "schedule of 'k'", "'z': vec=3", "vec must be 1");
}

TEST_CASE("problems: workgroups that wait for each other have a kernel of their own") {
  const Dim few = dynamic("few", 1, 2);
  const Expr x = input("x", f16, {few, 65536});
  const Plan plan = make_plan(KernelSpec("k").output("y", f16, x - row_max(x)).output("z", f16, of_others("w") * 2), to);
  for (const Schedule& schedule : candidates(plan, to)) CHECK(to_text(schedule).find("y.tiles=1 ") != std::string::npos);
  const Schedule schedule = choose_schedule(plan, to);
  expect_user_error([&] { with_overrides(schedule, {"y.tiles=8", "y.prefetch_depth=1"}, plan, to); }, "schedule of 'k'", "y.tiles is 8",
                    "y.tiles=1");
}
