// kiln aot: manifests, resuming, shards, reproducible layers that a Jit mounts, and the scripts for ninja and Slurm.
#include "runtime/aot/aot.h"
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/jit/jit.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/child.h"
#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace aot_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> both{"gfx942", "gfx950"};

std::vector<AotKernel> parsed(const std::string& text, const std::vector<std::string>& archs = both) {
  return parse_manifest(text, "m.jsonl", "/", archs, {});
}

std::string message(const std::string& text) {
  try {
    parsed(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string titles(const std::vector<AotKernel>& kernels) {
  std::string text;
  for (const AotKernel& kernel : kernels) text += kernel.title + "; ";
  return text;
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

int sh(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string entries_of(const fs::path& cache) { // every byte of them
  std::string all;
  std::set<std::string> files;
  for (const auto& file : fs::recursive_directory_iterator(cache / "v1"))
    if (file.is_regular_file()) files.insert(file.path().string());
  for (const std::string& file : files) all += file.substr(cache.string().size()) + "\n" + contents(file);
  return all;
}

const std::string small_manifest = R"({"catalog": "rmsnorm", "cols": 512, "dtype": ["f16", "bf16"]}
{"spec": "kernel twice\ndim rows\ninput x: f16[rows, $n]\noutput y: f16[rows, $n] = x * 2\n", "n": {"from": 64, "to": 100, "step": 64}}
)";

} // namespace

TEST_CASE("a line of a manifest stands for every combination of its values, and equal kernels are one") {
  CHECK(titles(parsed(R"({"catalog": "rmsnorm", "cols": [1024, 2048], "dtype": ["f16", "bf16"]})", {"gfx942"})) ==
        "rmsnorm cols=1024 dtype=f16; rmsnorm cols=1024 dtype=bf16; rmsnorm cols=2048 dtype=f16; rmsnorm cols=2048 dtype=bf16; ");
  CHECK(titles(parsed(R"({"catalog": "softmax", "cols": {"from": 1, "to": 9, "times": 3}})", {"gfx942"})) ==
        "softmax cols=1; softmax cols=3; softmax cols=9; ");
  CHECK(titles(parsed(R"({"catalog": "softmax", "cols": {"from": 5, "to": 9, "step": 2}})", {"gfx942"})) ==
        "softmax cols=5; softmax cols=7; softmax cols=9; ");
  CHECK(parsed("# nothing\n\n   \n").empty());
  CHECK(parsed(R"({"catalog": "softmax"})").size() == 2);
  CHECK(parsed(R"({"catalog": "gemm", "m": [1, 8], "n": [256, 512], "k": 1024, "dtype": "f16"})", {"gfx942"}).size() == 4);
  CHECK(parsed(R"({"catalog": "softmax", "arch": "gfx950"})").size() == 1);
  CHECK(parsed(R"({"catalog": "softmax", "arch": "gfx950"})", {"gfx942"}).empty());
  CHECK(parsed("{\"catalog\": \"softmax\"}\n{\"catalog\": \"softmax\", \"cols\": 4096}\n").size() == 2); // 4096 is the default
  const AotKernel quant = parsed(R"({"catalog": "swiglu_quant", "set": ["vec=8", "prefetch_depth=1"]})", {"gfx942"}).at(0);
  CHECK(quant.request.spec.find("e4m3fnuz") != std::string::npos); // the target's own
  CHECK(quant.request.overrides == std::vector<std::string>{"prefetch_depth=1", "vec=8"});
  const AotKernel spec =
      parsed(R"({"spec": "kernel k\ninput x: f16[$rows, $n]\noutput y: f16[$rows, $n] = x * 2\n", "rows": 3, "n": 64})").at(0);
  CHECK(spec.request.spec.find("f16[3, 64]") != std::string::npos);
}

TEST_CASE("blocks and matrices of catalogue entries are options of a line") {
  const auto kernels = parsed(R"({"catalog": "hadamard", "cols": 1024, "group": [64, 512]}
{"catalog": "sinkhorn", "cols": 64, "side": [2, 8], "times": 3})",
                              {"gfx950"});
  REQUIRE(kernels.size() == 4);
  const auto spec = [](const char* name, const CatalogOptions& options) { return to_text(catalog_spec(name, options)); };
  CHECK(kernels[0].request.spec == spec("hadamard", {.cols = 1024, .group = 64}));
  CHECK(kernels[1].request.spec == spec("hadamard", {.cols = 1024, .group = 512}));
  CHECK(kernels[2].request.spec == spec("sinkhorn", {.cols = 64, .side = 2, .times = 3}));
  CHECK(kernels[3].request.spec == spec("sinkhorn", {.cols = 64, .side = 8, .times = 3}));
}

TEST_CASE("what is wrong with a manifest is said with the line") {
  CHECK(message("\n\n{]").starts_with("m.jsonl line 3: it is no JSON object"));
  CHECK(message("[1]").starts_with("m.jsonl line 1: it is no JSON object"));
  CHECK(message("{}").find("it has 0 of catalog, spec and spec_file") != std::string::npos);
  CHECK(message(R"({"catalog": "softmaxx"})").starts_with("m.jsonl line 1: "));
  CHECK(message(R"({"catalog": "softmax", "colls": 3})").find("no option \"colls\"") != std::string::npos);
  CHECK(message(R"({"catalog": "softmax", "cols": "many"})").find("cols is \"many\"") != std::string::npos);
  CHECK(message(R"({"catalog": "softmax", "cols": []})").find("empty list") != std::string::npos);
  CHECK(message(R"({"catalog": "softmax", "cols": {"from": 1, "to": 9}})").find("step") != std::string::npos);
  CHECK(message(R"({"catalog": "softmax", "cols": {"from": 1, "to": 9, "stepp": 1}})").find("stepp") != std::string::npos);
  CHECK(message(R"({"catalog": "softmax", "cols": {"from": 1, "to": 2000000000, "step": 1}})").find("100000") != std::string::npos);
  CHECK(message(R"({"catalog": "softmax", "dtype": "f17"})").find("no type") != std::string::npos);
  CHECK(message(R"({"catalog": "softmax", "arch": "gfx1100"})") == "nothing was thrown"); // not asked for
  CHECK(message(R"({"spec": "kernel k $n"})").find("add \"n\"") != std::string::npos);
  CHECK(message(R"({"spec": "kernel k", "n": 1})").find("stands nowhere") != std::string::npos);
  CHECK(message(R"({"spec": "kernel k\nnonsense"})").starts_with("m.jsonl line 1: "));
  CHECK(message(R"({"spec_file": "no/such/file"})").find("cannot be read") != std::string::npos);
}

TEST_CASE("a line that was cut off while it was written is skipped, not a reason to refuse the file") {
  const std::string whole = R"({"spec":"kernel k\ninput x: f16[4, 64]\noutput y: f16[4, 64] = x\n","arch":["gfx942"]})";
  CHECK(parsed(whole + "\n" + whole.substr(0, 30)).size() == 1);             // the last one
  CHECK(parsed(whole.substr(0, 30) + "\n" + whole + "\n").size() == 1);      // another process went on after it
  CHECK(parsed(whole + "\n" + R"({"catalog": "rmsnorm", "co)").size() == 1); // the end of any file
  CHECK(parsed(whole).size() == 1);                                          // whole, without a line break
  // A person's mistake is none of these.
  CHECK(message(R"({"catalog": "rmsnorm")"
                "\n" +
                whole + "\n")
            .find("m.jsonl line 1") != std::string::npos);
  CHECK(message(R"({"spec":"kernel k" "n": 3})"
                "\n")
            .find("m.jsonl line 1") != std::string::npos);
}

TEST_CASE("aot: a progress function that throws costs nothing") {
  const Scratch scratch;
  CHECK(in_child([&] {
          AotOptions options{.output = scratch.path / "out", .workers = worker_options(process_environment()), .log = {}, .progress = {}};
          options.progress = [](std::size_t, const AotResult&) { throw 42; };
          const AotReport report = run_aot(parsed(R"({"catalog": "rmsnorm", "cols": [512, 1024], "arch": "gfx942"})"), options);
          return report.complete() && report.events.at("progress_threw") == 2 ? 0 : 1;
        }) == ChildEnd{0, 0});
}

TEST_CASE("shards have every kernel once, whatever else the manifest holds") {
  const std::vector<AotKernel> all = parsed(R"({"catalog": "softmax", "cols": {"from": 16, "to": 1600, "step": 16}})");
  REQUIRE(all.size() == 200);
  std::size_t sum = 0;
  for (int i = 1; i <= 7; ++i) {
    const std::vector<AotKernel> shard = shard_of(all, {i, 7});
    CHECK(shard.size() > 10);
    sum += shard.size();
    const std::vector<AotKernel> half = shard_of({all.begin(), all.begin() + 100}, {i, 7});
    for (const AotKernel& kernel : half) CHECK(std::ranges::find(shard, kernel.id, &AotKernel::id) != shard.end());
  }
  CHECK(sum == 200);
}

TEST_CASE("aot fills a layer that a Jit mounts, is resumed, and gives the same bytes elsewhere") {
  const Scratch scratch;
  write(scratch.path / "m.jsonl", small_manifest);
  const std::string manifest = (scratch.path / "m.jsonl").string(), one = (scratch.path / "one").string(),
                    two = (scratch.path / "two").string();
  const CliResult dry = kiln::test::kiln("aot " + manifest + " --arch gfx942,gfx950 -o " + one + " --dry-run");
  CHECK(dry.exit_code == 0);
  CHECK(dry.out.find("6 kernels: 0 compiled, 0 cached, 6 missing") != std::string::npos);
  CHECK_FALSE(fs::exists(one));

  const CliResult first = kiln::test::kiln("aot " + manifest + " --arch gfx942,gfx950 -j 2 --json -o " + one);
  CAPTURE(first.err);
  REQUIRE(first.exit_code == 0);
  const nlohmann::json report = nlohmann::json::parse(first.out);
  CHECK(report["counts"]["compiled"] == 6);
  CHECK(report["events"].empty());
  CHECK(report["kernels"][0]["kernel"] == "rmsnorm cols=512 dtype=f16");
  CHECK(report["kernels"][0]["ms"].get<double>() > 1);
  const nlohmann::json again = nlohmann::json::parse(kiln::test::kiln("aot " + manifest + " --arch gfx942,gfx950 --json -o " + one).out);
  CHECK(again["counts"]["cached"] == 6);

  // In shards and another order of work, in another folder: the same.
  for (int i = 1; i <= 3; ++i)
    CHECK(kiln::test::kiln("aot " + manifest + " --arch gfx950,gfx942 -j 1 --quiet --shard " + std::to_string(i) + "/3 -o " + two)
              .exit_code == 0);
  CHECK(entries_of(one) == entries_of(two));
  CHECK(contents(fs::path(one) / "layer.json") == contents(fs::path(two) / "layer.json"));
  for (const char* left : {"claims", "staging", "hosts"}) CHECK_FALSE(fs::exists(fs::path(one) / left));

  JitOptions options = jit_options(process_environment());
  options.policy = JitPolicy::cache_only;
  options.cache = {.folder = {}, .layers = {one}, .remote = {}};
  options.compile.environment.hiprtc_path = "/nowhere/libhiprtc.so"; // serving needs no compiler
  options.log = {};
  Jit jit(target("gfx942"), options);
  CHECK(jit.compile(catalog_spec("rmsnorm", {.cols = 512, .dtype = bf16})).origin() == Origin::layer);
  CHECK_THROWS_AS(jit.compile(catalog_spec("rmsnorm", {.cols = 4096})), CacheMiss);
  CHECK(jit.stats().layer_hits == 1);
}

TEST_CASE("a kernel that fails is named, the others are there, and the exit code is 1") {
  const Scratch scratch;
  write(scratch.path / "m.jsonl",
        "{\"catalog\": \"rmsnorm\", \"cols\": 512}\n{\"catalog\": \"softmax\", \"cols\": 512, \"set\": \"threads_per_row=7\"}\n");
  const CliResult result =
      kiln::test::kiln("aot " + (scratch.path / "m.jsonl").string() + " --arch gfx942 -o " + (scratch.path / "c").string());
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("failed: softmax cols=512 gfx942: ") != std::string::npos);
  CHECK(result.err.find("threads_per_row") != std::string::npos);
  CHECK(result.out.find("2 kernels: 1 compiled, 0 cached, 0 missing, 0 rejected, 1 failed") != std::string::npos);
  CHECK(kiln::test::kiln("aot no.jsonl --arch gfx942 -o c").exit_code == 2);
  CHECK(kiln::test::kiln("aot " + (scratch.path / "m.jsonl").string() + " --arch gfx942 -o c --shard 4/3").exit_code == 2);
  CHECK(kiln::test::kiln("aot " + (scratch.path / "m.jsonl").string() + " --arch gfx942 -o /proc/c").exit_code == 1);
}

TEST_CASE("a run that was killed is finished by the next one") {
  const Scratch scratch;
  write(scratch.path / "m.jsonl", small_manifest);
  const std::string cache = (scratch.path / "c").string(), manifest = (scratch.path / "m.jsonl").string();
  std::fflush(nullptr); // or the child would print what is in the buffers once more
  const pid_t run = fork();
  if (run == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr || std::freopen("/dev/null", "w", stdout) == nullptr) _exit(1);
    execl(KILN_CLI, "kiln", "aot", manifest.c_str(), "--arch", "gfx942,gfx950", "-o", cache.c_str(), nullptr);
    _exit(1);
  }
  for (int i = 0; i < 20000 && !fs::exists(scratch.path / "c" / "v1"); ++i) usleep(2000);
  usleep(20000);
  kill(run, SIGKILL);
  waitpid(run, nullptr, 0);
  const CliResult rest = kiln::test::kiln("aot " + manifest + " --arch gfx942,gfx950 --json -o " + cache);
  CHECK(rest.exit_code == 0);
  const nlohmann::json counts = nlohmann::json::parse(rest.out)["counts"];
  CHECK(counts["compiled"].get<int>() + counts["cached"].get<int>() == 6);
  CHECK(counts["cached"].get<int>() >= 1);
  CHECK(kiln::test::kiln("cache verify -c " + cache).exit_code == 0);
}

TEST_CASE("the build.ninja of a manifest, run by ninja") {
  if (sh("command -v ninja >/dev/null") != 0) {
    MESSAGE("skipped: there is no ninja");
    return;
  }
  const Scratch scratch;
  const fs::path folder = scratch.path / "with space";
  fs::create_directory(folder);
  write(folder / "m.jsonl", small_manifest);
  const auto in_folder = [&](const std::string& command) { return sh("cd '" + folder.string() + "' && " + command); };
  CHECK(in_folder(std::string(KILN_CLI) + " aot m.jsonl --arch gfx942 -o 'the cache' --emit-ninja build.ninja") == 0);
  CHECK_FALSE(fs::exists(folder / "the cache"));
  CHECK(in_folder("ninja -j 2 >log 2>&1") == 0);
  CHECK(contents(folder / "log").find("[3/3]") != std::string::npos);
  CHECK(in_folder("ninja >log 2>&1") == 0);
  CHECK(contents(folder / "log").find("no work to do") != std::string::npos);
  CHECK(in_folder(std::string(KILN_CLI) + " aot m.jsonl --arch gfx942 -o 'the cache' --dry-run >log") == 0);
  CHECK(contents(folder / "log").find("3 cached, 0 missing") != std::string::npos);
}

TEST_CASE("the tasks of a Slurm array fill the cache between them") {
  const Scratch scratch;
  write(scratch.path / "m.jsonl", small_manifest);
  const std::string cache = (scratch.path / "c").string(), script = (scratch.path / "job.sh").string();
  CHECK(kiln::test::kiln("aot " + (scratch.path / "m.jsonl").string() + " --arch gfx950 --shards 3 --emit-slurm " + script + " -o " + cache)
            .exit_code == 0);
  CHECK(sh("bash -n " + script) == 0);
  CHECK(contents(script).find("#SBATCH --array=1-3\n") != std::string::npos);
  // What sbatch does with it, one task after the other; tests/runtime/slurm_test.sh runs it under Slurm.
  for (int task = 1; task <= 3; ++task) CHECK(sh("SLURM_ARRAY_TASK_ID=" + std::to_string(task) + " " + script + " >/dev/null 2>&1") == 0);
  const CliResult there = kiln::test::kiln("aot " + (scratch.path / "m.jsonl").string() + " --arch gfx950 --dry-run -o " + cache);
  CHECK(there.out.find("3 kernels: 0 compiled, 3 cached") != std::string::npos);
}

TEST_CASE("the manifest that a Jit records is one that aot replays") {
  const Scratch scratch;
  JitOptions options = jit_options(process_environment());
  options.policy = JitPolicy::record;
  options.cache = {};
  options.manifest = scratch.path / "misses.jsonl";
  const KernelSpec spec = catalog_spec("layernorm", {.cols = 512});
  const Kernel kernel = Jit(target("gfx950"), options).compile(spec, {"vec=4"});
  const std::string cache = (scratch.path / "c").string();
  CHECK(kiln::test::kiln("aot " + options.manifest.string() + " --arch gfx942,gfx950 -o " + cache).exit_code == 0);
  const std::vector<EntryInfo> entries = CacheFolder(cache, {}).list();
  REQUIRE(entries.size() == 1); // it was missing for gfx950 only
  CHECK(entries[0].key == kernel.key());
}

} // namespace aot_tests
