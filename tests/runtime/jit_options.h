// The options of a Jit of a test: a cache folder of its own, no log, and nothing else of this machine.
#pragma once
#include "runtime/jit/jit.h"
#include <filesystem>

namespace kiln::test {

inline JitOptions options_in(const std::filesystem::path& folder, JitPolicy policy = JitPolicy::jit, int workers = 2) {
  JitOptions options = jit_options(process_environment());
  options.policy = policy;
  options.cache = {.folder = folder, .layers = {}, .remote = {}};
  options.workers.count = workers;
  options.log = {};
  return options;
}

} // namespace kiln::test
