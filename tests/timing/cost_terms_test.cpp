// Proves that the terms of the closed form move as what they stand for does.
#include "gen/families/common/cost.h"
#include "gen/plan/target.h"
#include <doctest/doctest.h>

using namespace kiln;

TEST_CASE("each term grows with what it stands for") {
  const Target gfx942 = target("gfx942");
  const machine::Chip& chip = gfx942.chip();
  const Demand few{
      .workgroups = 304, .waves = 4, .far_bytes = 16384, .fill_bytes = 16384, .loaded = 16384, .in_flight = 16384, .instructions = 100};
  const auto total = [&](const auto& change) {
    Demand d = few;
    change(d);
    return cost_of(d, chip).total();
  };
  const double least = total([](Demand&) {});
  CHECK(least > chip.floor_ns + chip.hbm_latency_ns);
  CHECK(total([](Demand& d) { d.in_flight = 2048; }) > least);
  CHECK(total([](Demand& d) { d.fill_bytes *= 8; }) > least);
  CHECK(total([](Demand& d) { d.instructions *= 20; }) > least);
  CHECK(total([](Demand& d) { d.chain_ns = 500; }) > least + 400);
  CHECK(total([](Demand& d) { d.exit_ns = 500; }) == doctest::Approx(least + 500));
  CHECK(total([](Demand& d) { d.matrix_cycles = 8000; }) > least);
  CHECK(total([](Demand& d) { d.stage_share = 1; }) > total([](Demand& d) { d.stage_share = 0.1; }));
  CHECK(total([](Demand& d) { d.fill_bytes *= 8, d.near_lost = 0.3; }) > total([](Demand& d) { d.fill_bytes *= 8; }));
  CHECK(total([](Demand& d) { d.in_flight /= 8; }) > least + 2 * chip.hbm_latency_ns);
  CHECK(total([](Demand& d) { d.far_bytes *= 8, d.fill_bytes *= 8; }) > total([](Demand& d) { d.fill_bytes *= 8; }));
  // The same bytes on a quarter of the CUs, and on all of them.
  Demand idle = few;
  idle.workgroups = 76;
  for (double* bytes : {&idle.far_bytes, &idle.fill_bytes, &idle.loaded, &idle.in_flight}) *bytes *= 64;
  Demand busy = idle;
  busy.workgroups = 304;
  for (double* bytes : {&busy.far_bytes, &busy.fill_bytes, &busy.loaded, &busy.in_flight}) *bytes /= 4;
  CHECK(cost_of(idle, chip).total() > cost_of(busy, chip).total());
  // A large stream takes its bytes over the rate of HBM, and is said to be bound by it.
  Demand large = few;
  large.workgroups = 304 * 64;
  large.per_cu = 4;
  const Cost cost = cost_of(large, chip);
  CHECK(cost.bound_by == "HBM");
  CHECK(cost.stream >= large.workgroups * large.far_bytes / chip.hbm_tbs / 1e3);
  CHECK(cost.stream < 1.3 * large.workgroups * large.far_bytes / chip.hbm_tbs / 1e3);
}

TEST_CASE("where some CUs have a workgroup more than others, less is in flight on average, and comes sooner") {
  machine::Chip chip = target("gfx942").chip();
  chip.hbm_tbs = 1000;                         // lines that L1s wait for decide
  const auto stream = [&](double workgroups) { // on the busiest CU: two
    return cost_of({.workgroups = workgroups, .waves = 4, .per_cu = 2, .far_bytes = 1 << 16, .fill_bytes = 1 << 16, .in_flight = 1 << 16},
                   chip)
        .stream;
  };
  CHECK(stream(1.1 * chip.cus) < 0.8 * stream(2 * chip.cus));
}

TEST_CASE("workgroups that begin together leave a pause before the next ones' loads, once") {
  const Target gfx942 = target("gfx942");
  const auto longer = [&](double rounds) { // for 400 ns more of what follows the loads
    Demand d{.workgroups = 16 * 304,
             .waves = 4,
             .per_cu = 16 / rounds,
             .far_bytes = 1 << 16,
             .fill_bytes = 1 << 16,
             .loaded = 1 << 16,
             .in_flight = 1 << 16,
             .chain_ns = 100};
    const double before = cost_of(d, gfx942.chip()).total();
    d.chain_ns += 400;
    return cost_of(d, gfx942.chip()).total() - before;
  };
  CHECK(longer(1) == doctest::Approx(400).epsilon(0.05));
  CHECK(longer(2) == doctest::Approx(800).epsilon(0.05));
  CHECK(longer(4) == doctest::Approx(800).epsilon(0.05));
}
