// Build scripts: the kernels of a manifest as a build.ninja or a Slurm array job, for engines that schedule over many machines.
#pragma once
#include "runtime/aot/manifest.h"
#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

struct AotCommandLine {
  std::vector<std::string> words; // that run the same list of kernels again: program, "aot", manifest, "--arch", ...
  std::filesystem::path output;
};

// One edge a kernel; a stamp beside the script says that it is done, so an interrupted build goes on where it was.
std::string ninja_script(const AotCommandLine& command, const std::vector<AotKernel>& kernels);

// An array job of `shards` tasks that share nothing but the output. Submit it with `sbatch FILE`; options of sbatch add to it.
std::string slurm_script(const AotCommandLine& command, std::size_t kernels, int shards);

} // namespace kiln
