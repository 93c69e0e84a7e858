// Rows of several workgroups on devices too small for them, beside launches that want the same CUs: no interleaving hangs, and each gives
// the bits of a launch that is alone. KILN_CLUSTERS_BESIDE=N and
// KILN_ONE_WAVE_CLUSTERS_BESIDE=N run N interleavings for each number of CUs.
#include "gen/catalog/catalog.h"
#include "gen/families/rowwise/cluster.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/fuzz/seeds.h"
#include <array>
#include <doctest/doctest.h>
#include <numeric>
#include <random>
#include <span>

namespace cluster_beside {
using namespace kiln;

namespace {

struct Case {
  const char* name;
  KernelSpec spec;
  std::vector<std::string> settings;
  std::int64_t rows;
};

// A residual that is added in place, and a quotient that needs two reductions of it.
KernelSpec residual_in_place(std::int64_t cols) {
  const Dim rows = dynamic("rows", 1, 4);
  const Expr x = input("x", f16, {rows, cols}), residual = input("residual", f16, {rows, cols});
  const Expr h = cast(f16, x + residual), y = h * rsqrt(row_mean(h * h) + 1e-5);
  return KernelSpec("residual").output("sum", f16, h, {.in_place_of = "residual"}).output("y", f16, y / row_absmax(y));
}

// The residual in place, and what is one a row: no pass over the columns follows the reduction that needs them as they were.
KernelSpec sum_in_place(std::int64_t cols) {
  const Dim rows = dynamic("rows", 1, 4);
  const Expr x = input("x", f16, {rows, cols}), residual = input("residual", f16, {rows, cols});
  const Expr h = cast(f16, x + residual);
  return KernelSpec("sum_in_place").output("sum", f16, h, {.in_place_of = "residual"}).output("largest", f32, row_absmax(h));
}

// Each device has room for fewer workgroups than three launches may have begun in rows that wait: 31 a row, of 2 a CU, or 3 * 15 of 1.
std::vector<Case> cases() {
  const auto entry = [](const char* name, std::int64_t cols, DType type) {
    return catalog_spec(name, {.cols = cols, .max_rows = 3, .dtype = type, .fp8 = e4m3fnuz});
  };
  const std::vector<std::string> wide{"vec=1", "threads_per_row=1024", "rows_per_block=1", "prefetch_depth=1", "tiles=32"};
  return {
      {"two reductions, 32 workgroups of 16 waves per row", entry("softmax", 32768, f16), wide, 1},
      {"a residual in place", residual_in_place(32768), wide, 1},
      {"a sum in place, and its largest element", sum_in_place(32768), wide, 1},
      {"argmax, 30 workgroups per row",
       entry("argmax_rows", 30700, f16),
       {"vec=1", "threads_per_row=1024", "rows_per_block=1", "prefetch_depth=1", "tiles=30"},
       1},
      {"rows that fill the LDS of their CU",
       entry("rmsnorm", 135168, f32),
       {"vec=4", "threads_per_row=64", "rows_per_block=1", "prefetch_depth=3", "tiles=16", "residency=lds"},
       3},
  };
}

// With less patience than kernels have, which costs the CPU model most of its time: workgroups help each other sooner.
BuiltKernel built(const Case& c, const char* arch = "gfx942") {
  CompileOptions compile_options = own_process_options(process_environment());
  compile_options.warnings_as_errors = true;
  BuiltKernel kernel = build_kernel(c.spec, target(arch), compile_options, c.settings);
  kernel.source.text = self_contained(kernel.source);
  const std::string patience = "patience = 1024";
  const std::size_t at = kernel.source.text.find(patience);
  REQUIRE(at != std::string::npos);
  kernel.source.text.replace(at, patience.size(), "patience = 128");
  kernel.object = compile(kernel.source, target(arch), compile_options);
  return kernel;
}

// Three launches of each case beside each other, on each number of CUs in so many interleavings; 0: once, on one number of CUs in turn.
void check_beside(const std::vector<Case>& cases, std::uint64_t interleavings) {
  std::uint64_t helped = 0; // runs that took more instructions than three launches that are alone
  std::size_t turn = 0;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const BuiltKernel kernel = built(c);
    constexpr std::array sizes{20, 32, 38};
    const std::span<const int> all = sizes; // the usual run takes one of each case, in turn
    REQUIRE(kernel.source.workspace_bytes > 0);
    std::vector<Inputs> inputs;
    std::vector<Outputs> alone;
    std::uint64_t instructions = 0;
    for (std::uint64_t i = 1; i <= 3; ++i) {
      inputs.push_back(random_inputs(c.spec, i, {.dynamic_size = c.rows}));
      const EmulatedRun one = emulate(c.spec, kernel.source, kernel.object, inputs.back());
      REQUIRE(one.result.completed);
      const auto wrong = find_mismatch(one.outputs, evaluate_bounds(c.spec, inputs.back(), bounds_options(kernel.schedule)));
      REQUIRE_MESSAGE(!wrong, (wrong ? to_text(*wrong) : ""));
      instructions += one.result.waves.executed();
      alone.push_back(one.outputs);
    }
    for (const int cus : interleavings == 0 ? all.subspan(turn++ % 3, 1) : all)
      for (std::uint64_t seed = 1; seed <= std::max<std::uint64_t>(interleavings, 1); ++seed) {
        CAPTURE(cus);
        CAPTURE(seed);
        exec::ExecOptions options;
        options.seed = seed;
        options.measure = false;
        options.check_undefined = options.check_races = options.check_hazards = seed == 1; // the same code every time
        const EmulatedBeside done = emulate_beside(c.spec, kernel.source, kernel.object, inputs, cus, options);
        for (const exec::Defect& defect : done.result.defects) CHECK_MESSAGE(false, exec::to_text(defect));
        REQUIRE(done.result.completed);
        helped += done.result.waves.executed() > 2 * instructions ? 1 : 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) CHECK(same_bits(done.outputs[i], alone[i]));
      }
  }
  CHECK(helped > 0); // else no workgroup was ever without its partners, and the test shows nothing
}

} // namespace

