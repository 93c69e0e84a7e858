// Recorder: one line of JSON a kernel; runtime/aot/manifest.h says what a line may hold.
#include "runtime/jit/recorder.h"
#include "gen/error.h"
#include "runtime/folder.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace kiln {

void Recorder::add(const KernelRequest& request) {
  nlohmann::ordered_json line{{"spec", request.spec}, {"arch", {request.arch}}};
  if (!request.overrides.empty()) line["set"] = request.overrides;
  const std::string text = line.dump() + "\n";
  const std::lock_guard lock(mutex_);
  if (!seen_.insert(text).second) return;
  const FileDescriptor file(open(manifest_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return;
  throw EnvironmentError("manifest of missing kernels", manifest_.string() + ": " + std::strerror(errno),
                         "set KILN_JIT_MANIFEST to a file that you may write");
}

} // namespace kiln
