// Proves what a tuning table does: written and read whole, the nearest bucket is taken, and misses, stale versions and schedules that
// break their contract are said, counted and never used.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "runtime/aot/aot.h"
#include "runtime/jit/jit.h"
#include "runtime/tune/explain.h"
#include "runtime/tune/tune.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/child.h"
#include <doctest/doctest.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tuning_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

const Target gpu = target("gfx942");

KernelSpec product(std::int64_t m, std::int64_t k = 512) {
  return catalog_spec("gemm", {.dtype = gpu.fp8(), .fp8 = gpu.fp8(), .m = m, .n = 256, .k = k});
}

TuningEntry entry(const KernelSpec& spec, std::vector<std::string> schedule) {
  TuningEntry e = entry_of(spec, gpu, "mi300x");
  e.schedule = std::move(schedule);
  e.microseconds = 3.5;
  e.how = "predicted, cold";
  e.tried = 4;
  e.compiler = "compiler 1";
  return e;
}

struct Tables {
  Scratch scratch;
  fs::path file = scratch.path / "table.jsonl", misses = scratch.path / "misses.jsonl";
  std::shared_ptr<EventLog> events = std::make_shared<EventLog>([this](const std::string& line) { log += line + "\n"; });
  std::string log;
  int asked = 0;

  TunedSchedules open(const std::string& chip = "") {
    return {{.tables = {file}, .chip = chip, .misses = misses}, events, [this] {
              ++asked;
              return std::string("compiler 1");
            }};
  }
};

} // namespace

TEST_CASE("a table's lines come back as they were; a line that was cut off is skipped, a wrong one is named") {
  const Scratch scratch;
  const fs::path file = scratch.path / "t.jsonl";
  const TuningEntry one = entry(product(8), {"tile_n=16"}), two = entry(product(16), {"tile_n=32", "waves=4"});
  append_entry(file, one);
  append_entry(file, two);
  CHECK(read_tuning_table(file, {}) == std::vector{one, two});
  CHECK(one.shape == "a[m, 512] b[256, 512] a_scale[m, 1] b_scale[256] -> c[m, 256]");
  CHECK(one.types == "e4m3fnuz e4m3fnuz f32 f32 -> f16");
  std::ofstream(file, std::ios::app) << R"({"kernel": "ge)";
  std::string said;
  CHECK(read_tuning_table(file, [&](const std::string& line) { said = line; }).size() == 2);
  CHECK(said.find("line 3: it was cut off after 14 bytes") != std::string::npos);
  append_entry(file, one); // begins a line of its own, behind what was cut off
  CHECK_THROWS_WITH_AS(read_tuning_table(file, {}), doctest::Contains("line 3: it is no entry of a tuning table"), UserError);
  CHECK_THROWS_WITH_AS(read_tuning_table(scratch.path / "none", {}), doctest::Contains("it cannot be read"), UserError);
}

TEST_CASE("the entry with the nearest bound of m is taken, of the chip that is asked for") {
  Tables t;
  append_entry(t.file, entry(product(1), {"tile_n=16"}));
  append_entry(t.file, entry(product(16), {"tile_n=32"}));
  TuningEntry other = entry(product(16), {"tile_n=64"});
  other.chip = "mi308x";
  append_entry(t.file, other);
  TunedSchedules tuned = t.open();
  CHECK(tuned.settings_for(product(2), gpu) == std::vector<std::string>{"tile_n=16"});
  CHECK(tuned.settings_for(product(8), gpu) == std::vector<std::string>{"tile_n=32"});
  CHECK(tuned.settings_for(product(64), gpu) == std::vector<std::string>{"tile_n=32"});
  CHECK(t.open("mi308x").settings_for(product(1), gpu) == std::vector<std::string>{"tile_n=64"});
  CHECK(t.events->counts().empty());
  CHECK(t.asked == 2); // the compiler, once for each reader
  CHECK_THROWS_WITH_AS(t.open("mi100"), doctest::Contains("KILN_CHIP"), UserError);
}

TEST_CASE("a shape that no table has is said once, counted, and recorded as a manifest") {
  Tables t;
  append_entry(t.file, entry(product(8), {"tile_n=16"}));
  TunedSchedules tuned = t.open();
  for (int i = 0; i < 3; ++i) CHECK(tuned.settings_for(product(8, 1024), gpu).empty());
  CHECK(tuned.settings_for(product(8), target("gfx950")).empty());
  CHECK(t.events->count("tuning_miss") == 4);
  CHECK(t.log.find("no table of KILN_TUNING has gemm (a[m, 1024] b[256, 1024]") != std::string::npos);
  CHECK(std::ranges::count(t.log, '\n') == 1);
  const std::vector<AotKernel> kernels = read_manifest(t.misses, {"gfx942"}, {});
  REQUIRE(kernels.size() == 1);
  CHECK(parse_spec(kernels.front().request.spec) == product(8, 1024));
}

