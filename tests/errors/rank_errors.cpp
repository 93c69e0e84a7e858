// Ranks and running sums: what is ill-formed is refused with subject, fact and remedy.
#include "gen/catalog/catalog.h"
#include "gen/families/make_plan.h"
#include "gen/families/schedule.h"
#include "gen/spec/math.h"
#include "tests/errors/expect.h"

using namespace kiln;

namespace {

const Dim lines = dynamic("rows");
Expr logits(std::int64_t cols = 64) { return input("x", f16, {lines, cols}); }
KernelSpec with_output(const Expr& value) { return KernelSpec("k").output("y", f32, value); }
void check_spec(const Expr& value) { make_plan(with_output(value), target("gfx942"), registered_families()); }

} // namespace

TEST_CASE("what row_top and pick take") {
  expect_user_error([] { row_top(logits(), 65); }, "operation 'row_top'", "65 of 64 columns", "1 to 64");
  expect_user_error([] { row_top(logits(), 0); }, "operation 'row_top'", "0 of 64 columns", "1 to 64");
  expect_user_error([] { row_top(logits(4), 5); }, "operation 'row_top'", "5 of 4 columns", "1 to 4");
  expect_user_error([] { row_top(logits(16777217), 2); }, "operation 'row_top'", "16777217 columns", "at most 16777216");
  expect_user_error([] { row_top(logits() > 0, 2); }, "operation 'row_top'", "bool", "cast(f32, ...)");
  expect_user_error([] { row_top(input("x", f16, {lines, dynamic("cols")}), 2); }, "operation 'row_top'", "only at launch", "a number");
  expect_user_error([] { row_cumsum(scalar("s")); }, "operation 'row_cumsum'", "shape []", "[rows, cols]");
  expect_user_error([] { pick(logits(), row_argmax(logits())); }, "operation 'pick'", "'row_argmax'", "give it a row_top");
  expect_user_error([] { pick(input("y", f16, {lines, 32}), row_top(logits(), 2)); }, "operation 'pick'", "32 columns", "the same columns");
}

TEST_CASE("values of ranks do not meet values of columns, whatever their shapes") {
  const Expr all = row_top(logits(16), 16);
  expect_user_error([&] { check_spec(all + logits(16)); }, "operation 'add'", "values of ranks with values of columns", "pick the columns");
  expect_user_error([&] { check_spec(row_top(pick(logits(), row_top(logits(), 8)), 2)); }, "operation 'row_top'",
                    "it works on [rows, 8], but a row of the kernel has 64 columns", "full row");
  expect_user_error([&] { check_spec(group_sum(all, 4)); }, "operation 'group_sum'", "one value a rank", "row reductions");
  const Expr groups = group_max(logits(), 8);
  expect_user_error([&] { check_spec(groups * row_top(logits(), 8)); }, "operation 'mul'", "values of ranks", "reduce one of the two");
}

TEST_CASE("schedules of ranks keep the row in one wave") {
  const Target gfx942 = target("gfx942");
  const Plan plan = make_plan(with_output(row_top(logits(256), 4)), gfx942, registered_families());
  const auto with = [&](const std::vector<std::string>& settings) {
    with_overrides(choose_schedule(plan, gfx942), settings, plan, gfx942);
  };
  expect_user_error([&] { with({"threads_per_row=128", "rows_per_block=1"}); }, "schedule of 'k'", "a row takes 128 lanes",
                    "threads_per_row=64");
  expect_user_error([&] { with({"residency=lds"}); }, "schedule of 'k'", "residency is lds", "residency=registers");
  const Plan product = make_plan(catalog_spec("router", {.dtype = f16, .m = 16, .n = 64, .k = 4096}), gfx942, registered_families());
  expect_user_error([&] { with_overrides(choose_schedule(product, gfx942), {"method=producers"}, product, gfx942); },
                    "schedule of 'router'", "method=producers rows_at_end=true", "no rows at the end");
}

