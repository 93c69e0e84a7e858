// Chips with fewer CUs than the largest of their architecture: schedules, keys, manifests and devices of their own.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "runtime/aot/manifest.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/device.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/jit_options.h"
#include <doctest/doctest.h>

namespace chips_test {
using namespace kiln;
using namespace kiln::test;

namespace {

KernelSpec product() { return catalog_spec("gemm", {.dtype = f16, .m = 16, .n = 4096, .k = 4096}); }

int workgroups_on(const Target& chip) { return std::get<GemmConfig>(choose_schedule(make_plan(product(), chip), chip).config).workgroups; }

} // namespace

TEST_CASE("a chip is a target of its own if it has fewer CUs than the largest") {
  const Target mi308x = target("mi308x");
  CHECK(mi308x.arch() == "gfx942");
  CHECK(mi308x.compute_units() == 80);
  CHECK(mi308x.own_chip() == "mi308x");
  CHECK(target("mi325x") == target("gfx942")); // as many CUs: the same schedules and entries
  CHECK(target("gfx942").own_chip().empty());
  CHECK(workgroups_on(mi308x) <= 2 * 80);
  CHECK(workgroups_on(target("gfx942")) > 2 * 80);
}

TEST_CASE("a device knows its chip by its name, and kernels of another chip serve where nothing else is") {
  const Scratch scratch;
  const Device device = Device::emulated("mi308x");
  CHECK(device.product() == "CPU model of MI308X");
  CHECK(device.target() == target("mi308x"));
  const Kernel of_all = Jit(target("gfx942"), options_in(scratch.path)).compile(product());

  Jit serving(device, options_in(scratch.path, JitPolicy::cache_only));
  CHECK(serving.compile(product()).key() == of_all.key());
  CHECK(serving.stats().events.contains("schedule_of_other_chip"));

  const Kernel own = Jit(device, options_in(scratch.path)).compile(product());
  CHECK(own.origin() == Origin::compiled); // by a worker, which has the chip from the request
  CHECK(own.key() != of_all.key());
  Jit again(device, options_in(scratch.path, JitPolicy::cache_only));
  CHECK(again.compile(product()).key() == own.key());
  CHECK(again.stats().events.empty());
}

TEST_CASE("manifests name chips as architectures") {
  const auto chips_of = [](const char* line, const std::vector<std::string>& asked) {
    std::string text;
    for (const AotKernel& kernel : parse_manifest(line, "kernels", {}, asked, {}))
      text += kernel.request.arch + " " + kernel.request.chip + "; ";
    return text;
  };
  constexpr const char* any = R"({"catalog": "softmax"})";
  CHECK(chips_of(any, {"gfx942", "mi308x"}) == "gfx942 ; gfx942 mi308x; ");
  constexpr const char* recorded = R"({"catalog": "softmax", "arch": ["mi308x"]})";
  CHECK(chips_of(recorded, {"gfx942", "gfx950"}) == "gfx942 mi308x; "); // an architecture stands for its chips
  CHECK(chips_of(recorded, {"mi300a"}).empty());
  CHECK(chips_of(R"({"catalog": "softmax", "arch": ["gfx942"]})", {"mi308x"}) == "gfx942 mi308x; ");
}

} // namespace chips_test
