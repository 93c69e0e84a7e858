// Families: a family that only this file knows goes through every stage; the registry offers each family's fields by name.
#include "gen/error.h"
#include "gen/families/entry.h"
#include "gen/families/schedule.h"
#include "gen/plan/passes.h"
#include "gen/spec/math.h"
#include <doctest/doctest.h>

using namespace kiln;

namespace {

// Copies of one tensor, one element a lane.
struct Copy {
  using Config = ElementwiseConfig;
  static constexpr std::string_view name = "copy", remedy = "use a memcpy";
  static bool can_compute(const AnalysedSpec& spec) { return spec.body.values.size() == 1; }
  static void lay_out(AnalysedSpec& spec) { lay_out_flat(spec.body); }
  static std::vector<Candidate<Config>> candidates(const Plan&, const Target&) {
    return {{{.vec = 3}, "not valid"}, {{.threads = 64}, "one wave"}, {{.threads = 128}, "two"}};
  }
  static std::optional<Refusal> why_not(const Config& c, const Plan& plan, const Target&) {
    if (const char* const invalid = why_invalid(c)) return refuse_schedule(plan, fields_text(c), invalid);
    return {};
  }
  static KernelSource emit(const Plan& plan, const Config& c, const Target& target) {
    return assemble(plan, target,
                    {.header = "copy",
                     .config = config_text(c, "ElementwiseConfig"),
                     .threads = "config.threads",
                     .body = "",
                     .access = {},
                     .threads_per_block = c.threads});
  }
  static Demand demand(const Plan&, const Config&, const Target&, const RunTimeSizes&) { return {}; }
  static Promises promises(const Plan&, const Config&, const Target&) { return {.max_vgprs = 8}; }
  static std::optional<std::int64_t> addition_depth(const Config&) { return 0; }
};

const Target gfx942 = target("gfx942");
const Expr x = input("x", f16, {dynamic("rows"), 64});
const KernelSpec copy = KernelSpec("same").output("y", f16, x);
const KernelSpec twice = KernelSpec("twice").output("y", f16, x * 2);

std::vector<Family> families_with_copy() {
  std::vector<Family> families{family_entry<Copy>};
  families.insert(families.end(), registered_families().begin(), registered_families().end());
  return families;
}

} // namespace

TEST_CASE("a family that is put into the registry is found, scheduled, emitted and checked") {
  const std::vector<Family> families = families_with_copy();
  const Plan plan = make_plan(copy, gfx942, families);
  CHECK(plan.family->name == "copy");
  CHECK(to_text(plan).starts_with("plan same: copy over [rows * 64]"));
  CHECK(candidates(plan, gfx942).size() == 2); // without the invalid one
  const Schedule schedule = choose_schedule(plan, gfx942);
  CHECK(to_text(schedule) == "schedule copy: vec=1 threads=64 chunks=1 prefetch_depth=1 exact=false\n  why: one wave\n");
  const KernelSource source = emit_source(plan, schedule, gfx942);
  CHECK(source.text.find("#include \"copy.h\"") != std::string::npos);
  CHECK(source.text.find("ElementwiseConfig config{.vec = 1, .threads = 64, .chunks = 1, .prefetch_depth = 1, .exact = false};") !=
        std::string::npos);
  CHECK(source.launch.threads == 64);
  CHECK(source.arguments.size() == 3); // x, y, rows
  CHECK(promises(plan, schedule, gfx942).max_vgprs == 8);
  CHECK(to_text(with_overrides(schedule, {"threads=256"}, plan, gfx942)).starts_with("schedule copy: vec=1 threads=256"));
  CHECK(make_plan(twice, gfx942, families).family->name == "elementwise");
  CHECK(make_plan(copy, gfx942).family->name == "elementwise");
}

TEST_CASE("a spec that no family takes is refused") {
  const std::vector<Family> families{family_entry<Copy>};
  CHECK_THROWS_WITH_AS(make_plan(twice, gfx942, families),
                       "kernel 'twice': no family of kernels computes it; split it into kernels of the catalogue's kinds", UserError);
}

TEST_CASE("every field that a schedule prints can be set by that name and value, unless it follows from the plan") {
  const auto rows = KernelSpec("rows").output("y", f16, x / row_max(x));
  const auto product = KernelSpec("product").output("y", f16, matmul_nt(input("a", f16, {8, 1024}), input("b", f16, {256, 1024})));
  for (const KernelSpec& spec : {twice, rows, product}) {
    const Plan plan = make_plan(spec, gfx942);
    const Schedule chosen = choose_schedule(plan, gfx942);
    std::vector<std::string> settings;
    std::visit(
        [&](const auto& config) {
          for_each_field(config, [&](const Field& field, const auto& member) {
            if (field.settable && field.shown && field.name != "method")
              settings.push_back(fmt::format("{}={}", field.name, member_text(field, member)));
          });
        },
        chosen.config);
    CAPTURE(to_text(chosen));
    CHECK(settings.size() > 3);
    CHECK(with_overrides(chosen, settings, plan, gfx942).config == chosen.config);
  }
}
