// An architecture that nobody sells, given as a row: it plans, costs and refuses by that row, and by no name or other row.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "gen/families/schedule.h"
#include <doctest/doctest.h>

namespace unit_machine {
using namespace kiln;

namespace {

// As gfx942, but for what `change` does to its row and its chip's.
template <class Change> Target odd(Change change) {
  machine::Arch arch = machine::gfx942;
  machine::Chip chip = machine::mi300x;
  arch.name = "gfx1", chip.name = "one", chip.arch = "gfx1";
  change(arch, chip);
  return {arch, chip};
}

double cost(const Plan& plan, const Schedule& schedule, const Target& to) { return nominal_cost(plan, schedule, to); }

} // namespace

TEST_CASE("a row of nonsense: costs are its own") {
  const KernelSpec spec = catalog_spec("rmsnorm", {.cols = 8192});
  const Target usual = target("gfx942"), same = odd([](auto&, auto&) {});
  const Plan plan = make_plan(spec, same);
  const Schedule schedule = choose_schedule(plan, usual);
  CHECK(cost(plan, schedule, same) == cost(plan, schedule, usual));
  const double slow = cost(plan, schedule, odd([](auto&, machine::Chip& c) { c.floor_ns = 1e6; }));
  CHECK(slow == doctest::Approx(cost(plan, schedule, usual) + 1e6 - machine::mi300x.floor_ns).epsilon(0.01));
  const auto changed = [&](auto change) { return cost(plan, schedule, odd(change)) > 1.05 * cost(plan, schedule, usual); };
  CHECK(changed([](auto&, machine::Chip& c) { c.cus = 7; }));
  CHECK(changed([](auto&, machine::Chip& c) { c.hbm_tbs = 0.001; }));
  CHECK(changed([](auto&, machine::Chip& c) { c.hbm_latency_ns *= 10; }));
  CHECK(changed([](auto&, machine::Chip& c) { c.clock_ghz = 0.05; }));
}

TEST_CASE("a row of nonsense: schedules follow its CUs, its LDS and its instructions") {
  const Target few = odd([](machine::Arch& a, machine::Chip& c) { a.compute_units = c.cus = 7; });
  const KernelSpec product = catalog_spec("gemm", {.dtype = f16, .m = 16, .n = 4096, .k = 4096});
  CHECK(std::get<GemmConfig>(choose_schedule(make_plan(product, few), few).config).workgroups <= 2 * 7);
  const Target little = odd([](machine::Arch& a, auto&) { a.lds_bytes = 20000; });
  for (const Schedule& schedule : candidates(make_plan(product, little), little))
    CHECK(std::get<GemmConfig>(schedule.config).lds_bytes() <= 20000);
  CHECK(odd([](machine::Arch& a, auto&) { a.fp8 = machine::Fp8Format::ocp; }).fp8() == e4m3fn);
  CHECK(odd([](machine::Arch& a, auto&) { a.permlane_swap = true; }).has_permlane_swap());
}

TEST_CASE("a row of nonsense: refusals name it and its numbers") {
  const Target none = odd([](machine::Arch& a, auto&) { a.lds_bytes = 300; });
  const Plan plan = make_plan(catalog_spec("gemm", {.dtype = f16, .m = 64, .n = 4096, .k = 4096}), none);
  CHECK_THROWS_WITH_AS(static_cast<void>(choose_schedule(plan, none)), doctest::Contains("gfx1 has 300"), UserError);
}

} // namespace unit_machine
