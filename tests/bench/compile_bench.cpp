// Cold compile of add_rmsnorm_quant at 16384 columns: hipRTC as Kiln drives it against hipRTC as it comes, and where
// the time goes. The argument is the number of samples (15). Exit code 1: a bound is missed.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "runtime/build/build_kernel.h"
#include "runtime/compile/comgr.h"
#include "runtime/compile/hiprtc.h"
#include "runtime/stopwatch.h"
#include "runtime/table.h"
#include "tests/bench/arguments.h"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>

using namespace kiln;

namespace {

constexpr double max_of_stock = 0.4; // of the time with hipRTC's built-in header
constexpr double max_own_ms = 2.0;   // everything but the compiler library

class Samples {
public:
  void add(double value) { values_.push_back(value); }
  double min() const { return *std::ranges::min_element(values_); }
  double max() const { return *std::ranges::max_element(values_); }
  double median() const {
    std::vector<double> sorted = values_;
    std::ranges::sort(sorted);
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
  std::vector<std::string> cells(const std::string& title) const {
    return {title, fmt::format("{:.2f}", min()), fmt::format("{:.2f}", median()), fmt::format("{:.2f}", max())};
  }

private:
  std::vector<double> values_;
};

// No cache may serve a text twice: AMD_COMGR_CACHE is off, and each text is new.
CompilerInput fresh(CompilerInput input) {
  static int serial = 0;
  input.text += fmt::format("// sample {}\n", ++serial);
  return input;
}

KernelSpec fresh(const KernelSpec& spec) {
  static int serial = 0;
  KernelSpec renamed(fmt::format("{}_{}", spec.name(), ++serial));
  for (const Output& output : spec.outputs()) renamed.output(output.name, output.dtype, output.value, {output.in_place_of, output.layout});
  return renamed;
}

void must(const CompilerOutput& output) {
  if (!output.ok) throw EnvironmentError("benchmark", output.status, "read the log", output.log);
}

struct Variant {
  std::string title;
  std::function<void()> run;
  Samples times = {};
};

Table new_table(const std::string& title) {
  return {.header = {title, "min", "median", "max"}, .rows = {}, .right = {false, true, true, true}};
}

// One sample of each variant in turn, so that a change of the machine's speed meets all of them; the first is warm-up.
void sample(std::vector<Variant>& variants, int samples) {
  for (int i = 0; i <= samples; ++i) {
    for (Variant& variant : variants) {
      const Stopwatch watch;
      variant.run();
      if (i > 0) variant.times.add(watch.milliseconds());
    }
  }
}

// The ratio that must hold: the same source and options, with and without the replacement of the header.
bool compare_with_stock(const KernelSource& source, const Target& target, int samples) {
  CompileOptions options = own_process_options(process_environment());
  options.environment.compiler = CompilerKind::hiprtc;
  const CompilerInput kiln = compiler_input(source, target, options);
  options.replace_builtin_header = false;
  const CompilerInput header = compiler_input(source, target, options);
  CompilerInput stock = header;
  for (const char* own : {"-nogpulib", "-w"}) std::erase(stock.options, own);

  const Hiprtc hiprtc(options.environment.hiprtc_path);
  const Comgr comgr(options.environment.comgr_path);
  std::vector<Variant> variants;
  variants.push_back({"hipRTC as it comes: built-in header, device libraries", [&] { must(hiprtc.compile(fresh(stock))); }});
  variants.push_back({"hipRTC, built-in header, Kiln's options", [&] { must(hiprtc.compile(fresh(header))); }});
  variants.push_back({"hipRTC as Kiln drives it: header replaced", [&] { must(hiprtc.compile(fresh(kiln))); }});
  variants.push_back({"comgr as Kiln drives it", [&] { must(comgr.compile(fresh(kiln))); }});
  sample(variants, samples);

  Table table = new_table("compiler call, ms");
  for (const Variant& variant : variants) table.rows.push_back(variant.times.cells(variant.title));
  const double kiln_median = variants[2].times.median();
  const double ratio = kiln_median / variants[1].times.median();
  fmt::print("{}ratio {:.2f} of the built-in header's with the same options (bound {:.2f}); {:.2f} of hipRTC as it comes\n\n",
             to_text(table), ratio, max_of_stock, kiln_median / variants[0].times.median());
  return ratio <= max_of_stock;
}

// Says where the time from spec to facts goes; Kiln's own share is all that is not spent inside the compiler library.
bool split_stages(const std::function<KernelSpec()>& make_spec, const Target& target, int samples) {
  CompileOptions options = own_process_options(process_environment());
  options.environment.compiler = CompilerKind::comgr; // shows its stages one by one
  std::vector<std::pair<std::string, Samples>> rows;
  const auto note = [&](const std::string& title, double value) {
    const auto found = std::ranges::find(rows, title, &std::pair<std::string, Samples>::first);
    Samples& samples_of = found != rows.end() ? found->second : rows.emplace_back(title, Samples()).second;
    samples_of.add(value);
  };
  for (int i = 0; i <= samples; ++i) {
    const Stopwatch watch;
    const KernelSpec spec = fresh(make_spec());
    const double spec_ms = watch.milliseconds();
    const BuiltKernel built = build_kernel(spec, target, options);
    const double total = watch.milliseconds();
    if (!built.rejected.empty()) throw InternalError("the first schedule broke its contract");
    if (i == 0) continue;
    note("spec", spec_ms);
    note("plan", built.times.plan);
    note("schedule", built.times.schedule);
    note("emit", built.times.emit);
    for (const CompilerStage& stage : built.object.stages) note("  comgr: " + stage.name, stage.milliseconds);
    note("around the compiler: headers, options, identity", built.times.compile - built.times.library);
    note("check: disassemble, facts, contract", built.times.check);
    note("Kiln's own share", total - built.times.library);
  }
  Table table = new_table("stage, ms");
  for (const auto& [title, times] : rows) table.rows.push_back(times.cells(title));
  const double own = rows.back().second.median();
  fmt::print("{}Kiln's own share {:.2f} ms (bound {:.2f})\n", to_text(table), own, max_own_ms);
  return own < max_own_ms;
}

int run(int samples) {
  const Target gpu = target(known_archs().front());
  const auto make_spec = [&] { return catalog_spec("add_rmsnorm_quant", {.cols = 16384, .dtype = f16, .fp8 = gpu.fp8()}); };
  const Plan plan = make_plan(make_spec(), gpu);
  const KernelSource source = emit_source(plan, choose_schedule(plan, gpu), gpu);
  Environment environment = process_environment();
  environment.compiler = CompilerKind::hiprtc;
  fmt::print("add_rmsnorm_quant, 16384 columns, f16, {}; {} samples after warm-up; {}\n\n", gpu.arch(), samples,
             compiler_identity(environment));
  const bool fast = compare_with_stock(source, gpu, samples);
  const bool thin = split_stages(make_spec, gpu, samples);
  if (!fast || !thin) fmt::print("a bound is missed\n");
  return fast && thin ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  setenv("AMD_COMGR_CACHE", "0", 1); // before comgr is loaded
  const bool short_form = take_short_form(argc, argv);
  const auto samples = count_argument(argc, argv, "samples", short_form ? 1 : 15);
  if (!samples) return 2;
  try {
    const int missed = run(*samples);
    return short_form ? 0 : missed;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