TEST_CASE("an entry of another Kiln or compiler is named and not used; a current one beside it is") {
  Tables t;
  TuningEntry old = entry(product(8), {"tile_n=16"});
  old.kiln = "0123456789abcdef";
  append_entry(t.file, old);
  CHECK(t.open().settings_for(product(8), gpu).empty());
  CHECK(t.events->count("tuning_stale") == 1);
  CHECK(t.events->count("tuning_miss") == 1);
  CHECK(t.log.find("as Kiln 0123456789abcdef and compiler compiler 1 found it; this is Kiln " + kiln_version()) != std::string::npos);
  TuningEntry compiled = entry(product(8), {"tile_n=32"});
  compiled.compiler = "compiler 0";
  append_entry(t.file, compiled);
  CHECK(t.open().settings_for(product(8), gpu).empty());
  append_entry(t.file, entry(product(8), {"tile_n=64"}));
  CHECK(t.open().settings_for(product(8), gpu) == std::vector<std::string>{"tile_n=64"});
}

TEST_CASE("Jit and kiln aot compile what a table says; a schedule that cannot be is named, and another one chosen") {
  const Scratch scratch;
  const fs::path file = scratch.path / "table.jsonl";
  const std::string compiler = compiler_identity(process_environment());
  const auto add = [&](const KernelSpec& spec, std::vector<std::string> schedule) {
    TuningEntry e = entry(spec, std::move(schedule));
    e.compiler = compiler;
    append_entry(file, e);
  };
  const KernelSpec good = product(8), invalid = product(8, 1024),
                   breaks = catalog_spec("gemm_w8a16", {.dtype = bf16, .fp8 = gpu.fp8(), .m = 4, .n = 5120, .k = 6656});
  add(good, {"tile_n=32", "waves=2"});
  add(invalid, {"tile_n=48"});
  add(breaks, {"tile_n=64", "waves=4", "stages=7", "waves_per_eu=8"}); // valid, but the ring does not fit into 64 VGPRs: scratch
  JitOptions options = jit_options(process_environment());
  options.cache = {.folder = scratch.path / "cache", .layers = {}, .remote = {}};
  options.workers.count = 1;
  options.log = {};
  options.tuning.tables = {file};
  Jit jit(gpu, options);
  CHECK(jit.compile(good).key() != Jit(gpu,
                                       [&] {
                                         JitOptions o = options;
                                         o.tuning.tables.clear();
                                         return o;
                                       }())
                                       .compile(good)
                                       .key());
  CHECK(jit.stats().events.empty());
  CHECK_NOTHROW(jit.compile(invalid));
  CHECK(jit.stats().events.at("tuning_rejected") == 1);
  CHECK_NOTHROW(jit.compile(breaks));
  CHECK(jit.stats().events.at("tuning_rejected") == 2);
  CHECK(jit.compile(good, {"waves=4"}).name() == "gemm"); // settings of the caller come first

  std::vector<AotKernel> kernels{aot_kernel("good", good, gpu, {}, options.compile),
                                 aot_kernel("invalid", invalid, gpu, {}, options.compile)};
  TunedSchedules tuned(options.tuning, std::make_shared<EventLog>(LogFunction()), [&] { return compiler; });
  tune_kernels(kernels, tuned);
  CHECK(kernels.front().request.overrides == std::vector<std::string>{"tile_n=32", "waves=2"});
  const AotReport report = run_aot(kernels, {.output = scratch.path / "aot", .workers = options.workers, .log = {}, .progress = {}});
  CHECK(report.complete());
  CHECK(report.events.at("tuning_rejected") == 1);
}

TEST_CASE("a tuner keeps another method than the cost model has where that is quicker, and what keeps its contract alone") {
  const KernelSpec spec = catalog_spec("gemm", {.dtype = f16, .m = 8, .n = 2304, .k = 4096});
  std::map<std::string, int> timed;
  TuneOptions options{
      .chip = &timing::chip("mi300x"), .time = {}, .how = "here", .compiler = "compiler 1", .max_candidates = 1, .allowed = {}};
  options.time = [&](const Plan&, const Schedule& s) -> std::optional<double> {
    const std::string method(s.family->method(s));
    ++timed[method];
    if (method == "matrix32") return std::nullopt; // as if it broke its contract
    return method == "producers" ? 1.0 : 2.0;
  };
  const std::optional<TuningEntry> entry = Tuner(options).tune(spec, gpu);
  REQUIRE(entry);
  CHECK(std::ranges::find(entry->schedule, "method=producers") != entry->schedule.end());
  CHECK(entry->microseconds == 1.0);
  CHECK(timed["matrix"] >= 1);
  CHECK(timed["matrix32"] == tuned_each);
  CHECK_FALSE((timed.contains("atomics") || timed.contains("sparse")));
  options.allowed = {.atomics = true, .sparse = true};
  CHECK(Tuner(options).tune(spec, gpu)->tried > entry->tried);
  CHECK((timed.contains("atomics") && timed.contains("sparse")));
}

