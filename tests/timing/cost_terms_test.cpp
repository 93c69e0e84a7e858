// Proves that the closed form of gen knows the chips as the simulation does, and that its terms move as what they stand for does.
#include "gen/families/common/cost.h"
#include "isa_checks/timing/chips.h"
#include <doctest/doctest.h>

using namespace kiln;

TEST_CASE("the closed form has the constants of the simulation") {
  for (const std::string_view arch : known_archs()) {
    const Target gpu = target(arch);
    const ChipTerms& terms = chip_terms(gpu);
    const timing::Chip& chip = timing::chip(terms.chip);
    CAPTURE(arch);
    CHECK(chip.arch == arch);
    CHECK(terms.cus == target(arch).compute_units());
    CHECK(terms.cus == chip.cus);
    CHECK(terms.xcds == chip.xcds);
    const std::pair<double, double> same[] = {{terms.clock_ghz, chip.clock_ghz},
                                              {terms.floor_ns, chip.floor_ns},
                                              {terms.slot_turnover_ns, chip.slot_turnover_ns},
                                              {terms.scalar_load_cycles, chip.scalar_load_cycles},
                                              {terms.hbm_latency_ns, chip.hbm_latency_ns},
                                              {terms.hbm_tbs, chip.hbm_tbs},
                                              {terms.write_tbs, chip.write_tbs},
                                              {terms.hbm_free_bytes, chip.hbm_free_bytes},
                                              {terms.hbm_ns_per_byte, chip.hbm_ns_per_byte},
                                              {terms.l2_tbs, chip.l2_tbs},
                                              {terms.fill_bytes_per_cycle, chip.fill_bytes_per_cycle},
                                              {terms.l1_bytes_per_cycle, chip.l1_bytes_per_cycle},
                                              {terms.lds_latency_cycles, chip.lds_latency_cycles},
                                              {terms.barrier_cycles, chip.barrier_cycles},
                                              {terms.dependent_cycles, chip.dependent_cycles},
                                              {terms.store_ack_cycles, chip.store_ack_cycles},
                                              {terms.release_ns, chip.release_ns},
                                              {terms.atomic_ns, chip.atomic_ns}};
    for (const auto& [here, there] : same) CHECK(here == doctest::Approx(there));
  }
}

TEST_CASE("each term grows with what it stands for") {
  const Target gfx942 = target("gfx942");
  const ChipTerms& chip = chip_terms(gfx942);
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
  CHECK(total([](Demand& d) { d.busiest = 2; }) > least);
  CHECK(total([](Demand& d) { d.busiest_xcd = 2; }) > least);
  CHECK(total([](Demand& d) { d.trips = 8; }) > least + 2 * chip.hbm_latency_ns);
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
