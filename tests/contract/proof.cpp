// Proof sheets: of a kernel that holds, of kernels broken on purpose, each in the line that it breaks, and as `kiln prove` writes them.
#include "runtime/proof/proof.h"
#include "gen/catalog/catalog.h"
#include "tests/compile/run_cli.h"
#include "tests/contract/altered.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace proof_tests {
using namespace kiln;
using testing::Alteration;
using testing::altered;
namespace fs = std::filesystem;

namespace {

const KernelSpec& norm() {
  static const KernelSpec spec = catalog_spec("rmsnorm", {.cols = 8192});
  return spec;
}
CompileOptions own_options() { return own_process_options(process_environment()); }

ProofSheet sheet_of(const BuiltKernel& kernel, const Target& to) {
  return prove(norm(), to, kernel, own_options(), {.rows = 5, .inputs = 1, .orders = 2, .launches = 2});
}

std::vector<std::string> failing(const ProofSheet& sheet) {
  std::vector<std::string> names;
  for (const ProofLine& line : sheet.lines)
    if (line.verdict == ProofVerdict::fails) names.push_back(line.name);
  return names;
}

bool fails(const ProofSheet& sheet, const std::string& line) { return std::ranges::count(failing(sheet), line) == 1; }

} // namespace

TEST_CASE("a kernel that holds: every line, and the same sheet again") {
  const Target to = target("gfx942");
  const BuiltKernel kernel = build_kernel(norm(), to, own_options());
  const ProofSheet sheet = sheet_of(kernel, to);
  CHECK(sheet.holds());
  std::vector<std::string> names;
  for (const ProofLine& line : sheet.lines) names.push_back(line.name);
  for (const char* name : {"contract", "known faults", "lint", "results, random inputs", "results, special inputs",
                           "results, largest inputs", "interleavings", "sanitisers", "batch invariance", "predicted time"})
    CHECK_MESSAGE(std::ranges::count(names, name) == 1, name);
  CHECK(sheet.contract.results == kernel.report.results);
  CHECK(to_json(sheet) == to_json(sheet_of(kernel, to)));
}

TEST_CASE("a kernel broken on purpose fails in the line that it breaks") {
  const Target to = target("gfx950");
  const BuiltKernel kernel = build_kernel(norm(), to, own_options());
  const auto with = [&](const char* from, const char* to_text) { return sheet_of(altered({"", from, to_text}, kernel, to), to); };

  const ProofSheet inexact = with("return __builtin_amdgcn_rsqf(x);", "return 1.02f * __builtin_amdgcn_rsqf(x);");
  CHECK(fails(inexact, "results, random inputs"));
  CHECK_FALSE(fails(inexact, "contract"));
  CHECK_FALSE(fails(inexact, "sanitisers"));

  const ProofSheet racing = with("  __builtin_amdgcn_s_barrier();\n", "");
  CHECK(fails(racing, "sanitisers"));
  CHECK(to_text(racing).find("race") != std::string::npos);

  const ProofSheet faulty =
      with("KILN_DEVICE f32 rsqrt(f32 x) { ", "KILN_DEVICE f32 rsqrt(f32 x) { asm volatile(\"v_pk_fma_f32 v[0:1], v[2:3], "
                                              "v[4:5], v[6:7] op_sel:[0,1,0]\" ::: \"v0\", \"v1\"); ");
  const KernelSpec keys = catalog_spec("attention_decode", {.heads = 4, .kv_heads = 1, .d = 64, .length = 1500});
  const ProofSheet by_batch = prove(keys, target("gfx942").with_batch_invariance(), build_kernel(keys, target("gfx942"), own_options()),
                                    own_options(), {.rows = 2, .inputs = 1, .orders = 1, .launches = 1});
  CHECK(fails(by_batch, "batch invariance"));

  CHECK(fails(faulty, "known faults"));
  CHECK(fails(faulty, "contract"));
  CHECK(to_markdown(faulty).find("ERR001") != std::string::npos);
}

TEST_CASE("kiln prove: a manifest's sheets in a folder, and what it says of a wrong command line") {
  const test::Scratch scratch;
  const std::string manifest = (scratch.path / "two.jsonl").string(), folder = (scratch.path / "sheets").string();
  std::ofstream(manifest) << R"({"catalog": "rmsnorm", "cols": [256, 512]})" << '\n';
  const test::CliResult done = test::kiln("prove " + manifest + " --arch gfx942 --rows 2 --inputs 1 --quiet -o " + folder);
  CHECK_MESSAGE(done.exit_code == 0, done.err);
  std::size_t sheets = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    ++sheets;
    const auto json = nlohmann::json::parse(test::contents(file.path()));
    CHECK(json["holds"] == true);
    CHECK(json["lines"].size() >= 9);
    CHECK(test::contents(folder + "/README.md").find(file.path().stem().string() + ".md") != std::string::npos);
  }
  CHECK(sheets == 2);

  const auto refused = [](const std::string& arguments, const std::string& words) {
    const test::CliResult result = test::kiln("prove " + arguments);
    CHECK(result.exit_code == 2);
    CHECK_MESSAGE(result.err.find(words) != std::string::npos, result.err);
  };
  refused("", "no kernel was given");
  refused("--all rmsnorm", "'rmsnorm' was given too");
  refused("rmsnrm", "rmsnorm"); // did you mean
  refused("rmsnorm --set nothing=1", "nothing");
  refused("rmsnorm --device hip:7", "there is no device hip:7");
  refused(manifest + " --set vec=4", "beside a manifest");
  refused("rmsnorm --arch gfx942 --device emulated:gfx950", "it is gfx950");
}

TEST_CASE("kiln prove --device: the CPU model as a device") {
  const test::CliResult done = test::kiln("prove rmsnorm --cols 256 --rows 2 --inputs 1 --device emulated:gfx942 --json");
  CHECK_MESSAGE(done.exit_code == 0, done.err);
  const auto json = nlohmann::json::parse(done.out);
  CHECK(json["lines"].back()["name"] == "measured time");
  CHECK(json["lines"].back()["found"].get<std::string>().find("not measured") == 0);
}

} // namespace proof_tests
