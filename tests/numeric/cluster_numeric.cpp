// Rows of several workgroups, executed: every reduction, rows that end anywhere, launch after launch on one workspace, and the same bits
// in twenty interleavings.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "gen/families/rowwise/cluster.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/spec_generator.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <optional>
#include <sstream>

namespace cluster_numeric {
using namespace kiln;

namespace {

// Three launches on one workspace in each interleaving. The last one's outputs are compared with the bounds, and with each other.
void check(const KernelSpec& spec, const Target& to, std::int64_t rows, const std::vector<std::string>& settings,
           std::uint64_t interleavings) {
  CompileOptions compile = own_process_options(process_environment());
  compile.warnings_as_errors = true;
  const BuiltKernel built = build_kernel(spec, to, compile, settings);
  INFO(to_text(built.schedule), to_text(spec));
  REQUIRE(built.source.workspace_bytes > 0);
  const Inputs inputs = random_inputs(spec, 7, {.dynamic_size = rows});
  const auto wrong = testing::check_orders(spec, built, inputs, {.count = interleavings, .launches = 3});
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

// The spec with at most three of everything that is known at launch.
KernelSpec bounded(const KernelSpec& spec) {
  std::string text;
  std::istringstream lines(to_text(spec));
  for (std::string line; std::getline(lines, line);)
    text += line + (line.starts_with("dim ") && line.find('[') == line.npos ? "[..3]\n" : "\n");
  return parse_spec(text);
}

// The settings of a schedule of the plan in which several workgroups share a row that is reduced.
std::optional<std::vector<std::string>> cluster_settings(const KernelSpec& spec, const Target& to, std::uint64_t seed) {
  std::vector<std::vector<std::string>> all;
  try {
    const Plan plan = make_plan(spec, to);
    for (const Schedule& schedule : candidates(plan, to))
      if (const auto* const c = std::get_if<RowwiseConfig>(&schedule.config); c != nullptr && is_cluster(plan.body, *c))
        all.push_back(schedule.family->settings(schedule));
  } catch (const UserError&) { // a spec that no schedule can run
  }
  return all.empty() ? std::nullopt : std::optional(all[seed % all.size()]);
}

KernelSpec entry(const char* name, std::int64_t cols, const Target& to, DType type = f16) {
  return catalog_spec(name, {.cols = cols, .max_rows = 3, .dtype = type, .fp8 = to.fp8()});
}

} // namespace

TEST_CASE("rows of several workgroups: the same bits in twenty interleavings") {
  const std::uint64_t interleavings = testing::number_from("KILN_CLUSTER_INTERLEAVINGS", 20);
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    check(entry("add_rmsnorm_dynamic_quant", 4096, to), to, 2,
          {"vec=8", "threads_per_row=128", "rows_per_block=1", "prefetch_depth=1", "tiles=4"}, interleavings);
  }
}

TEST_CASE("rows of several workgroups: every reduction, and rows that end anywhere") {
  const Target gfx942 = target("gfx942"), gfx950 = target("gfx950");
  // Means and deviations; a count of workgroups that is no power of two.
  check(entry("layernorm", 2600, gfx942, bf16), gfx942, 3,
        {"vec=4", "threads_per_row=128", "rows_per_block=1", "prefetch_depth=1", "tiles=3"}, 3);
  check(entry("softmax", 5003, gfx950), gfx950, 1, {"vec=8", "threads_per_row=64", "rows_per_block=1", "prefetch_depth=1", "tiles=10"}, 3);
  check(entry("argmax_rows", 5000, gfx942), gfx942, 3, {"vec=8", "threads_per_row=256", "rows_per_block=1", "prefetch_depth=1", "tiles=3"},
        3);
  // Two reductions that meet at once, a later one, a group's, and a row that is read again.
  const Expr x = input("x", f32, {dynamic("rows", 1, 2), 1024});
  const Expr y = (x - row_min(x)) / (row_max(x) - row_min(x) + 1.0);
  KernelSpec spec("scaled");
  spec.output("y", f16, y / row_mean(y)).output("groups", f32, group_sum(y, 128)).output("least", f32, row_min(x));
  check(spec, gfx942, 2, {"vec=4", "threads_per_row=64", "rows_per_block=1", "prefetch_depth=1", "tiles=4"}, 3);
  check(spec, gfx942, 2, {"vec=4", "threads_per_row=64", "rows_per_block=1", "prefetch_depth=1", "tiles=2", "residency=reload"}, 3);
}

TEST_CASE("rows of several workgroups: random specs") {
  const std::uint64_t count = testing::number_from("KILN_CLUSTER_SPECS", 4);
  std::uint64_t found = 0;
  for (std::uint64_t seed = 1; found < count; ++seed) {
    const Target to = target(known_archs()[seed % known_archs().size()]);
    const KernelSpec spec = bounded(random_spec(seed, {.fp8_e4m3 = to.fp8_e4m3(), .fp8_e5m2 = to.fp8_e5m2()}));
    const auto settings = cluster_settings(spec, to, seed);
    if (!settings) continue;
    ++found;
    const auto wrong = testing::check_kernel(spec, to, seed, {.rows = 2, .settings = *settings});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

} // namespace cluster_numeric
