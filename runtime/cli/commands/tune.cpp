// kiln tune: measures or predicts the candidate schedules of kernels, and keeps the quickest in a table.
#include "runtime/tune/tune.h"
#include "gen/error.h"
#include "isa_checks/plural.h"
#include "runtime/aot/aot.h"
#include "runtime/cli/command.h"
#include "runtime/cli/commands/predict_launch.h"
#include "runtime/cli/kernel_choice.h"
#include "runtime/cli/target_choice.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/benchmark.h"
#include "runtime/launch/device_chip.h"
#include "runtime/tune/candidate_journal.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <optional>
#include <ranges>

namespace kiln::cli {
namespace {

// In the order in which a table names them.
constexpr std::array<std::pair<std::string_view, bool Allowed::*>, 2> allowable{
    {{"atomics", &Allowed::atomics}, {"sparse", &Allowed::sparse}}};

struct TuneRequest {
  KernelChoice kernel; // or a manifest
  TargetChoice target;
  std::string device = "predicted", cache = "cold", output, shard;
  std::optional<int> candidates;
  std::vector<std::string> allowed; // words of allowable
  double seconds = 0, timeout = 30;
  bool json = false;
};

std::vector<AotKernel> kernels_of(const TuneRequest& request, const Target& gpu, const CompileOptions& compile) {
  std::vector<AotKernel> kernels;
  if (is_manifest(request.kernel.kernel)) kernels = read_manifest(request.kernel.kernel, {gpu.arch()}, compile);
  else kernels.push_back(aot_kernel(request.kernel.kernel, chosen_spec(request.kernel, gpu), gpu, {}, compile));
  std::erase_if(kernels, [](const AotKernel& k) { return !k.request.overrides.empty(); }); // somebody has chosen already
  return request.shard.empty() ? kernels : shard_of(std::move(kernels), parse_shard(request.shard));
}

// As `kiln bench` measures, at the sizes that the cost model judges by.
TimeOfSchedule measured_time(const Device& device, const std::shared_ptr<Jit>& jit, const std::shared_ptr<CandidateJournal>& journal) {
  return [device, jit, journal](const Plan& plan, const Schedule& schedule) -> std::optional<double> {
    try {
      const Kernel kernel = jit->compile(plan.spec, settings_of(schedule));
      const std::string candidate =
          fmt::format("{} {} {}: {}", kernel.name(), kernel.arch(), kernel.key().substr(0, 12), fmt::join(settings_of(schedule), " "));
      if (journal->has_hung(candidate)) return std::nullopt;
      BenchmarkOptions options;
      options.before_launch = [&] { journal->begin(candidate); };
      double sum = 0;
      const std::vector<RunTimeSizes> all = nominal_sizes(plan);
      for (const RunTimeSizes& sizes : all) {
        const std::int64_t rows = sizes.empty() ? 1 : std::ranges::max(sizes | std::views::values);
        sum += std::log(benchmark(device, kernel, rows, options).median);
        journal->end();
      }
      return std::exp(sum / static_cast<double>(all.size()));
    } catch (const RejectedError&) {
      return std::nullopt;
    }
  };
}

Device chosen_device(const TuneRequest& request) {
  try {
    return Device::open(request.device);
  } catch (const EnvironmentError& error) {
    throw UserError("kiln tune", fmt::format("there is no GPU to measure ({}: {})", request.device, error.fact),
                    "use --device predicted, or " + error.remedy);
  }
}

TuneOptions tune_options(const TuneRequest& request, const Target& gpu, const timing::Chip& chip, const CompileOptions& compile) {
  TuneOptions options{.chip = &chip,
                      .time = {},
                      .how = {},
                      .compiler = compiler_identity(compile.environment),
                      .max_candidates = request.candidates.value_or(request.device == "predicted" ? simulated_first : 0),
                      .allowed = {},
                      .seconds = request.seconds};
  std::string allowed; // part of how: without, other schedules are tried
  for (const auto& [word, member] : allowable)
    if (std::ranges::find(request.allowed, word) != request.allowed.end()) {
      options.allowed.*member = true;
      allowed += fmt::format(", {} allowed", word);
    }
  if (request.device == "predicted") {
    const timing::CacheState cache = parse_cache_state(request.cache);
    options.how = fmt::format("predicted, {}{}", request.cache, allowed);
    options.time = predicted_time(gpu, chip, cache, compile);
    return options;
  }
  const Device device = chosen_device(request);
  if (device.target().arch() != gpu.arch())
    throw UserError("--device " + request.device, fmt::format("it is {}, --arch is {}", device.target().arch(), gpu.arch()),
                    "measure on a device of that architecture");
  options.how = fmt::format("measured on {}, median of {} samples{}", device.product(), BenchmarkOptions().samples, allowed);
  static_cast<void>(device.backend().clock()); // throws where time means nothing, before anything is compiled
  options.time = measured_time(device, std::make_shared<Jit>(device.target().with_batch_invariance(gpu.batch_invariant())),
                               std::make_shared<CandidateJournal>(request.output, request.timeout, log_to_stderr()));
  return options;
}

// What a measuring device is goes before the default.
ChosenTarget target_of(const TuneRequest& request) {
  TargetChoice choice = request.target;
  if (request.device != "predicted" && choice.chip.empty()) {
    const Device device = chosen_device(request);
    const Target measured = choice.arch.empty() ? device.target() : target(choice.arch);
    choice.chip = chip_of(measured, device.product(), process_environment().chip).chip->name;
  }
  return chosen_target(choice);
}

struct Counts {
  int tuned = 0, kept = 0, failed = 0, left = 0;
};

void tune_one(const TuneRequest& request, const Tuner& tuner, const AotKernel& kernel, const Target& gpu,
              const std::vector<TuningEntry>& known, Counts& counts) {
  const KernelSpec spec = parse_spec(kernel.request.spec);
  if (std::ranges::any_of(known, [&](const TuningEntry& e) { return tuner.has(e, spec, gpu); })) {
    ++counts.kept;
    return;
  }
  if (tuner.is_over()) {
    ++counts.left;
    return;
  }
  try {
    const std::optional<TuningEntry> entry = tuner.tune(spec, gpu);
    if (!entry) {
      ++counts.left;
      return;
    }
    append_entry(request.output, *entry);
    ++counts.tuned;
    if (request.json) fmt::print("{}\n", to_line(*entry));
    else
      fmt::print("{} {}: {:.2f} us ({}), best of {}: {}\n", kernel.title, entry->chip, entry->microseconds, entry->how, entry->tried,
                 fmt::join(entry->schedule, " "));
    std::fflush(stdout);
  } catch (const RejectedError& error) {
    ++counts.failed;
    fmt::print(stderr, "failed: {}\n", error.what());
  }
}

int run(const TuneRequest& request) {
  const auto [gpu, chip] = target_of(request);
  CompileOptions compile = own_process_options(process_environment());
  compile.environment.batch_invariant = gpu.batch_invariant();
  const std::vector<AotKernel> kernels = kernels_of(request, gpu, compile);
  std::vector<TuningEntry> known;
  if (std::filesystem::exists(request.output)) known = read_tuning_table(request.output, log_to_stderr());
  const Tuner tuner(tune_options(request, gpu, *chip, compile));
  Counts counts;
  for (const AotKernel& kernel : kernels) tune_one(request, tuner, kernel, gpu, known, counts);
  fmt::print(stderr, "{}: {} tuned, {} already in {}, {} failed, {} left when the time was over{}\n", isa::plural(kernels.size(), "kernel"),
             counts.tuned, counts.kept, request.output, counts.failed, counts.left, counts.left > 0 ? ": run the same command again" : "");
  return counts.failed + counts.left == 0 ? ok : kernel_failed;
}

} // namespace

Command make_tune(CLI::App& root) {
  CLI::App* app = root.add_subcommand("tune", "Measure or predict the candidate schedules of kernels; keep the quickest in a table");
  const auto request = std::make_shared<TuneRequest>();
  add_kernel_options(*app, request->kernel);
  app->get_option("kernel")->description("A name of the catalogue, a file with the text of a spec, or a manifest (.jsonl, docs/aot.md)");
  add_target_options(*app, request->target);
  app->add_option("--device", request->device, "predicted, or hip:ORDINAL to measure")->capture_default_str();
  app->add_option("--cache", request->cache, "Predicted: where the data lie before, cold (HBM), mall or l2")->capture_default_str();
  app->add_option("-o,--output", request->output, "The table to add to; what it has is not tuned again")->required();
  app->add_option("--candidates", request->candidates,
                  fmt::format("The first so many of each kernel by the cost model, 0: all ({} when predicted, all when measured); of a "
                              "product also up to {} of each other method",
                              simulated_first, tuned_each))
      ->check(CLI::NonNegativeNumber);
  app->add_option("--allow", request->allowed,
                  "Try what gives other results too, may be repeated: atomics (bits vary from run to run), sparse (infinite weights "
                  "may make NaN)")
      ->check(CLI::IsMember({"atomics", "sparse"}));
  app->add_option("--seconds", request->seconds, "Stop when they are over; kernels that are left are for the next run")
      ->check(CLI::PositiveNumber);
  app->add_option("--timeout", request->timeout,
                  "With hip: seconds that one candidate may take on the GPU; over that, it is skipped next time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--shard", request->shard, "I/N: only the I-th of N parts of a manifest");
  app->add_flag("--json", request->json, "Print the lines of the table");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli
