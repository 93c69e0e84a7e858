// 64 kernels compiled at once: by the worker processes of Jit, by hipRTC on as many threads of one process, and by hipRTC as it
// comes. The argument is the number of kernels (64). Exit code 1: a bound is missed.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "isa_checks/parallel.h"
#include "runtime/compile/hiprtc.h"
#include "runtime/jit/jit.h"
#include "runtime/stopwatch.h"
#include "runtime/table.h"
#include "tests/bench/arguments.h"
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

using namespace kiln;

namespace {

constexpr double min_over_threads = 1.8, min_over_stock = 5.0;
constexpr int parallel = 2, usual_rounds = 3;

// Different kernels: all of the catalogue's rows, at one number of columns after the other. What has no columns comes once.
std::vector<KernelSpec> subjects(const Target& gpu, int count) {
  std::vector<KernelSpec> specs;
  std::set<std::string> texts;
  for (std::int64_t cols = 1024; static_cast<int>(specs.size()) < count; cols += 1024)
    for (const CatalogEntry& entry : catalog()) {
      if (entry.is.gemm || entry.is.attention || entry.is.ranked || static_cast<int>(specs.size()) == count) continue;
      KernelSpec spec = entry.build({.cols = cols, .dtype = f16, .fp8 = gpu.fp8()});
      if (texts.insert(to_text(spec)).second) specs.push_back(std::move(spec));
    }
  return specs;
}

// Wall and processor time. The second is what the first would be on one idle processor; when the ratio of walls falls short, it
// tells a busy machine from a slow Kiln.
struct Times {
  double wall = 0, processor = 0; // s
};

double processor_seconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage use{};
    getrusage(who, &use);
    for (const timeval& t : {use.ru_utime, use.ru_stime}) seconds += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  }
  return seconds;
}

void keep_faster(Times& best, const Times& times) {
  if (best.wall == 0 || times.wall < best.wall) best = times;
}

template <typename Work> Times timed(const Work& work) {
  const double before = processor_seconds();
  const double wall = work();
  return {wall, processor_seconds() - before};
}

// Seconds for all inputs on `parallel` threads of this process, each with the same share.
double on_threads(const Hiprtc& hiprtc, const std::vector<CompilerInput>& inputs) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (std::size_t i = next++; i < inputs.size(); i = next++)
      if (!hiprtc.compile(inputs[i]).ok) failed = true;
  };
  const Stopwatch watch;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < parallel; ++i) threads.emplace_back(work);
  }
  if (failed) throw InternalError("a kernel did not compile");
  return watch.milliseconds() / 1000;
}

double with_workers(const Target& gpu, const std::vector<KernelSpec>& specs, const std::filesystem::path& folder) {
  JitOptions options = jit_options(process_environment());
  options.policy = JitPolicy::jit;
  options.cache = {.folder = folder, .layers = {}, .remote = {}};
  options.workers.count = parallel;
  const Stopwatch watch;
  Jit jit(gpu, options);
  for (const auto& future : jit.warm(specs)) future.get();
  const double seconds = watch.milliseconds() / 1000;
  const JitStats stats = jit.stats();
  if (stats.compiled != specs.size() || !stats.events.empty())
    throw InternalError("not all kernels were compiled by workers: " + to_text(stats));
  return seconds;
}

int run(int count, bool short_form) {
  const Target gpu = target(known_archs().front());
  std::vector<KernelSpec> specs = subjects(gpu, count);
  if (short_form) specs.erase(specs.begin() + std::min(count, 4), specs.end());
  CompileOptions options = own_process_options(process_environment());
  options.environment.compiler = CompilerKind::hiprtc;
  CompileOptions stock_options = options;
  stock_options.replace_builtin_header = false;
  std::vector<CompilerInput> kiln, stock;
  for (const KernelSpec& spec : specs) {
    const Plan plan = make_plan(spec, gpu);
    const KernelSource source = emit_source(plan, choose_schedule(plan, gpu), gpu);
    kiln.push_back(compiler_input(source, gpu, options));
    stock.push_back(compiler_input(source, gpu, stock_options));
    for (const char* own : {"-nogpulib", "-w"}) std::erase(stock.back().options, own);
  }
  std::string pattern = (std::filesystem::temp_directory_path() / "kiln-jit-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw InternalError("no temporary folder");
  const Hiprtc hiprtc(options.environment.hiprtc_path);
  hiprtc.load_compiler();
  // In turn, and the fastest of each: what else a machine does only adds.
  Times workers, threads;
  for (int round = 0; round < (short_form ? 1 : usual_rounds); ++round) {
    keep_faster(workers, timed([&] { return with_workers(gpu, specs, pattern); }));
    std::filesystem::remove_all(pattern);
    keep_faster(threads, timed([&] { return on_threads(hiprtc, kiln); }));
  }
  const Times stock_threads = timed([&] { return on_threads(hiprtc, stock); });

  const auto row = [&](const char* title, const Times& times, const std::string& bound) {
    return std::vector<std::string>{title, fmt::format("{:.2f}", times.wall), fmt::format("{:.2f}", times.processor),
                                    fmt::format("{:.2f}x", times.wall / workers.wall), bound};
  };
  const Table table{.header = {fmt::format("{} kernels for {}", specs.size(), gpu.arch()), "s", "processor s", "of Jit's time", "bound"},
                    .rows = {row("Jit: plan, compile, check, store; 2 workers, their start included", workers, "-"),
                             row("hipRTC, header replaced, 2 threads of one process", threads, fmt::format("{:.1f}x", min_over_threads)),
                             row("hipRTC as it comes, 2 threads of one process", stock_threads, fmt::format("{:.1f}x", min_over_stock))},
                    .right = {false, true, true, true, true}};
  fmt::print("{}", to_text(table));
  const bool met = threads.wall / workers.wall >= min_over_threads && stock_threads.wall / workers.wall >= min_over_stock;
  if (!met) fmt::print("a bound is missed; {} processors are there\n", processors());
  return met || short_form ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  setenv("AMD_COMGR_CACHE", "0", 1); // before comgr is loaded, here and in the workers
  const bool short_form = take_short_form(argc, argv);
  const auto count = count_argument(argc, argv, "kernels", 64);
  if (!count) return 2;
  try {
    return run(*count, short_form);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
