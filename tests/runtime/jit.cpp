// Jit: where kernels come from, what its policies mean, and that all of it may happen at once.
#include "runtime/jit/jit.h"
#include "gen/catalog/catalog.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/child.h"
#include "tests/runtime/jit_options.h"
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <thread>

namespace jit_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

KernelSpec norm(std::int64_t cols) { return catalog_spec("rmsnorm", {.cols = cols}); }

const Target gpu = target("gfx950");

} // namespace

TEST_CASE("the first call compiles, the next one finds it in memory, the next process in the folder") {
  const Scratch scratch;
  const KernelSpec spec = norm(512);
  Jit jit(gpu, options_in(scratch.path));
  const Kernel first = jit.compile(spec);
  CHECK(first.origin() == Origin::compiled);
  CHECK(first.name() == "rmsnorm");
  CHECK(first.arch() == "gfx950");
  CHECK(jit.compile(spec).same_as(first));
  CHECK(jit.compile(norm(512)).same_as(first)); // an equal spec, built anew
  CHECK_FALSE(jit.compile(norm(1024)).same_as(first));
  CHECK_FALSE(jit.compile(spec, {"vec=4"}).same_as(first));
  KernelSpec renamed("other");
  for (const Output& output : spec.outputs()) renamed.output(output.name, output.dtype, output.value);
  CHECK(jit.compile(renamed).name() == "other"); // the same nodes are not the same spec
  const JitStats stats = jit.stats();
  CHECK(stats.compiled == 4);
  CHECK(stats.memory_hits == 2);
  CHECK(stats.events.empty());

  Jit second(gpu, options_in(scratch.path));
  const Kernel found = second.compile(spec);
  CHECK(found.origin() == Origin::folder);
  CHECK(found.key() == first.key());
  CHECK(std::ranges::equal(found.code_object(), first.code_object()));
  CHECK(found.meta() == first.meta());
  CHECK(parse_spec(found.spec_text()) == spec);
  CHECK(second.stats().compiled == 0);

  // What comes out of the folder computes what the spec says.
  const KernelSource source{.name = found.name(),
                            .arch = found.arch(),
                            .text = {},
                            .arguments = {found.arguments().begin(), found.arguments().end()},
                            .launch = found.launch(),
                            .workspace_bytes = found.workspace_bytes()};
  const auto bytes = std::span(reinterpret_cast<const std::uint8_t*>(found.code_object().data()), found.code_object().size());
  const CodeObject object{.name = found.name(),
                          .arch = found.arch(),
                          .bytes = {bytes.begin(), bytes.end()},
                          .compiler = {},
                          .llvm = {},
                          .stages = {},
                          .log = {}};
  const Inputs inputs = random_inputs(spec, 1);
  const EmulatedRun run = emulate(spec, source, object, inputs);
  CHECK(run.result.defects.empty());
  CHECK_FALSE(find_mismatch(run.outputs, evaluate_bounds(spec, inputs, {.addition_depth = 40})));
}

TEST_CASE("without a folder everything works, in memory only") {
  Jit jit(gpu, options_in({}));
  CHECK(jit.compile(norm(512)).origin() == Origin::compiled);
  CHECK(jit.compile(norm(512)).origin() == Origin::compiled);
  CHECK(jit.stats().memory_hits == 1);
  CHECK(jit.stats().events.empty());
}

TEST_CASE("threads that ask for one kernel at once share one compile") {
  const Scratch scratch;
  Jit jit(gpu, options_in(scratch.path));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { CHECK(jit.compile(norm(512)).name() == "rmsnorm"); });
  }
  const JitStats stats = jit.stats();
  CHECK(stats.compiled == 1);
  CHECK(stats.joined + stats.memory_hits == 7);
}

