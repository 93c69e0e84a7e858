// kiln prove: proof sheets of a kernel, of a manifest's kernels, or of the whole catalogue.
#include "gen/error.h"
#include "isa_checks/parallel.h"
#include "runtime/aot/manifest.h"
#include "runtime/cli/command.h"
#include "runtime/cli/kernel_choice.h"
#include "runtime/cli/output.h"
#include "runtime/cli/target_choice.h"
#include "runtime/proof/checked_run.h"
#include "runtime/proof/proof.h"
#include "runtime/stopwatch.h"
#include <algorithm>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <mutex>

namespace kiln::cli {
namespace {

struct ProveRequest {
  KernelChoice kernel;
  std::vector<std::string> archs, overrides;
  std::string chip, device, output;
  ProofOptions options;
  int jobs = 0;
  bool all = false, json = false, quiet = false, batch_invariant = false;
};

struct ProofJob {
  std::string title;
  KernelSpec spec;
  Target target;
  std::vector<std::string> overrides;
};

std::vector<Target> targets_of(const ProveRequest& request, const std::optional<Device>& device) {
  if (device) {
    if (!request.archs.empty() && request.archs != std::vector{device->target().arch()})
      throw UserError("--device " + request.device, fmt::format("it is {}", device->target().arch()), "leave --arch out");
    return {device->target().with_batch_invariance(request.batch_invariant || process_environment().batch_invariant)};
  }
  std::vector<Target> targets;
  for (const std::string& arch : request.archs) targets.push_back(chosen_target({arch, request.chip, request.batch_invariant}).target);
  if (targets.empty()) targets.push_back(chosen_target({{}, request.chip, request.batch_invariant}).target);
  return targets;
}

// An entry with its defaults; products of experts with fewer and smaller ones, since 64 of 4096 x 4096 are a billion numbers.
ProofJob catalog_job(const CatalogEntry& entry, const Target& to, const std::vector<std::string>& overrides) {
  CatalogOptions options = default_options(entry.name);
  options.fp8 = to.fp8();
  std::string title(entry.name);
  if (entry.is.gemm && entry.is.experts) {
    options.experts = 8;
    options.n = options.k = 1024;
    title += " experts=8 n=1024 k=1024";
  }
  return {title, catalog_spec(entry.name, options), to, overrides};
}

std::vector<ProofJob> jobs_of(const ProveRequest& request, const std::vector<Target>& targets, const CompileOptions& compile) {
  std::vector<ProofJob> jobs;
  if (request.all) {
    if (!request.kernel.kernel.empty())
      throw UserError("--all", fmt::format("'{}' was given too", request.kernel.kernel), "give one of them");
    for (const Target& to : targets)
      for (const CatalogEntry& entry : catalog()) jobs.push_back(catalog_job(entry, to, request.overrides));
    return jobs;
  }
  if (request.kernel.kernel.empty())
    throw UserError("kiln prove", "no kernel was given", "name one of the catalogue (kiln list), a file with a spec, a manifest, or --all");
  if (!is_manifest(request.kernel.kernel)) {
    for (const Target& to : targets) jobs.push_back({request.kernel.kernel, chosen_spec(request.kernel, to), to, request.overrides});
    return jobs;
  }
  if (!request.overrides.empty() || !request.kernel.options.empty())
    throw UserError(request.kernel.kernel, "options of one kernel were given beside a manifest", "write them into its lines: docs/aot.md");
  std::vector<std::string> archs;
  for (const Target& to : targets) archs.push_back(to.own_chip().empty() ? to.arch() : to.own_chip());
  for (const AotKernel& kernel : read_manifest(request.kernel.kernel, archs, compile)) {
    const Target to = target_of(kernel.request);
    jobs.push_back({kernel.title, parse_spec(kernel.request.spec), to, kernel.request.overrides});
  }
  return jobs;
}

// What went wrong before there was anything to judge.
ProofSheet sheet_of_error(const ProofJob& job, const std::exception& error) {
  ProofSheet sheet;
  sheet.title = job.title;
  sheet.kernel = job.spec.name();
  sheet.arch = job.target.arch();
  sheet.spec = to_text(job.spec);
  sheet.lines.push_back({.name = "build", .verdict = ProofVerdict::fails, .found = error.what()});
  return sheet;
}

// Several at once: each is executed by one thread.
std::vector<ProofSheet> prove_all(const ProveRequest& request, const std::vector<ProofJob>& jobs, const CompileOptions& compile,
                                  const std::optional<Device>& device, const timing::Chip* chip) {
  std::vector<ProofSheet> sheets(jobs.size());
  std::size_t done = 0;
  std::mutex terminal;
  const bool has_gpu = device && !device->is_emulated(); // which times one kernel at a time
  const std::size_t at_once = has_gpu ? 1 : request.jobs > 0 ? static_cast<std::size_t>(request.jobs) : processors();
  in_parallel(jobs.size(), at_once, [&](std::size_t i) {
    const ProofJob& job = jobs[i];
    ProofOptions options = request.options;
    options.overrides = job.overrides;
    options.title = job.title;
    options.device = device;
    options.chip = chip;
    const Stopwatch watch;
    try {
      sheets[i] = prove(job.spec, job.target, compile, options);
    } catch (const UserError& error) {
      if (jobs.size() == 1) throw; // the command line's fault; of many kernels the others go on
      sheets[i] = sheet_of_error(job, error);
    } catch (const std::exception& error) {
      sheets[i] = sheet_of_error(job, error);
    }
    const std::lock_guard lock(terminal);
    ++done;
    if (!request.quiet && jobs.size() > 1)
      fmt::print(stderr, "[{}/{}] {} {}: {} ({:.1f} s)\n", done, jobs.size(), job.title, job.target.arch(),
                 sheets[i].holds() ? "holds" : "fails", watch.milliseconds() / 1000);
  });
  return sheets;
}

// "rmsnorm-gfx942-1a2b3c4d": unlike for unlike kernels.
std::string file_name(const ProofSheet& sheet) { return fmt::format("{}-{}-{:.8}", sheet.kernel, sheet.arch, sheet.key); }

void write_sheets(const std::filesystem::path& folder, const std::vector<ProofSheet>& sheets) {
  make_folder(folder);
  std::vector<std::string> pages;
  for (const ProofSheet& sheet : sheets) {
    const std::string name = file_name(sheet);
    write_file(folder / (name + ".json"), to_json(sheet));
    write_file(folder / (name + ".md"), to_markdown(sheet));
    pages.push_back(name + ".md");
  }
  write_file(folder / "README.md", summary(sheets, pages));
}

void print_sheets(const ProveRequest& request, const std::vector<ProofSheet>& sheets) {
  if (request.json) {
    for (std::size_t i = 0; i < sheets.size(); ++i) fmt::print("{}{}", i == 0 ? sheets.size() > 1 ? "[" : "" : ",\n", to_json(sheets[i]));
    if (sheets.size() > 1) fmt::print("]\n");
    return;
  }
  for (std::size_t i = 0; i < sheets.size(); ++i) fmt::print("{}{}", i == 0 ? "" : "\n", to_text(sheets[i]));
}

int run(const ProveRequest& request) {
  const CompileOptions compile = own_process_options(process_environment());
  std::optional<Device> device;
  if (!request.device.empty()) device = open_device("kiln prove", request.device);
  const std::vector<Target> targets = targets_of(request, device);
  const timing::Chip* const chip = request.chip.empty() ? nullptr : &timing::chip(request.chip);
  const std::vector<ProofJob> jobs = jobs_of(request, targets, compile);
  const std::vector<ProofSheet> sheets = prove_all(request, jobs, compile, device, chip);
  const auto failed = std::ranges::count_if(sheets, [](const ProofSheet& sheet) { return !sheet.holds(); });
  if (request.output.empty()) print_sheets(request, sheets);
  else write_sheets(request.output, sheets);
  if (!request.output.empty() && !request.quiet)
    fmt::print("{} of {} kernels hold; {}/README.md lists them\n", std::ssize(sheets) - failed, sheets.size(), request.output);
  return failed == 0 ? ok : kernel_failed;
}

} // namespace

Command make_prove(CLI::App& root) {
  CLI::App* app = root.add_subcommand("prove", "Say what is known of kernels: contract, faults, results, interleavings, time");
  const auto request = std::make_shared<ProveRequest>();
  ProofOptions& options = request->options;
  add_kernel_options(*app, request->kernel);
  app->remove_option(app->get_option("kernel")); // --all does without it
  app->add_option("kernel", request->kernel.kernel,
                  "A name of the catalogue (kiln list), a file with the text of a spec, or a manifest (.jsonl)");
  app->add_flag("--all", request->all, "Every entry of the catalogue with its defaults, products of experts with 8 of 1024 x 1024");
  app->add_option("--arch", request->archs, "Architectures or chips, comma separated")->delimiter(',');
  app->add_option("--chip", request->chip, "The chip whose time is predicted");
  add_batch_invariant_option(*app, request->batch_invariant);
  app->add_option("--device", request->device, "Run on hip:ORDINAL too: bits beside the CPU model's, time beside the predicted one");
  app->add_option("-o,--output", request->output,
                  "Write a page and a JSON file a kernel into this folder, and a README.md that lists them");
  app->add_option("--set", request->overrides, "Schedule field to replace, NAME=VALUE; may be repeated")->delimiter(',');
  app->add_option("--rows", options.rows, "The largest size of run-time dimensions, beside 1 and 3; clamped to their bounds")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  app->add_option("--inputs", options.inputs, "Inputs of each kind: random, special, largest (3, of large kernels 1)")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--interleavings", options.orders, "Interleavings of waves (6, of large kernels 2)")->check(CLI::Range(1, 1'000'000));
  app->add_option("--launches", options.launches, "Launches in each interleaving, on one workspace (3, of large kernels 2)")
      ->check(CLI::Range(1, 1000));
  app->add_option("--seed", options.seed, "Of the first inputs")->capture_default_str();
  app->add_option("-j,--jobs", request->jobs, "Kernels at once (one a processor)")->check(CLI::PositiveNumber);
  app->add_flag("--json", request->json, "Print JSON in place of text");
  app->add_flag("--quiet", request->quiet, "No progress");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli
