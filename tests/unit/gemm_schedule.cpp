// The order of a skinny GEMM's schedules: idle CUs against the exit of split sums, balance of large products, bytes of A, short rows.
#include "gen/catalog/catalog.h"
#include "gen/families/gemm/register_model.h"
#include "gen/families/schedule.h"
#include "gen/spec/math.h"
#include <algorithm>
#include <doctest/doctest.h>

using namespace kiln;

namespace {

std::vector<GemmConfig> configs_of(const KernelSpec& spec, const Target& to) {
  std::vector<GemmConfig> result;
  for (const Schedule& schedule : candidates(make_plan(spec, to), to)) result.push_back(std::get<GemmConfig>(schedule.config));
  return result;
}

// 4-bit weights, in groups of 128.
std::vector<GemmConfig> four_bits(const Target& to, DType a, std::int64_t m, std::int64_t n, std::int64_t k) {
  return configs_of(KernelSpec("gemm").output("c", a,
                                              matmul_nt_w4(input("a", a, {dynamic("m", 1, m), k}), input("b", u8, {n, k / 2}),
                                                           input("scale", a, {n, k / 128}), input("zero", u8, {n, k / 128}), 128)),
                    to);
}

std::vector<GemmConfig> eight_bits(const Target& to, std::int64_t m, std::int64_t n, std::int64_t k) {
  return configs_of(
      KernelSpec("gemm").output("c", f32, matmul_nt(input("a", to.fp8(), {dynamic("m", 1, m), k}), input("b", to.fp8(), {n, k}))), to);
}

// Demand of a product of 8 bits on gfx950.
Demand demand_of_fp8(std::int64_t m, std::int64_t n, std::int64_t k, int tile_n, int workgroups) {
  const Target gfx950 = target("gfx950");
  const Plan plan =
      make_plan(KernelSpec("gemm").output("c", f32, matmul_nt(input("a", gfx950.fp8(), {m, k}), input("b", gfx950.fp8(), {n, k}))), gfx950);
  const std::string set = std::to_string(workgroups), columns = std::to_string(tile_n);
  const Schedule schedule =
      with_overrides(candidates(plan, gfx950).front(), {"method=matrix", "tile_n=" + columns, "workgroups=" + set}, plan, gfx950);
  return *plan.family->demand(plan, schedule, gfx950, nominal_sizes(plan).front());
}

} // namespace

TEST_CASE("schedules are offered with and without split sums, each once, the least cost first") {
  const Target gfx942 = target("gfx942");
  const Plan plan =
      make_plan(KernelSpec("gemm").output(
                    "c", f32, matmul_nt(input("a", gfx942.fp8(), {dynamic("m", 1, 8), 4096}), input("b", gfx942.fp8(), {2304, 4096}))),
                gfx942);
  const std::vector<Schedule> all = candidates(plan, gfx942);
  REQUIRE(all.size() > 4);
  double before = 0;
  for (const Schedule& s : all) {
    CHECK(nominal_cost(plan, s, gfx942) >= before);
    before = nominal_cost(plan, s, gfx942);
    CHECK(std::ranges::count(all, s.config, &Schedule::config) == 1);
  }
  const auto splits = [](const Schedule& s) { return std::get<GemmConfig>(s.config).splits(); };
  CHECK(std::ranges::any_of(all, splits));
  CHECK_FALSE(std::ranges::all_of(all, splits));
}

TEST_CASE("a small product leaves CUs idle rather than have sums meet across workgroups") {
  for (const std::string_view arch : known_archs()) CHECK_FALSE(eight_bits(target(arch), 1, 2048, 1024).front().splits());
}

TEST_CASE("a large product keeps nearly all CUs busy") {
  for (const std::string_view arch : known_archs())
    for (const auto& [n, k] : {std::pair(13312, 16384), std::pair(16384, 6656)}) {
      CAPTURE(arch);
      CAPTURE(n);
      CHECK(gemm_balance(eight_bits(target(arch), 8, n, k).front(), target(arch)) >= 0.8);
    }
}

TEST_CASE("a tile so narrow that it reads A more often than L1 keeps up with does not come first") {
  const auto configs = four_bits(target("gfx942"), f16, 64, 14336, 4096);
  const auto a_for_b = [](const GemmConfig& c) { return static_cast<double>(gemm_a_loads(c)) / c.b_loads(); };
  const auto most = std::ranges::max_element(configs, {}, a_for_b);
  CHECK(a_for_b(configs.front()) < a_for_b(*most));
}

