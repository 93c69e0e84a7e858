// Recorder: one line of JSON a kernel; runtime/aot/manifest.h says what a line may hold.
#include "runtime/jit/recorder.h"
#include "runtime/append_line.h"
#include <nlohmann/json.hpp>

namespace kiln {

void Recorder::add(const KernelRequest& request) {
  nlohmann::ordered_json json{{"spec", request.spec}, {"arch", {request.chip.empty() ? request.arch : request.chip}}};
  if (request.batch_invariant) json["batch_invariant"] = true;
  if (!request.overrides.empty()) json["set"] = request.overrides;
  const std::string line = json.dump();
  const std::lock_guard lock(mutex_);
  if (seen_.contains(line)) return;
  append_line(manifest_, line, "manifest of missing kernels",
              "set KILN_JIT_MANIFEST, or KILN_TUNING_MISSES, to a file that you may write, on a disk with room");
  seen_.insert(line);
}

} // namespace kiln
