// Proves that predictions read the data that a launch asks for: by index each row once, every expert's weights, all keys, and what
// workgroups that were not executed have.
#include "gen/catalog/catalog.h"
#include "gen/families/make_plan.h"
#include "gen/families/schedule.h"
#include "gen/spec/spec.h"
#include "runtime/tune/try_schedule.h"
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

using namespace kiln;

namespace {

double hbm_bytes(const KernelSpec& spec, const Target& to, const RunTimeSizes& sizes, const std::vector<std::string>& settings = {}) {
  const Plan plan = make_plan(spec, to);
  const TriedSchedule tried = try_schedule(plan, with_overrides(choose_schedule(plan, to), settings, plan, to), to, to.chip(),
                                           {.changes = false}, std::span(&sizes, 1), {});
  REQUIRE(tried.report.met());
  const auto& simulation = tried.predictions.front().simulation;
  return (simulation.traffic.hbm + simulation.traffic.mall) * 8; // of one XCD
}

} // namespace

TEST_CASE("a product of tokens with their experts reads the weights of all experts that have tokens") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const KernelSpec spec =
        catalog_spec("grouped_gemm", {.dtype = bf16, .fp8 = to.fp8(), .top = 2, .m = 4, .n = 512, .k = 1024, .experts = 8});
    const double weights = 8.0 * 512 * 1024 * 2, read = hbm_bytes(spec, to, {{"m", 4}});
    CHECK_MESSAGE(read > 0.9 * weights, fmt::format("{}: {} of {} bytes", arch, read, weights));
    CHECK_MESSAGE(read < 1.3 * weights, fmt::format("{}: {} of {} bytes", arch, read, weights));
  }
}

TEST_CASE("a gather reads as many rows as it has indices") {
  const Target to = target("gfx942");
  const KernelSpec spec = parse_spec(R"(kernel gathered
dim rows
input table: f16[4096, 4096]
input ids: i32[rows, 1]
output y: f16[rows, 4096] = gather(table, ids)
)");
  const double rows = 512.0 * 4096 * 2, read = hbm_bytes(spec, to, {{"rows", 512}});
  CHECK_MESSAGE(read > 0.9 * rows, fmt::format("{} of {} bytes", read, rows));
  CHECK_MESSAGE(read < 1.3 * rows, fmt::format("{} of {} bytes", read, rows));
}

// A workgroup has 1024 columns of four rows, so that its lines lie between those of fifteen others. Few are executed.
TEST_CASE("workgroups with a part of several rows each read their own") {
  const Target to = target("gfx942");
  const std::vector<std::string> parts = {"vec=16", "threads_per_row=64", "rows_per_block=4", "tiles=16", "prefetch_depth=1"};
  const KernelSpec spec = catalog_spec("dequant", {.cols = 16384, .dtype = f16, .fp8 = to.fp8()});
  const double rows = 1024.0 * 16384, read = hbm_bytes(spec, to, {{"rows", 1024}}, parts);
  CHECK_MESSAGE(read > 0.95 * rows, fmt::format("{} of {} bytes", read, rows));
  CHECK_MESSAGE(read < 1.1 * rows, fmt::format("{} of {} bytes", read, rows));
}
