// kiln misses: what a program that only looks into caches did not find is written down, listed, and said to be there once it is.
#include "runtime/jit/jit.h"
#include "tests/compile/run_cli.h"
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace misses_tests {
using namespace kiln;
using namespace kiln::test;

namespace {

KernelSpec scaled_by_two(int cols) {
  return parse_spec("kernel scaled dim n input x: f16[n, " + std::to_string(cols) + "] output y: f16[n, " + std::to_string(cols) +
                    "] = x * 2");
}

// Asks a Jit of its own for both kernels, as a serving program would.
void serve_both(const Scratch& scratch, JitPolicy policy) {
  JitOptions options = jit_options(process_environment());
  options.policy = policy;
  options.cache.folder = scratch.path / "cache";
  options.manifest = scratch.path / "misses.jsonl";
  options.log = {};
  Jit jit(target("gfx942"), options);
  for (const int cols : {64, 128}) {
    try {
      jit.compile(scaled_by_two(cols));
      jit.compile(scaled_by_two(cols));
    } catch (const CacheMiss&) {
      CHECK_THROWS_AS(jit.compile(scaled_by_two(cols)), CacheMiss); // asked again: written once
    }
  }
}

nlohmann::json listed_misses(const Scratch& scratch) {
  const std::string file = (scratch.path / "misses.jsonl").string();
  return nlohmann::json::parse(
      test::kiln("misses --json", "KILN_JIT_MANIFEST=" + file + " KILN_CACHE_DIR=" + (scratch.path / "cache").string()).out);
}

} // namespace

TEST_CASE("kernels that a cache_only program missed are listed until the cache has them") {
  const Scratch scratch;
  const std::string file = (scratch.path / "misses.jsonl").string(), cache = "KILN_CACHE_DIR=" + (scratch.path / "cache").string();
  const CliResult none = test::kiln("misses " + file, cache);
  CHECK(none.exit_code == 2);
  CHECK(none.err.find("none is made without a miss") != std::string::npos);
  CHECK(test::kiln("misses").err.find("no manifest is named") != std::string::npos);

  serve_both(scratch, JitPolicy::cache_only);
  serve_both(scratch, JitPolicy::cache_only);
  const nlohmann::json before = listed_misses(scratch);
  REQUIRE(before.size() == 2);
  CHECK(before[1]["kernel"] == "scaled");
  CHECK(before[1]["arch"] == "gfx942");
  CHECK(before[1]["times"] == 2); // by two Jits, once each
  CHECK(before[1]["now"] == "nowhere");
  CHECK(before[1]["spec"] == to_text(scaled_by_two(128)));
  const CliResult text = test::kiln("misses " + file, cache);
  CHECK(text.exit_code == 1);
  CHECK(text.out.find("f16[n, 128]") != std::string::npos);
  CHECK(text.out.find("2 of 2 kernels nowhere") != std::string::npos);
  CHECK(text.out.find("kiln aot " + file + " --arch gfx942 -o") != std::string::npos);

  serve_both(scratch, JitPolicy::record); // compiles both, into the cache
  CHECK(listed_misses(scratch)[0]["times"] == 3);
  CHECK(listed_misses(scratch)[0]["now"] == "folder");
  const CliResult after = test::kiln("misses " + file, cache);
  CHECK(after.exit_code == 0);
  CHECK(after.out.find("0 of 2 kernels nowhere") != std::string::npos);
}

} // namespace misses_tests
