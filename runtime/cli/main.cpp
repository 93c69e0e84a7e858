// kiln: the command line. Parses, runs one subcommand, and turns every error into one line and an exit code.
#include "gen/error.h"
#include "gen/spec/names.h"
#include "isa_checks/error.h"
#include "runtime/build/build_kernel.h"
#include "runtime/cli/command.h"
#include "runtime/compile/comgr_cache.h"
#include "runtime/environment.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <kiln_version.h>

namespace {

using namespace kiln;

// What a report of a fault has to name. The compiler is loaded for it.
std::string version() {
  std::string compiler;
  try {
    compiler = compiler_identity(process_environment());
  } catch (const std::exception& error) {
    compiler = fmt::format("no compiler: {}", error.what());
  }
  return fmt::format("kiln {} (commit {})\nLLVM {}\n{}", KILN_VERSION, KILN_COMMIT, KILN_LLVM_VERSION, compiler);
}

// One line, whatever a message holds.
void report(std::string what) {
  std::ranges::replace(what, '\n', ' ');
  fmt::print(stderr, "error: {}\n", what);
}

// CLI11 calls an unknown word a missing subcommand.
void require_command(const std::vector<cli::Command>& commands, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const cli::Command& command : commands) names.push_back(command.app->get_name());
  if (std::ranges::find(names, argv[1]) != names.end()) return;
  throw UserError("command line", fmt::format("\"{}\" is no command", argv[1]),
                  did_you_mean(argv[1], std::vector<std::string_view>(names.begin(), names.end())));
}

// What to do about a command line that CLI11 refuses: the option that was meant, if one of the command's comes close.
std::string remedy_of(const CLI::ParseError& error, const std::vector<cli::Command>& commands, int argc, char** argv) {
  std::string remedy = "kiln --help and kiln COMMAND --help say what there is";
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || argc < 2) return remedy;
  const auto command = std::ranges::find(commands, argv[1], [](const cli::Command& each) { return each.app->get_name(); });
  if (command == commands.end()) return remedy;
  std::vector<std::string> names;
  for (const CLI::Option* option : command->app->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::vector<std::string_view> views(names.begin(), names.end());
  for (int i = 2; i < argc; ++i) {
    const std::string given = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    if (!given.starts_with("--") || std::ranges::find(names, given) != names.end()) continue;
    if (std::string meant = did_you_mean(given, views); meant.starts_with("did you mean")) return meant;
  }
  return remedy;
}

int run_parsed(const std::vector<cli::Command>& commands) {
  try {
    for (const cli::Command& command : commands)
      if (command.app->parsed()) return command.run();
  } catch (const UserError& error) {
    report(error.what());
    return cli::bad_usage;
  } catch (const EnvironmentError& error) { // with the lines of a compiler
    fmt::print(stderr, "error: {}\n", error.what());
    return cli::kernel_failed;
  } catch (const RejectedError& error) { // one line a schedule that was tried
    fmt::print(stderr, "error: {}\n", error.what());
    return cli::kernel_failed;
  } catch (const std::exception& error) { // isa::Error, InternalError and what the standard library throws
    report(error.what());
    return cli::kernel_failed;
  }
  return cli::bad_usage;
}

// What standard output did not take is an error of the command, whichever command it was.
int with_output_written(int code) {
  errno = 0;
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  report(fmt::format("standard output: it did not take all that was written ({}); free space, or write elsewhere",
                     errno == 0 ? "an earlier write failed" : std::strerror(errno)));
  return code == cli::ok ? cli::kernel_failed : code;
}

} // namespace

int main(int argc, char** argv) {
  setenv(comgr_cache_variable, comgr_cache_off, 1); // as in workers
  CLI::App root("Kiln: HIP kernels for AMD Instinct GPUs, planned, emitted, compiled and inspected", "kiln");
  root.require_subcommand(1);
  root.set_version_flag("--version", version, "Print the versions of Kiln, of LLVM, and of the compiler that is found, and end");
  const std::vector<cli::Command> commands{
      cli::make_list(root),   cli::make_compile(root), cli::make_eval(root),    cli::make_run(root),
      cli::make_demo(root),   cli::make_env(root),     cli::make_cache(root),   cli::make_aot(root),
      cli::make_misses(root), cli::make_bench(root),   cli::make_doctor(root),  cli::make_predict(root),
      cli::make_tune(root),   cli::make_prove(root),   cli::make_explain(root), cli::make_calibrate(root)};
  try {
    require_command(commands, argc, argv);
    root.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return with_output_written(root.exit(help));
  } catch (const UserError& error) {
    report(error.what());
    return cli::bad_usage;
  } catch (const CLI::ParseError& error) {
    report(fmt::format("command line: {}; {}", error.what(), remedy_of(error, commands, argc, argv)));
    return cli::bad_usage;
  }
  return with_output_written(run_parsed(commands));
}
