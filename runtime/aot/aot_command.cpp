// The options of `kiln aot`, what they do, and what is printed.
#include "runtime/aot/aot_command.h"
#include "gen/error.h"
#include "isa_checks/plural.h"
#include "runtime/aot/aot.h"
#include "runtime/stopwatch.h"
#include "runtime/tune/try_schedule.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

namespace kiln {

struct AotCommand {
  std::string manifest, output, shard, ninja, slurm, stamp;
  std::vector<std::string> archs, only;
  int jobs = 0, shards = 8, candidates = simulated_first;
  bool dry_run = false, json = false, quiet = false, line_tables = false, batch_invariant = false;
};

namespace {

namespace fs = std::filesystem;

// Build scripts: the kernels of a manifest as a build.ninja or a Slurm array job, for engines that schedule over many machines.
struct AotCommandLine {
  std::vector<std::string> words; // that run the same list of kernels again: program, "aot", manifest, "--arch", ...
  std::filesystem::path output;
};

std::string quoted(const std::string& word) { // for a shell
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string ninja_value(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '$' ? std::string("$$") : std::string(1, c);
  return escaped;
}

std::string ninja_path(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '$' || c == ' ' || c == ':' ? std::string("$") + c : std::string(1, c);
  return escaped;
}

std::string shell_command(const AotCommandLine& command) {
  std::string text;
  for (const std::string& word : command.words) text += quoted(word) + " ";
  return text + "-o " + quoted(command.output.string());
}

// One edge a kernel; a stamp beside the script says that it is done, so an interrupted build goes on where it was.
std::string ninja_script(const AotCommandLine& command, const std::vector<AotKernel>& kernels) {
  std::string text = fmt::format("# Made by --emit-ninja: {} kernels.\n"
                                 "ninja_required_version = 1.5\n"
                                 "rule kernel\n"
                                 "  command = {} --only $id --stamp $out -j 1 --quiet\n"
                                 "  description = $title\n\n",
                                 kernels.size(), ninja_value(shell_command(command)));
  for (const AotKernel& kernel : kernels)
    text += fmt::format("build stamps/{}: kernel | {}\n  id = {}\n  title = {} {}\n", kernel.id, ninja_path(command.words.front()),
                        kernel.id, ninja_value(kernel.title), kernel.request.arch);
  return text;
}

// An array job of `shards` tasks that share nothing but the output. Submit it with `sbatch FILE`; options of sbatch add to it.
std::string slurm_script(const AotCommandLine& command, std::size_t kernels, int shards) {
  return fmt::format("#!/bin/bash\n"
                     "# Made by --emit-slurm: {} kernels in {} tasks. An interrupted array is submitted again and goes on where it was.\n"
                     "#SBATCH --job-name=kiln-aot\n"
                     "#SBATCH --array=1-{}\n"
                     "#SBATCH --ntasks=1\n"
                     "set -euo pipefail\n"
                     "exec {} --shard \"${{SLURM_ARRAY_TASK_ID}}/{}\" -j \"${{SLURM_CPUS_PER_TASK:-1}}\"\n",
                     kernels, shards, shards, shell_command(command), shards);
}

void write_script(const std::string& path, const std::string& text, bool executable) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream)
    throw EnvironmentError("build script", fmt::format("{} could not be written", path), "name a file in a folder that you may write");
  if (executable) fs::permissions(path, fs::perms::owner_exec, fs::perm_options::add);
}

AotCommandLine command_line(const AotCommand& command, std::vector<std::string> invocation) {
  invocation.front() = fs::read_symlink("/proc/self/exe").string();
  if (!command.manifest.empty()) invocation.push_back(fs::absolute(command.manifest).string());
  invocation.insert(invocation.end(), {"--arch", fmt::format("{}", fmt::join(command.archs, ","))});
  if (command.line_tables) invocation.emplace_back("--line-tables");
  if (command.batch_invariant) invocation.emplace_back("--batch-invariant");
  if (command.candidates != simulated_first) invocation.insert(invocation.end(), {"--candidates", std::to_string(command.candidates)});
  return {std::move(invocation), fs::absolute(command.output)};
}

std::vector<AotKernel> kernels_of(const AotCommand& command, const SpecList& specs, const CompileOptions& options) {
  for (const std::string& arch : command.archs) target(arch); // all of them before the first compile
  std::vector<AotKernel> kernels;
  if (specs) {
    for (const std::string& arch : command.archs)
      for (const Target gpu = target(arch).with_batch_invariance(options.environment.batch_invariant); const KernelSpec& spec : specs(gpu))
        kernels.push_back(aot_kernel(spec.name(), spec, gpu, {}, options));
    keep_first_of_equal(kernels);
  } else {
    kernels = read_manifest(command.manifest, command.archs, options);
  }
  if (!command.shard.empty()) kernels = shard_of(std::move(kernels), parse_shard(command.shard));
  if (!command.only.empty()) {
    std::erase_if(kernels, [&](const AotKernel& kernel) { return std::ranges::find(command.only, kernel.id) == command.only.end(); });
    if (kernels.size() != command.only.size())
      throw UserError("--only", fmt::format("{} of {} ids are in the list of kernels", kernels.size(), command.only.size()),
                      "make the build script anew: the list, or Kiln, has changed since");
  }
  return kernels;
}

// One moving line on a terminal, with the time that is left as an estimate; a line for each kernel elsewhere.
class ProgressLine {
public:
  ProgressLine(std::size_t total, bool quiet) : total_(total), quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}

