// kiln cache diff: what another compiler made worse comes first, errata before time, and can fail a build.
#include "gen/catalog/catalog.h"
#include "isa_checks/decode/assembler.h"
#include "runtime/build/build_kernel.h"
#include "tests/compile/run_cli.h"
#include "tests/isa/snippet.h"
#include "tests/runtime/fake_kernel.h"
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace cache_diff_tests {
using namespace kiln;
using namespace kiln::test;

namespace {

const std::string text = "kernel scale\ndim rows\ninput x: f16[rows, 4096]\noutput y: f16[rows, 4096] = x * 2\n";

// The kernel as built with a schedule, in the place of what a compiler made of it.
void publish_built(const CacheFolder& cache, const std::vector<std::string>& overrides, const char* compiler) {
  const KernelSpec spec = parse_spec(text);
  const CompileOptions options = own_process_options(process_environment());
  const KernelRequest request = kernel_request(spec, target("gfx942"), {}, options);
  BuiltKernel built = build_kernel(spec, target("gfx942"), options, overrides);
  built.object.compiler = compiler;
  cache.publish(cache_key(request, compiler).hex, make_entry(request, built));
}

// A kernel of one instruction.
void publish_assembled(const CacheFolder& cache, const std::string& body, int vgprs, const char* compiler) {
  const KernelRequest request = fake_request("faulty", "gfx950");
  KernelSource source;
  source.name = "faulty";
  source.arch = "gfx950";
  source.launch.threads = 64;
  const isa::Bytes bytes = isa::assemble(isa::testing::kernel_text(body, "gfx950", {.name = "faulty", .vgprs = 64, .accum_offset = 64}),
                                         isa::target_facts("gfx950"));
  cache.publish(cache_key(request, compiler).hex,
                make_entry(request, source, {bytes.begin(), bytes.end()},
                           {.compiler = compiler,
                            .llvm = {},
                            .schedule = "none",
                            .rejected = {},
                            .facts = "{\"instructions\": 2, \"resources\": {\"vgprs\": " + std::to_string(vgprs) + "}}",
                            .contract = "{\"met\": true}"}));
}

} // namespace

TEST_CASE("kiln cache diff: regressions first, errata before predicted times") {
  const Scratch scratch;
  const std::string before = (scratch.path / "before").string(), after = (scratch.path / "after").string();
  const CacheFolder old(before, {.writable = true}), now(after, {.writable = true});
  const std::string fma = "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[0:1]";
  publish_assembled(old, fma, 8, "old");
  publish_assembled(now, fma + " op_sel:[0,1,0]", 16, "new");
  publish_built(old, {}, "old");
  publish_built(now, {"chunks=4"}, "new");

  const CliResult found = kiln::test::kiln("cache diff " + before + " " + after);
  CHECK(found.exit_code == 0);
  const auto at = [&](const char* words) {
    const std::size_t place = found.out.find(words);
    CHECK_MESSAGE(place != std::string::npos, words, " is not in\n", found.out);
    return place;
  };
  const std::size_t errata = at("  ! errata: ERR001 error came: "), time = at("  ! time: ");
  CHECK(at("faulty gfx950") < errata);
  CHECK(errata < at("  ! resources.vgprs: 8 -> 16"));
  CHECK(at("  ! resources.vgprs: 8 -> 16") < at("scale gfx942"));
  CHECK(at("scale gfx942") < time);
  CHECK(at("not compared: time: ") < time); // the assembled kernel has no arguments to launch it with
  at("2 kernels, 2 changed, 2 got worse");

  CHECK(kiln::test::kiln("cache diff --fail-on-regression --quick " + before + " " + after).exit_code == 1);
  const CliResult back = kiln::test::kiln("cache diff --fail-on-regression " + after + " " + before);
  CHECK(back.exit_code == 0); // what went is no regression, nor what got quicker
  CHECK(back.out.find("    errata: ERR001 error went: ") != std::string::npos);
  CHECK(back.out.find("    time: ") != std::string::npos);

  const nlohmann::json json = nlohmann::json::parse(kiln::test::kiln("cache diff --json " + before + " " + after).out);
  REQUIRE(json.size() == 2);
  CHECK(json[0]["kernel"] == "faulty");
  CHECK(json[0]["regression"] == true);
  CHECK(json[0]["errata"]["came"][0]["rule"] == "ERR001");
  CHECK(json[0]["predicted_us"]["before"].is_null());
  CHECK(json[1]["predicted_us"]["after"].get<double>() > json[1]["predicted_us"]["before"].get<double>());
}

} // namespace cache_diff_tests
