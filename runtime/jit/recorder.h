// Recorder: appends the kernels that were missing to a manifest that `kiln aot` reads.
#pragma once
#include "runtime/cache/request.h"
#include <filesystem>
#include <mutex>
#include <set>
#include <string>

namespace kiln {

class Recorder {
public:
  explicit Recorder(std::filesystem::path manifest) : manifest_(std::move(manifest)) {}
  // Each kernel once in this process, as a line of its own, whole or not at all: one write at the end of the file, which other
  // processes' writes do not cut, and which is taken back when the file cannot grow. Throws EnvironmentError.
  void add(const KernelRequest& request);

private:
  std::filesystem::path manifest_;
  std::mutex mutex_;
  std::set<std::string> seen_;
};

} // namespace kiln