TEST_CASE("equal parts of tiles meet at the end alone, and go along k together, so that L2 loses rows of A") {
  const auto demand_of = [](std::int64_t n, std::int64_t k, int tile_n, int workgroups) {
    return demand_of_fp8(64, n, k, tile_n, workgroups);
  };
  const Demand thirds = demand_of(2112, 7168, 32, 198), crossing = demand_of(2112, 7168, 32, 200); // of 66 tiles
  CHECK(thirds.chain_ns < 0.5 * crossing.chain_ns);
  CHECK(thirds.exit_ns > 0);
  CHECK(demand_of(2112, 7168, 32, 66).exit_ns == 0);
  // B takes 117 MB through eight L2s of 4 MiB.
  CHECK(demand_of(7168, 16384, 32, 224).near_lost > 0.1);
  CHECK(demand_of(7168, 16384, 32, 256).near_lost == 0);
  CHECK(demand_of(2112, 7168, 32, 66).near_lost == 0);
}

TEST_CASE("each further few parts of a tile cost a trip to MALL, and the instructions that add them") {
  const auto exit_of = [](int workgroups) { return demand_of_fp8(1, 256, 16384, 16, workgroups).exit_ns; }; // 16 tiles
  const double trip = target("gfx950").chip().mall_latency_ns, round = (exit_of(256) - exit_of(64)) / 3;
  CHECK(round > 1.5 * trip);
  CHECK(round < 3 * trip);
}

// Four waves have four of 16 steps each. With three in flight, which registers allow, one would have six.
TEST_CASE("a ring that leaves a wave more steps than the others gives way to a shorter one") {
  const GemmConfig c = four_bits(target("gfx950"), bf16, 32, 13312, 2048).front();
  REQUIRE_FALSE(c.splits());
  CHECK(c.stages > 1);
  CHECK(c.steps_per_tile() % (c.waves * c.stages) == 0);
}

TEST_CASE("weights that become wider by chains of instructions take two waves a SIMD or more; others have one") {
  const Target gfx942 = target("gfx942");
  const auto waves = [&](const GemmConfig& c) { return c.waves * ceil_div(c.workgroups, gfx942.compute_units()); };
  for (const auto& [n, k] : {std::pair(28672, 4096), std::pair(6144, 4096), std::pair(4096, 14336)}) {
    CAPTURE(n);
    CHECK(waves(four_bits(gfx942, bf16, 8, n, k).front()) >= 8);
  }
  CHECK(waves(eight_bits(gfx942, 8, 4096, 14336).front()) == 4);
}

TEST_CASE("short rows of B that are many take a wave a tile, with all of it in flight; where the others would be idle, they do not") {
  for (const std::string_view arch : known_archs()) {
    CAPTURE(arch);
    const GemmConfig wide = eight_bits(target(arch), 16, 28672, 256).front(), narrow = eight_bits(target(arch), 16, 2048, 256).front();
    CHECK(wide.waves == 1);
    CHECK(wide.workgroups == wide.tiles());
    CHECK(wide.stages == wide.steps_per_tile());
    CHECK(narrow.waves > 1);
  }
}

TEST_CASE("tiles of one step are never split, so the rows of an adapter need no workspace") {
  const Target to = target("gfx942");
  const GemmConfig c = configs_of(catalog_spec("lora_expand_add", {.dtype = f16, .m = 16, .n = 4096, .rank = 64}), to).front();
  CHECK(c.steps_per_tile() == 1);
  CHECK(c.waves == 1);
  CHECK(c.workspace_bytes() == 0);
  for (const GemmConfig& other : configs_of(catalog_spec("lora_expand_add", {.dtype = f16, .m = 16, .n = 4096, .rank = 16}), to))
    CHECK_FALSE(other.publishes());
}

TEST_CASE("the demand of more workgroups than the likely tiles of experts is that of those that have some") {
  const Target to = target("gfx942");
  const Plan plan = make_plan(catalog_spec("grouped_gemm", {.dtype = f16, .top = 4, .m = 12, .n = 72, .k = 64, .experts = 5}), to);
  const Schedule most =
      with_overrides(candidates(plan, to).front(), {"tile_n=16", "waves=1", "stages=1", "loads=4", "workgroups=39"}, plan, to);
  CHECK(plan.family->demand(plan, most, to, nominal_sizes(plan).front())->workgroups <= 25); // of five experts
}