TEST_CASE("kiln tune tries the methods of a product; --allow is said in the table, and tunes again") {
  const Scratch scratch;
  const std::string table = (scratch.path / "t.jsonl").string();
  const std::string command = "tune gemm --m 1 --n 64 --k 512 --chip mi300x --candidates 1 -o " + table;
  REQUIRE(kiln::test::kiln(command).exit_code == 0);
  REQUIRE(kiln::test::kiln(command + " --allow sparse --allow atomics").exit_code == 0);
  CHECK(kiln::test::kiln(command + " --allow sparse --allow atomics").err.find("0 tuned, 1 already in") != std::string::npos);
  const std::vector<TuningEntry> entries = read_tuning_table(table, {});
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].how == "predicted, cold");
  CHECK(entries[0].tried > 2);
  CHECK(entries[1].how == "predicted, cold, atomics allowed, sparse allowed");
  CHECK(entries[1].tried > entries[0].tried);
  CHECK(kiln::test::kiln(command + " --allow infinities").exit_code == 2);
}

TEST_CASE("kiln tune fills a table, resumes, keeps to its budget; kiln explain shows the candidates") {
  const Scratch scratch;
  const std::string table = (scratch.path / "t.jsonl").string(), manifest = (scratch.path / "m.jsonl").string();
  std::ofstream(manifest) << R"({"catalog": "silu_mul", "cols": [256, 512]})" << '\n';
  const CliResult first = kiln::test::kiln("tune " + manifest + " --chip mi300x --candidates 2 -o " + table);
  CHECK(first.exit_code == 0);
  CHECK(first.err.find("2 kernels: 2 tuned, 0 already in") != std::string::npos);
  const std::string before = contents(table);
  CHECK(kiln::test::kiln("tune " + manifest + " --chip mi300x --candidates 2 -o " + table).err.find("0 tuned, 2 already in") !=
        std::string::npos);
  CHECK(contents(table) == before);
  const std::vector<TuningEntry> entries = read_tuning_table(table, {});
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].how == "predicted, cold");
  CHECK(entries[0].tried == 2);
  const CliResult late = kiln::test::kiln("tune " + manifest + " --chip mi308x --seconds 0.000001 -o " + table);
  CHECK(late.exit_code == 1);
  CHECK(late.err.find("2 left when the time was over: run the same command again") != std::string::npos);
  const std::string other = (scratch.path / "three.jsonl").string(); // unless told otherwise the first three
  CHECK(kiln::test::kiln("tune silu_mul --cols 256 --chip mi300x -o " + other).exit_code == 0);
  CHECK(read_tuning_table(other, {}).at(0).tried == 3);
  const CliResult no_gpu =
      kiln::test::kiln("tune silu_mul --chip mi300x --device hip:0 -o " + table, "KILN_HIP_PATH=/nowhere/libamdhip64.so");
  CHECK(no_gpu.exit_code == 2);
  CHECK(no_gpu.err.find("there is no GPU to measure") != std::string::npos);
  CHECK(kiln::test::kiln("tune silu_mul --arch gfx950 --chip mi300x -o " + table).err.find("it is gfx942, --arch is gfx950") !=
        std::string::npos);

  const CliResult why = kiln::test::kiln("explain silu_mul --cols 256 --rows 16 --chip mi300x");
  CHECK(why.exit_code == 0);
  CHECK(why.out.find("predicted on mi300x, caches cold") != std::string::npos);
  CHECK(why.out.find("* chosen: flat: ") != std::string::npos);
  const auto json = nlohmann::json::parse(
      kiln::test::kiln("explain silu_mul --cols 256 --rows 16 --chip mi300x --json --html " + (scratch.path / "p.html").string()).out);
  CHECK(json["candidates"].size() > 2);
  CHECK(json["candidates"][json["chosen"].get<std::size_t>()]["contract"] == "holds");
  CHECK(contents(scratch.path / "p.html").find("predicted on mi300x") != std::string::npos);
}

} // namespace tuning_tests
