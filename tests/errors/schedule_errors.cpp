// Plans and schedules that cannot be are refused with subject, fact and remedy.
#include "expect.h"
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "gen/spec/math.h"
#include <fmt/format.h>

using namespace kiln;

namespace {

const Target mi300 = target("gfx942");

KernelSpec softmax(std::int64_t cols) { return catalog_spec("softmax", {.cols = cols, .dtype = f16, .fp8 = e4m3fnuz}); }

Schedule with(const KernelSpec& spec, const std::vector<std::string>& settings) {
  const Plan plan = make_plan(spec, mi300);
  return with_overrides(choose_schedule(plan, mi300), settings, plan, mi300);
}

} // namespace

TEST_CASE("settings by name") {
  const KernelSpec spec = softmax(4096);
  expect_user_error([&] { with(spec, {"vec"}); }, "setting 'vec'", "no '='", "name=value");
  expect_user_error([&] { with(spec, {"vec=wide"}); }, "setting 'vec=wide'", "no whole number", "number");
  expect_user_error([&] { with(catalog_spec("gemm", {.dtype = f16, .fp8 = e4m3fnuz}), {"atomics=2"}); }, "setting 'atomics=2'",
                    "'2' is no atomics", "use 0 or 1");
  expect_user_error([&] { with(spec, {"vec=8x"}); }, "setting 'vec=8x'", "no whole number", "number");
  expect_user_error([&] { with(spec, {"chunks=2"}); }, "setting 'chunks=2'", "a rowwise schedule has no 'chunks'", "threads_per_row");
  expect_user_error([&] { with(spec, {"residency=disk"}); }, "setting 'residency=disk'", "'disk' is no residency",
                    "registers, lds or reload");
}

TEST_CASE("configs that cannot be") {
  const KernelSpec spec = softmax(4096);
  const auto refuse = [&](const std::vector<std::string>& settings, std::string_view remedy) {
    expect_user_error([&] { with(spec, settings); }, "schedule of 'softmax'", "", remedy);
  };
  refuse({"vec=3"}, "vec must be 1, 2, 4, 8 or 16");
  refuse({"vec=0"}, "vec must be 1, 2, 4, 8 or 16");
  refuse({"threads_per_row=96"}, "power of two");
  refuse({"threads_per_row=2048"}, "up to 1024");
  refuse({"threads_per_row=128", "rows_per_block=2"}, "rows_per_block must be 1");
  refuse({"rows_per_block=0"}, "at least 1");
  refuse({"threads_per_row=8", "rows_per_block=3"}, "multiple of 64");
  refuse({"prefetch_depth=0"}, "prefetch_depth must be from 1");
  refuse({"prefetch_depth=99"}, "prefetch_depth must be from 1");
  refuse({"tiles=3"}, "tiles must divide");
  refuse({"threads_per_row=512", "prefetch_depth=1", "tiles=0"}, "tiles must divide");
  refuse({"threads_per_row=256", "rows_per_block=1", "vec=1", "prefetch_depth=1", "tiles=2"}, "give the rows a bound");
  // The last field of what plan and config disagree on.
  Schedule wrong = with(spec, {});
  std::get<RowwiseConfig>(wrong.config).cols = 4104;
  const Plan plan = make_plan(spec, mi300);
  expect_user_error([&] { emit_source(plan, wrong, mi300); }, "schedule of 'softmax'", "cols is 4104, the plan has 4096", "leave cols");
  const Expr x = input("x", f16, {dynamic("rows"), 4096});
  wrong = with(KernelSpec("copy").output("y", f16, x), {});
  expect_user_error([&] { emit_source(plan, wrong, mi300); }, "schedule of 'softmax'", "it is elementwise, the plan is rowwise",
                    "for this plan");
}

TEST_CASE("rows of several workgroups that cannot be") {
  const auto refuse = [](const KernelSpec& spec, const std::vector<std::string>& settings, std::string_view fact, std::string_view remedy) {
    expect_user_error([&] { with(spec, settings); }, fmt::format("schedule of '{}'", spec.name()), fact, remedy);
  };
  const auto rows = [](std::int64_t most, std::int64_t cols) {
    return catalog_spec("softmax", {.cols = cols, .max_rows = most, .dtype = f16, .fp8 = e4m3fnuz});
  };
  const std::vector<std::string> eight{"vec=8", "threads_per_row=256", "rows_per_block=1", "prefetch_depth=1", "tiles=8"};
  CHECK_NOTHROW(with(rows(1000, 16384), eight)); // more than any chip has room for at once
  refuse(rows(3'000'000, 16384), eight, "up to 3000000 rows of 8 workgroups take a workspace of 384000000 bytes",
         "a smaller bound of the rows");
  refuse(rows(1, 1 << 20), {"vec=8", "threads_per_row=1024", "rows_per_block=1", "prefetch_depth=1", "tiles=128"}, "128 workgroups share",
         "at most 64 tiles");
  refuse(rows(1, 512), {"vec=8", "threads_per_row=32", "rows_per_block=2", "prefetch_depth=1", "tiles=2"},
         "have 32 lanes per row and 2 rows", "64 threads_per_row or more");
}

TEST_CASE("rows that do not fit LDS") {
  expect_user_error(
      [&] { with(catalog_spec("layernorm", {.cols = 65536, .dtype = f16, .fp8 = e4m3fnuz}), {"residency=lds", "prefetch_depth=1"}); },
      "schedule of 'layernorm'", "gfx942 has 65536", "residency=reload");
}

TEST_CASE("an output in place of what a later pass reads again") {
  const Expr x = input("x", f32, {dynamic("rows"), 4096});
  KernelSpec spec("shift");
  spec.output("early", f32, x + 1.0, {.in_place_of = "x"}).output("late", f32, x - row_max(x));
  CHECK_NOTHROW(with(spec, {})); // registers keep x
  expect_user_error([&] { with(spec, {"residency=reload", "prefetch_depth=1"}); }, "schedule of 'shift'",
                    "output 'early' is in place of 'x', which pass 1 reads from memory after pass 0 wrote it", "memory of its own");
  // Too wide for the chip: no schedule is safe, and the error says so instead of a wrong kernel.
  const Expr wide = input("x", f32, {dynamic("rows"), 1 << 18});
  KernelSpec refused("shift");
  refused.output("early", f32, wide + 1.0, {.in_place_of = "x"}).output("late", f32, wide - row_max(wide));
  expect_user_error([&] { with(refused, {}); }, "schedule of 'shift'", "pass 1 reads from memory after pass 0 wrote it",
                    "memory of its own");
}

TEST_CASE("what no family computes") {
  const Dim rows = dynamic("rows"), cols = dynamic("cols");
  expect_user_error([&] { make_plan(KernelSpec("bias").output("y", f16, input("x", f16, {rows, cols}) + input("b", f16, {cols})), mi300); },
                    "kernel 'bias'", "known only at launch", "specialised for their columns");
  const Expr x = input("x", f16, {rows, 4096});
  KernelSpec groups("groups");
  groups.output("a", f32, group_max(x, 2)).output("b", f32, group_max(x, 512));
  expect_user_error([&] { make_plan(groups, mi300); }, "kernel 'groups'", "groups of 2 and of 512", "ratio is at most 64");
  expect_user_error([&] { make_plan(KernelSpec("q").output("y", e4m3fn, x), mi300); }, "output 'y'", "", "e4m3fnuz");
}