TEST_CASE("cache_only never compiles: a miss names the key and the spec") {
  const Scratch scratch;
  const KernelSpec spec = norm(512);
  Jit serving(gpu, options_in(scratch.path, JitPolicy::cache_only));
  try {
    serving.compile(spec);
    FAIL("nothing was thrown");
  } catch (const CacheMiss& miss) {
    CHECK(miss.spec == to_text(spec));
    CHECK(miss.key.size() == 64);
    CHECK(std::string(miss.what()).find(miss.key) != std::string::npos);
    CHECK(std::string(miss.what()).find("kernel rmsnorm") != std::string::npos);
  }
  CHECK_THROWS_AS(serving.compile_async(spec).get(), CacheMiss);
  CHECK(serving.stats().failed == 2);
  const std::string key = Jit(gpu, options_in(scratch.path)).compile(spec).key();
  CHECK(serving.compile(spec).key() == key); // filled meanwhile: misses are not kept
  CHECK(serving.stats().compiled == 0);
}

TEST_CASE("record writes every miss once, as a manifest") {
  const Scratch scratch;
  JitOptions options = options_in(scratch.path / "cache", JitPolicy::record);
  CHECK_THROWS_AS(Jit(gpu, options), UserError);
  options.manifest = scratch.path / "misses.jsonl";
  const KernelSpec one = norm(512), two = norm(1024);
  {
    Jit jit(gpu, options);
    jit.compile(one);
    jit.compile(one);
    jit.compile(two, {"vec=4"});
  }
  Jit(gpu, options).compile(one); // a hit is no miss
  std::ifstream file(options.manifest);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["spec"] == to_text(one));
  CHECK(lines[0]["arch"] == nlohmann::json{"gfx950"});
  CHECK(lines[1]["set"] == nlohmann::json{"vec=4"});
}

TEST_CASE("record writes a line whole or not at all, also where the file cannot grow") {
  const Scratch scratch;
  const fs::path manifest = scratch.path / "misses.jsonl";
  CHECK(in_child([&] {
          JitOptions options = options_in(scratch.path / "cache", JitPolicy::record);
          options.manifest = manifest;
          Jit jit(gpu, options);
          jit.compile(norm(512)); // by a worker, which the limit does not reach
          signal(SIGXFSZ, SIG_IGN);
          const rlimit limit{fs::file_size(manifest) + 40, RLIM_INFINITY}; // room for some of the next line
          setrlimit(RLIMIT_FSIZE, &limit);
          jit.compile(norm(1024));
          return jit.stats().events.contains("not_recorded") ? 0 : 1;
        }) == ChildEnd{0, 0});
  CHECK(std::ranges::count(contents(manifest), '\n') == 1);
  CHECK(contents(manifest).ends_with("\n"));
  std::ofstream(manifest, std::ios::app) << R"({"spec":"kernel rms)"; // as a process leaves it that is killed meanwhile
  JitOptions options = options_in({}, JitPolicy::record);
  options.manifest = manifest;
  Jit(gpu, options).compile(norm(1024));
  std::ifstream file(manifest);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  REQUIRE(lines.size() == 3);
  CHECK(nlohmann::json::parse(lines[2])["spec"] == to_text(norm(1024))); // on a line of its own
}

TEST_CASE("a progress function that throws costs nothing, whatever it throws") {
  CHECK(in_child([] {
          Jit jit(gpu, options_in({}));
          const KernelSpec specs[] = {norm(512), norm(1024)};
          for (const auto& future : jit.warm(specs, [](const Progress&) { throw 42; }))
            if (future.get().name() != "rmsnorm") return 1;
          return jit.stats().events.at("progress_threw") == 2 ? 0 : 2;
        }) == ChildEnd{0, 0});
}