  void show(std::size_t done, const AotResult& latest) {
    if (quiet_) return;
    const std::string what = fmt::format("{} {} {}", to_string(latest.status), latest.title, latest.arch);
    if (!terminal_) {
      fmt::print(stderr, "[{}/{}] {} ({:.0f} ms)\n", done, total_, what, latest.milliseconds);
      return;
    }
    const double elapsed = watch_.milliseconds() / 1000, left = elapsed / static_cast<double>(done) * static_cast<double>(total_ - done);
    constexpr std::size_t width = 24;
    const std::size_t full = done * width / std::max<std::size_t>(total_, 1);
    fmt::print(stderr, "\r\033[K[{}{}] {}/{}, {:.0f} s left: {:.60}", std::string(full, '#'), std::string(width - full, '.'), done, total_,
               left, what);
    if (done == total_) fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }

private:
  std::size_t total_;
  bool quiet_, terminal_;
  Stopwatch watch_;
};

void print_json(const AotReport& report) {
  nlohmann::ordered_json document{{"kernels", nlohmann::ordered_json::array()}};
  for (const AotResult& r : report.results) {
    nlohmann::ordered_json kernel{{"kernel", r.title}, {"arch", r.arch}, {"status", to_string(r.status)},
                                  {"id", r.id},        {"key", r.key},   {"ms", r.milliseconds}};
    if (!r.error.empty()) kernel["error"] = r.error;
    document["kernels"].push_back(std::move(kernel));
  }
  for (const AotStatus status : {AotStatus::compiled, AotStatus::cached, AotStatus::missing, AotStatus::rejected, AotStatus::failed})
    document["counts"][std::string(to_string(status))] = report.count(status);
  document["events"] = report.events;
  document["seconds"] = report.seconds;
  fmt::print("{}\n", document.dump(2));
}

void print_text(const AotReport& report, bool dry_run) {
  for (const AotResult& r : report.results) {
    if (dry_run) fmt::print("{:<8} {} {} {}\n", to_string(r.status), r.id, r.arch, r.title);
    if (r.status == AotStatus::failed || r.status == AotStatus::rejected)
      fmt::print(stderr, "{}: {} {}: {}\n", to_string(r.status), r.title, r.arch, r.error);
  }
  fmt::print("{}: {} compiled, {} cached, {} missing, {} rejected, {} failed; {:.1f} s\n", isa::plural(report.results.size(), "kernel"),
             report.count(AotStatus::compiled), report.count(AotStatus::cached), report.count(AotStatus::missing),
             report.count(AotStatus::rejected), report.count(AotStatus::failed), report.seconds);
}

int one_line(const std::exception& error, int exit_code) {
  fmt::print(stderr, "error: {}\n", error.what());
  return exit_code;
}

} // namespace