TEST_CASE("clusters of three launches beside each other end on 20, 32 and 38 CUs, with the bits of one that is alone") {
  check_beside(cases(), kiln::testing::number_from("KILN_CLUSTERS_BESIDE", 0));
}

// A wave per workgroup and a workgroup per CU: cheap to run, so that a long run has thousands.
TEST_CASE("clusters of one wave per workgroup, whose LDS leaves room for one per CU, end beside each other") {
  const KernelSpec spec = catalog_spec("rmsnorm", {.cols = 16 * 8448, .max_rows = 1, .dtype = f32});
  check_beside({{"one row", spec, {"vec=4", "threads_per_row=64", "rows_per_block=1", "prefetch_depth=1", "tiles=16", "residency=lds"}, 1}},
               kiln::testing::number_from("KILN_ONE_WAVE_CLUSTERS_BESIDE", 0));
}

TEST_CASE("a cluster needs no partner on its device: workgroups one at a time, in any order, in every residency") {
  const auto entry = [](const char* name, DType type) {
    return catalog_spec(name, {.cols = 8192, .max_rows = 2, .dtype = type, .fp8 = e4m3fnuz});
  };
  // Registers and LDS are what a workgroup has of its own row, while it computes other tiles too.
  std::vector<Case> all;
  for (const char* residency : {"residency=registers", "residency=lds", "residency=reload"})
    for (const char* threads : {"threads_per_row=64", "threads_per_row=256"}) {
      const std::vector<std::string> settings{"vec=4", threads, "rows_per_block=1", "prefetch_depth=1", "tiles=4", residency};
      all.push_back({residency, entry("layernorm", f32), settings, 2});
      if (settings.back() != "residency=reload") all.push_back({residency, residual_in_place(8192), settings, 2}); // else it is read again
    }
  int odd = 0;
  for (const Case& c : all) {
    CAPTURE(c.name);
    const BuiltKernel kernel = built(c, odd++ % 2 ? "gfx950" : "gfx942");
    const Inputs inputs = random_inputs(c.spec, 1, {.dynamic_size = c.rows});
    const Outputs together = emulate(c.spec, kernel.source, kernel.object, inputs).outputs;
    std::vector<std::uint32_t> order(8);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 dice(7);
    for (int turn = 0; turn < 3; ++turn, std::ranges::shuffle(order, dice)) {
      const EmulatedRun alone = emulate_one_by_one(c.spec, kernel.source, kernel.object, inputs, order);
      for (const exec::Defect& defect : alone.result.defects) CHECK_MESSAGE(false, exec::to_text(defect));
      REQUIRE(alone.result.completed);
      CHECK(same_bits(alone.outputs, together));
    }
  }
}

} // namespace cluster_beside