TEST_CASE("warm compiles a list in the background and reports each kernel") {
  const Scratch scratch;
  JitOptions options = options_in(scratch.path);
  Jit jit(gpu, options);
  const Expr wrong = input("x", e4m3fnuz, {dynamic("rows"), 64}); // gfx950 has the other fp8
  std::vector<KernelSpec> specs{norm(512), norm(1024), norm(512), KernelSpec("bad").output("y", f32, wrong * 2.0), norm(2048)};
  std::vector<Progress> seen;
  const auto futures = jit.warm(specs, [&](const Progress& progress) { seen.push_back(progress); });
  REQUIRE(futures.size() == 5);
  CHECK(futures[0].get().same_as(futures[2].get()));
  CHECK(futures[1].get().name() == "rmsnorm");
  CHECK(futures[4].get().name() == "rmsnorm");
  CHECK_THROWS_AS(futures[3].get(), UserError);
  REQUIRE(seen.size() == 5);
  for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i].done == i + 1);
  CHECK(seen.back().total == 5);
  CHECK(seen.back().failed == 1);
  CHECK(seen.back().remaining_s == 0);
  CHECK(jit.stats().compiled == 3);
  CHECK(jit.compile_async(specs[0]).get().same_as(futures[0].get()));
}

TEST_CASE("a Jit that is destroyed with work in its queue leaves no future without an answer") {
  std::vector<std::shared_future<Kernel>> futures;
  {
    JitOptions options = options_in({});
    options.workers.count = 1;
    Jit jit(gpu, options);
    std::vector<KernelSpec> specs;
    for (int i = 1; i <= 6; ++i) specs.push_back(norm(512 * i));
    futures = jit.warm(specs);
  }
  int compiled = 0, given_up = 0;
  for (const auto& future : futures) {
    try {
      future.get();
      ++compiled;
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("never began") != std::string::npos);
      ++given_up;
    }
  }
  CHECK(compiled + given_up == 6);
  CHECK(given_up >= 1);
}

TEST_CASE("a compile that fails is an error for all who asked, and is tried again") {
  const Scratch scratch;
  JitOptions options = options_in(scratch.path);
  options.compile.environment.hiprtc_path = "/nowhere/libhiprtc.so";
  Jit jit(gpu, options);
  CHECK_THROWS_AS(jit.compile(norm(512)), EnvironmentError);
  CHECK_THROWS_AS(jit.compile(norm(512)), EnvironmentError);
  CHECK(jit.stats().failed == 2);
  CHECK(jit.stats().events.at("no_compiler") == 1);
}

TEST_CASE("a worker that cannot start is counted, named and logged once") {
  const Scratch scratch;
  JitOptions options = options_in(scratch.path);
  options.workers.program = "/nowhere/kiln-worker";
  std::vector<std::string> log;
  options.log = [&](const std::string& line) { log.push_back(line); };
  Jit jit(gpu, options);
  jit.compile(norm(512));
  jit.compile(norm(1024));
  CHECK(jit.stats().events.at("worker_unavailable") == 2);
  CHECK(jit.stats().events.at("arguments_not_preloaded") == 2);
  REQUIRE(log.size() == 2);
  CHECK(log[0].starts_with("worker_unavailable: "));
  CHECK(log[1].starts_with("arguments_not_preloaded: "));
  CHECK(to_text(jit.stats()).find("worker_unavailable x2") != std::string::npos);
}

TEST_CASE("a host without workers finds what was compiled with preloaded arguments, and compiles without") {
  const Scratch scratch;
  const std::string preloaded = Jit(gpu, options_in(scratch.path)).compile(norm(512)).key();
  JitOptions here = options_in(scratch.path);
  here.workers.in_process = true;
  Jit jit(gpu, here);
  CHECK(jit.compile(norm(512)).key() == preloaded);
  CHECK(jit.stats().events.count("arguments_not_preloaded") == 0);
  const Kernel own = jit.compile(norm(1024));
  CHECK(own.origin() == Origin::compiled);
  CHECK(jit.stats().events.at("arguments_not_preloaded") == 1);
  Jit next(gpu, here);
  CHECK(next.compile(norm(1024)).origin() == Origin::folder);
  Jit cached(gpu, options_in(scratch.path, JitPolicy::cache_only));
  CHECK(cached.compile(norm(1024)).key() == own.key());
  CHECK(cached.stats().events.at("arguments_not_preloaded") == 1);
  CHECK(Jit(gpu, options_in(scratch.path)).compile(norm(1024)).key() != own.key());
}

} // namespace jit_tests