std::shared_ptr<AotCommand> add_aot_options(CLI::App& app, bool takes_manifest) {
  auto command = std::make_shared<AotCommand>();
  if (takes_manifest) app.add_option("manifest", command->manifest, "JSON lines that name kernels (docs/aot.md)")->required();
  app.add_option("--arch", command->archs, "Architectures, comma separated")->delimiter(',')->required();
  app.add_option("-o,--output", command->output, "The cache to fill; entries that are there are kept")->required();
  app.add_option("-j,--jobs", command->jobs, "Kernels at once (one a processor)")->check(CLI::PositiveNumber);
  app.add_option("--shard", command->shard, "I/N: only the I-th of N parts");
  app.add_option("--shards", command->shards, "Tasks of --emit-slurm (8)")->check(CLI::PositiveNumber);
  app.add_option("--only", command->only, "Only the kernels of these ids, comma separated")->delimiter(',');
  app.add_option("--stamp", command->stamp, "A file to write when every kernel is there");
  app.add_option("--emit-ninja", command->ninja, "Compile nothing: write a build.ninja with one edge a kernel");
  app.add_option("--emit-slurm", command->slurm, "Compile nothing: write a Slurm array job that does");
  app.add_option(
         "--candidates", command->candidates,
         fmt::format("Compile and simulate up to so many schedules of a kernel, the first by the cost model, and take the quickest; 1: "
                     "the cost model decides ({})",
                     simulated_first))
      ->check(CLI::PositiveNumber);
  app.add_flag("--line-tables", command->line_tables, "Code objects name the source's lines; a Jit needs KILN_LINE_TABLES=1 for them");
  app.add_flag("--batch-invariant", command->batch_invariant,
               "The bits of a row depend on its own inputs alone; a Jit needs KILN_BATCH_INVARIANT=1 for these kernels");
  app.add_flag("--dry-run", command->dry_run, "Compile nothing: list the kernels and whether they are there");
  app.add_flag("--json", command->json, "Print one JSON document");
  app.add_flag("--quiet", command->quiet, "Print failures only");
  return command;
}

int run_aot_command(const AotCommand& command, std::vector<std::string> invocation, const SpecList& specs) {
  CompileOptions compile = own_process_options(process_environment());
  compile.environment.line_tables |= command.line_tables;
  compile.environment.batch_invariant |= command.batch_invariant;
  std::vector<AotKernel> kernels = kernels_of(command, specs, compile);
  TunedSchedules tuned(tuning_options(compile.environment), std::make_shared<EventLog>(log_to_stderr()),
                       [&] { return compiler_identity(compile.environment); });
  tune_kernels(kernels, tuned);
  for (AotKernel& kernel : kernels) {
    kernel.request.simulated = command.candidates;
    if (kernel.afresh) kernel.afresh->simulated = command.candidates;
  }
  if (!command.ninja.empty()) write_script(command.ninja, ninja_script(command_line(command, invocation), kernels), false);
  if (!command.slurm.empty())
    write_script(command.slurm, slurm_script(command_line(command, invocation), kernels.size(), command.shards), true);
  if (!command.ninja.empty() || !command.slurm.empty()) return 0;

  ProgressLine line(kernels.size(), command.quiet || command.dry_run);
  AotOptions options{.output = command.output, .workers = worker_options(compile.environment), .progress = {}, .dry_run = command.dry_run};
  options.workers.own_process = true;
  options.trust_shared = compile.environment.cache_trust_shared;
  if (!compile.environment.cache_dir.empty()) options.notes = compile.environment.cache_dir / "hosts";
  if (command.jobs != 0) options.workers.count = command.jobs;
  options.progress = [&](std::size_t done, const AotResult& latest) { line.show(done, latest); };
  const AotReport report = run_aot(kernels, options);
  if (command.json) print_json(report);
  else if (!command.quiet || !report.complete()) print_text(report, command.dry_run);
  if (command.dry_run) return 0;
  if (report.complete() && !command.stamp.empty()) write_script(command.stamp, "", false);
  return report.complete() ? 0 : 1;
}

int aot_main(int argc, char** argv, const SpecList& specs) {
  CLI::App app("Compiles this program's kernels into a cache for Kiln", argv[0]);
  try {
    const std::shared_ptr<AotCommand> command = add_aot_options(app, false);
    app.parse(argc, argv);
    return run_aot_command(*command, {argv[0]}, specs);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return one_line(error, 2);
  } catch (const UserError& error) {
    return one_line(error, 2);
  } catch (const std::exception& error) {
    return one_line(error, 1);
  }
}

} // namespace kiln
