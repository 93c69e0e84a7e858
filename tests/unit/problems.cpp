// Problems: which outputs become one, what the plan, the schedule and the launch of several say, and the order of their arguments.
#include "gen/plan/problems.h"
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "gen/spec/math.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace kiln;

namespace problems_tests {
namespace {

const Target gfx942 = target("gfx942");
const Dim tokens = dynamic("tokens"), others = dynamic("others");
const Expr wide = input("wide", f16, {tokens, 4096}), narrow = input("narrow", f32, {others, 128}), weight = input("weight", f32, {128});

KernelSpec three_outputs() {
  KernelSpec spec("three");
  spec.output("total", f32, row_sum(wide)).output("scaled", f32, narrow * weight);
  return spec.output("doubled", f16, wide * 2);
}

std::vector<std::string> names(const KernelSource& source) {
  std::vector<std::string> result;
  for (const KernelArgument& argument : source.arguments) result.push_back(argument.name);
  return result;
}

} // namespace

TEST_CASE("problems: outputs over one iteration space are one, in the order of their first outputs") {
  const std::vector<KernelSpec> problems = problems_of(three_outputs()).specs;
  REQUIRE(problems.size() == 2);
  CHECK(problems[0] == KernelSpec("three").output("total", f32, row_sum(wide)).output("doubled", f16, wide * 2));
  CHECK(problems[1] == KernelSpec("three").output("scaled", f32, narrow * weight));
  CHECK(problems_of(KernelSpec("one").output("total", f32, row_sum(wide)).output("doubled", f16, wide * 2)).specs.empty());
  CHECK(problems_of(KernelSpec("one").output("y", f16, wide).output("z", f16, input("z_in", f16, {tokens, 4096}))).specs.empty());
}

TEST_CASE("problems: a value of a shared input is each one's own") {
  const Expr gain = weight + 1;
  const KernelSpec spec = KernelSpec("k").output("y", f32, narrow * gain).output("z", f32, input("x", f32, {tokens, 7, 128}) * gain);
  CHECK(problems_of(spec).specs.size() == 2);
}

TEST_CASE("problems: a plan says the family and the values of each") {
  const std::string text = to_text(make_plan(three_outputs(), gfx942));
  CHECK(text.starts_with("plan three: fused_launch, 2 problems\nproblem total: rowwise over [tokens, 4096], 1 pass\n"));
  CHECK(text.find("problem scaled: rowwise over [others, 128], 1 pass\n") != std::string::npos);
  const KernelSpec flat = KernelSpec("k").output("y", f32, narrow * 2).output("z", f16, wide * 2);
  CHECK(to_text(make_plan(flat, gfx942)).find("problem z: elementwise over [tokens * 4096], 1 pass\n") != std::string::npos);
}

TEST_CASE("problems: their workgroups follow each other, of as many threads as one of them computes with") {
  const Plan plan = make_plan(three_outputs(), gfx942);
  for (const Schedule& schedule : candidates(plan, gfx942)) {
    CAPTURE(to_text(schedule));
    const KernelSource source = emit_source(plan, schedule, gfx942);
    REQUIRE(source.launch.behind.size() == 1);
    const Launch& first = source.launch;
    const Launch& second = first.behind[0];
    CHECK(source.launch.workgroup_threads() == std::max(first.threads, second.threads));
    const auto blocks = [&](std::int64_t of_tokens, std::int64_t of_others) {
      return source.launch.blocks([&](const std::string& dim) { return dim == "tokens" ? of_tokens : of_others; });
    };
    const auto up = [](std::int64_t a, std::int64_t b) { return static_cast<std::uint64_t>((a + b - 1) / b); };
    const std::uint64_t a = up(5, first.units_per_block) * static_cast<std::uint64_t>(first.blocks_per_unit),
                        b = up(9, second.units_per_block) * static_cast<std::uint64_t>(second.blocks_per_unit);
    CHECK(blocks(5, 9) == a + b);
    CHECK(blocks(0, 9) == b);
    CHECK(blocks(5, 0) == a);
    CHECK(blocks(0, 0) == 0);
    CHECK(cost_of(plan, schedule, gfx942, {{"tokens", 4096}, {"others", 4096}}).total() >
          cost_of(plan, schedule, gfx942, {{"tokens", 4096}, {"others", 1}}).total());
  }
}

TEST_CASE("problems: arguments are in the order of the spec, each once") {
  const Plan plan = make_plan(three_outputs(), gfx942);
  const KernelSource source = emit_source(plan, choose_schedule(plan, gfx942), gfx942);
  CHECK(names(source) == std::vector<std::string>{"wide", "narrow", "weight", "total", "scaled", "doubled", "tokens", "others"});
  CHECK(source.workspace_bytes == 0);
}

TEST_CASE("problems: a shared input is as aligned as the widest access to it") {
  const Expr a = input("a", f32, {tokens, 6, 128}), b = input("b", f16, {others, 128});
  KernelSpec spec("k");
  spec.output("y", f32, a * weight * row_max(a)).output("z", f16, b * weight * row_max(b));
  const Plan plan = make_plan(spec, gfx942);
  const auto alignment = [&](const std::vector<std::string>& settings) {
    const KernelSource source = emit_source(plan, with_overrides(choose_schedule(plan, gfx942), settings, plan, gfx942), gfx942);
    return std::ranges::find(source.arguments, "weight", &KernelArgument::name)->alignment;
  };
  CHECK(alignment({"y.vec=2", "z.vec=2"}) == 8);
  CHECK(alignment({"y.vec=2", "z.vec=4"}) == 16);
  CHECK(alignment({"y.vec=4", "z.vec=2"}) == 16);
}

TEST_CASE("problems: waves that a problem does not need end at once") {
  const Plan plan = make_plan(three_outputs(), gfx942);
  const auto text = [&](int of_total, int of_scaled) {
    const std::vector<std::string> settings = {fmt::format("total.threads_per_row={}", of_total), "total.rows_per_block=1",
                                               "total.prefetch_depth=1", fmt::format("scaled.threads_per_row={}", of_scaled),
                                               "scaled.rows_per_block=1"};
    const KernelSource source = emit_source(plan, with_overrides(choose_schedule(plan, gfx942), settings, plan, gfx942), gfx942);
    CHECK(source.launch.threads == of_total);
    CHECK(source.launch.behind[0].threads == of_scaled);
    CHECK(source.text.find("KILN_KERNEL(256)") != source.text.npos);
    return source.text;
  };
  const std::string leaves = "    if (is_surplus(config.threads())) return;\n", other = "  } else {\n";
  const std::string first_small = text(64, 256), second_small = text(256, 64);
  CHECK(first_small.find(leaves) < first_small.find(other));
  CHECK(first_small.find(leaves) == first_small.rfind(leaves));
  CHECK(second_small.rfind(leaves) > second_small.find(other));
  CHECK(second_small.find(leaves) == second_small.rfind(leaves));
  CHECK(text(256, 256).find(leaves) == std::string::npos);
}

TEST_CASE("problems: threads that have nothing to do cost room and time") {
  const Plan plan = make_plan(three_outputs(), gfx942);
  const auto cost = [&](int of_scaled) {
    const std::vector<std::string> settings = {"total.threads_per_row=256", "total.rows_per_block=1", "total.prefetch_depth=1",
                                               "scaled.threads_per_row=64", fmt::format("scaled.rows_per_block={}", of_scaled)};
    return cost_of(plan, with_overrides(choose_schedule(plan, gfx942), settings, plan, gfx942), gfx942, {{"tokens", 1}, {"others", 65536}});
  };
  CHECK(cost(4).total() < cost(1).total());
}

TEST_CASE("problems: settings give a schedule back") {
  const Plan plan = make_plan(three_outputs(), gfx942);
  for (const Schedule& schedule : candidates(plan, gfx942))
    CHECK(with_overrides(choose_schedule(plan, gfx942), settings_of(schedule), plan, gfx942).config == schedule.config);
}

TEST_CASE("problems: products that one kernel could have are one, others have a part of the workspace each") {
  const Dim m = dynamic("m", 1, 16);
  const auto product = [&](const char* a, const char* b, DType type, std::int64_t n = 64) {
    return matmul_nt(input(a, type, {m, 2048}), input(b, type, {n, 2048}));
  };
  const Expr c = product("a", "b", f16);
  CHECK(problems_of(KernelSpec("k").output("c", f32, c).output("d", f32, product("a", "f", f16))).specs.empty());
  CHECK(problems_of(KernelSpec("k").output("c", f32, c).output("d", f32, product("a", "f", f16, 96))).specs.size() == 2);
  CHECK(problems_of(KernelSpec("k").output("c", f32, c).output("d", f32, product("e", "f", f16))).specs.size() == 2);
  const KernelSpec spec = KernelSpec("k").output("c", f32, c).output("d", f32, product("e", "f", bf16)).output("twice", f32, c * 2);
  const Plan plan = make_plan(spec, gfx942);
  REQUIRE(plan.problems.size() == 2);
  CHECK(plan.problems[0]->body.outputs.size() == 2);
  const auto bytes = [&](int of_c, int of_d) {
    const std::vector<std::string> settings = {fmt::format("c.workgroups={}", of_c), fmt::format("d.workgroups={}", of_d), "c.tile_n=16",
                                               "d.tile_n=16"};
    return emit_source(plan, with_overrides(choose_schedule(plan, gfx942), settings, plan, gfx942), gfx942).workspace_bytes;
  };
  CHECK(bytes(4, 4) == 0);
  CHECK(bytes(7, 4) % 256 == 0);
  CHECK(bytes(7, 4) > 0);
  CHECK(bytes(7, 5) == bytes(7, 4) + bytes(4, 5));
}

TEST_CASE("problems: products fall back to shorter rings, but not from one that was set") {
  const Dim m = dynamic("m", 1, 16);
  const KernelSpec spec = KernelSpec("k")
                              .output("c", f32, matmul_nt(input("a", f16, {m, 4096}), input("b", f16, {512, 4096})))
                              .output("total", f32, row_sum(wide));
  const Plan plan = make_plan(spec, gfx942);
  const auto last = [&](const std::vector<std::string>& settings) { return to_text(candidates(plan, gfx942, settings).back()); };
  CHECK(last({}).find("c.stages=1 ") != std::string::npos);
  CHECK(last({"total.vec=8"}).find("c.stages=1 ") != std::string::npos);
  CHECK(last({"c.stages=4"}).find("c.stages=4 ") != std::string::npos);
  const auto set = candidates(plan, gfx942, {"c.stages=4", "total.waves_per_eu=1"});
  CHECK(set.size() == 1);
}

TEST_CASE("problems: the norm of q and k is one problem for equal heads, else two") {
  CHECK(make_plan(catalog_spec("qk_norm", {.cols = 128, .heads = 8, .kv_heads = 8}), gfx942).problems.empty());
  const Plan plan = make_plan(catalog_spec("qk_norm", {.cols = 128, .heads = 32, .kv_heads = 8}), gfx942);
  CHECK(plan.problems.size() == 2);
  CHECK(promises(plan, choose_schedule(plan, gfx942), gfx942).global_loads.min_bytes == 16);
}

} // namespace problems_tests
