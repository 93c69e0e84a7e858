// Batch invariance on its way: environment, options of a Jit, keys, workers, manifests, tables of schedules, the command line.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "runtime/aot/manifest.h"
#include "runtime/jit/jit.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/jit_options.h"
#include <doctest/doctest.h>

namespace batch_invariance_test {
using namespace kiln;
using namespace kiln::test;

namespace {

KernelSpec product(std::int64_t m) { return catalog_spec("gemm", {.dtype = f16, .m = m, .n = 96, .k = 1024}); }
const Target any = target("gfx942"), wanted = target("gfx942").with_batch_invariance();

std::string order_of(const KernelSpec& spec, const Target& to) {
  const Plan plan = make_plan(spec, to);
  return sum_order(plan, choose_schedule(plan, to), to).order;
}

} // namespace

TEST_CASE("a batch-invariant kernel has a key of its own, other keys are as they were") {
  const auto key = [](const Target& to) { return cache_key(kernel_request(product(16), to, {}, {}), "compiler"); };
  CHECK(field_of(key(any), "batch_invariant").empty());
  CHECK(field_of(key(wanted), "batch_invariant") == "1");
  CHECK(key(any).hex != key(wanted).hex);
  CHECK(target_of(kernel_request(product(16), wanted, {}, {})) == wanted);
  CHECK(target_of(kernel_request(product(16), any, {}, {})) == any);
}

TEST_CASE("KILN_BATCH_INVARIANT is an option of a Jit, whose workers and caches know it") {
  const auto parsed = [](const char* value) {
    return parse_environment(
        [&](std::string_view name) { return name == "KILN_BATCH_INVARIANT" ? std::optional<std::string>(value) : std::nullopt; });
  };
  CHECK(jit_options(parsed("1")).batch_invariant);
  CHECK_FALSE(jit_options(parsed("0")).batch_invariant);
  CHECK_THROWS_WITH_AS(parsed("yes"), doctest::Contains("KILN_BATCH_INVARIANT"), UserError);

  const Scratch scratch;
  JitOptions options = options_in(scratch.path);
  const Kernel plain = Jit(any, options).compile(product(16));
  options.batch_invariant = true;
  Jit jit(any, options);
  CHECK(jit.target() == wanted);
  const Kernel invariant = jit.compile(product(16));
  CHECK(invariant.origin() == Origin::compiled); // by a worker
  CHECK(invariant.key() != plain.key());
  CHECK(Jit(wanted, options_in(scratch.path, JitPolicy::cache_only)).compile(product(16)).key() == invariant.key());
}

TEST_CASE("a chip's own batch-invariant kernel is replaced by no other chip's") {
  const Scratch scratch;
  Jit(wanted, options_in(scratch.path)).compile(product(16));
  Jit serving(target("mi308x").with_batch_invariance(), options_in(scratch.path, JitPolicy::cache_only));
  CHECK_THROWS_AS(serving.compile(product(16)), CacheMiss);
}

TEST_CASE("manifests say batch_invariant, and a Jit that records does") {
  const auto invariant = [](const char* line, bool of_environment = false) {
    CompileOptions options;
    options.environment.batch_invariant = of_environment;
    return parse_manifest(line, "kernels", {}, {"gfx942"}, options).at(0).request.batch_invariant;
  };
  CHECK_FALSE(invariant(R"({"catalog": "softmax"})"));
  CHECK(invariant(R"({"catalog": "softmax"})", true));
  CHECK(invariant(R"({"catalog": "softmax", "batch_invariant": true})"));
  CHECK_FALSE(invariant(R"({"catalog": "softmax", "batch_invariant": false})", true));
  CHECK_THROWS_WITH_AS(invariant(R"({"catalog": "softmax", "batch_invariant": 1})"), doctest::Contains("give true or false"), UserError);

  const Scratch scratch;
  JitOptions options = options_in(scratch.path / "cache", JitPolicy::record);
  options.manifest = scratch.path / "recorded.jsonl";
  options.batch_invariant = true;
  Jit(any, options).compile(product(16));
  CHECK(invariant(contents(options.manifest).c_str()));
}

TEST_CASE("products of all bounds of rows have one order, and schedules of another are refused") {
  const std::string order = order_of(product(16), wanted);
  for (const std::int64_t m : {1, 2, 17, 64, 128}) CHECK(order_of(product(m), wanted) == order);
  const Plan plan = make_plan(product(16), wanted);
  const auto with = [&](const char* setting) { return with_overrides(choose_schedule(plan, wanted), {setting}, plan, wanted); };
  with("stages=1"); // changes no order
  CHECK_THROWS_WITH_AS(with("waves=2"), doctest::Contains("the kernel is to be batch-invariant"), UserError);
  CHECK_THROWS_WITH_AS(with("workgroups=12"), doctest::Contains("its sums are taken as"), UserError);
  CHECK_THROWS_WITH_AS(with("atomics=1"), doctest::Contains("parts of tiles in a fixed order"), UserError);
  const Plan rows = make_plan(catalog_spec("rmsnorm", {.cols = 16384, .max_rows = 1}), wanted);
  CHECK_THROWS_WITH_AS(with_overrides(choose_schedule(rows, wanted), {"tiles=2", "prefetch_depth=1"}, rows, wanted),
                       doctest::Contains("workgroups share a row"), UserError);
}

TEST_CASE("commands take --batch-invariant and KILN_BATCH_INVARIANT, and kiln explain says what holds") {
  const std::string gemm = "gemm --m 16 --n 96 --k 1024 --dtype f16 --arch gfx942 ";
  CHECK(kiln::test::kiln("compile " + gemm + "--emit schedule").out.find("batch_invariant") == std::string::npos);
  CHECK(kiln::test::kiln("compile " + gemm + "--emit schedule --batch-invariant").out.find("batch_invariant=true") != std::string::npos);
  CHECK(kiln::test::kiln("compile " + gemm + "--emit schedule", "KILN_BATCH_INVARIANT=1").out.find("batch_invariant=true") !=
        std::string::npos);
  CHECK(kiln::test::kiln("explain silu_mul --cols 512 --arch gfx942").out.find("batch invariance: holds: nothing is summed") !=
        std::string::npos);
  const std::string experts =
      kiln::test::kiln("explain grouped_gemm --m 4 --n 64 --k 512 --experts 4 --top 2 --dtype bf16 --arch gfx942").out;
  CHECK(experts.find("batch invariance: does not hold: workgroups share the steps") != std::string::npos);
  CHECK(experts.find("--batch-invariant would choose") != std::string::npos);
}

} // namespace batch_invariance_test