TEST_CASE("a row that is summed up has one workgroup, which is not what keeps its output from being in place") {
  const Target gfx942 = target("gfx942");
  const Expr x = input("x", f16, {30, 4096}), others = partner(x, 2048);
  const KernelSpec spec = KernelSpec("k").output("sums", f32, row_cumsum(others)).output("y", f16, others, {.in_place_of = "x"});
  expect_user_error([&] { choose_schedule(make_plan(spec, gfx942, registered_families()), gfx942); }, "schedule of 'k'",
                    "'y' is in place of 'x', of which 'partner' reads other columns", "memory of its own");
}

TEST_CASE("ranks that a wave does not hold are of inputs, and alone with rows") {
  const Expr wide = logits(4096), top = row_top(wide, 4);
  expect_user_error([&] { check_spec(row_top(wide * 2, 4)); }, "kernel 'k'", "'row_top' takes a 'mul'", "give it an input");
  expect_user_error([&] { check_spec(pick(exp(wide), top)); }, "kernel 'k'", "'pick' takes a 'exp'", "give it an input");
  expect_user_error([&] { check_spec(wide - row_max(pick(wide, top))); }, "kernel 'k'", "'sub' is one a element", "another kernel");
  expect_user_error([&] { check_spec(pick(wide, top) + pick(wide, row_top(input("z", f16, {lines, 4096}), 4))); }, "kernel 'k'",
                    "another row_top", "rank once");
  const Target gfx942 = target("gfx942");
  const Plan plan = make_plan(with_output(pick(wide, top)), gfx942, registered_families());
  expect_user_error([&] { with_overrides(choose_schedule(plan, gfx942), {"tiles=1", "vec=4", "tiles=2"}, plan, gfx942); },
                    "schedule of 'k'", "tiles", "");
}

TEST_CASE("rows that are sorted have values of ranks alone, and a bound where they do not fit into LDS") {
  const Target gfx942 = target("gfx942");
  const Expr wide = logits(4096), top = row_top(wide, 257);
  expect_user_error([&] { check_spec(row_cumsum(pick(wide, top))); }, "kernel 'k'", "there is a 'row_cumsum'", "at most 256 ranks");
  expect_user_error([&] { check_spec(row_max(pick(wide, top))); }, "kernel 'k'", "there is a 'row_max'", "at most 256 ranks");
  expect_user_error([&] { check_spec(pick(wide * 2, top)); }, "kernel 'k'", "'pick' takes a 'mul'", "give it an input");
  const auto sorted = [&](std::int64_t cols, const Dim& rows) {
    return make_plan(with_output(row_top(input("x", f16, {rows, cols}), cols)), gfx942, registered_families());
  };
  expect_user_error([&] { choose_schedule(sorted(4096, lines), gfx942); }, "schedule of 'k'", "no bound says how many rows",
                    "dim rows[1..64]");
  expect_user_error([&] { choose_schedule(sorted(1 << 20, dynamic("rows", 1, 100)), gfx942); }, "schedule of 'k'", "up to 100 rows",
                    "a smaller bound");
  const Plan plan = sorted(300, lines);
  const auto with = [&](const char* setting) { with_overrides(choose_schedule(plan, gfx942), {setting}, plan, gfx942); };
  expect_user_error([&] { with("waves=3"); }, "schedule of 'k'", "waves", "1, 2, 4, 8 or 16");
  expect_user_error([&] { with("in_lds=0"); }, "schedule of 'k'", "no bound", "dim rows");
}

TEST_CASE("entries of ranks") {
  expect_user_error([] { catalog_spec("topk_softmax", {.cols = 4096}); }, "catalogue entry 'topk_softmax'", "cols is 4096", "1 to 1024");
  expect_user_error([] { catalog_spec("router", {.n = 2048}); }, "catalogue entry 'router'", "n is 2048", "1 to 1024");
  expect_user_error([] { catalog_spec("router", {.top = 9, .n = 8}); }, "catalogue entry 'router'", "top is 9 of 8", "1 to 8");
}
