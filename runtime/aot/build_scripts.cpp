// Build scripts: a build.ninja or a Slurm array job.
#include "runtime/aot/build_scripts.h"
#include <fmt/format.h>

namespace kiln {
namespace {

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

} // namespace

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

} // namespace kiln
