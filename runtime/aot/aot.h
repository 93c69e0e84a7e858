// Ahead of time: a list of kernels compiled into a cache layer that a Jit mounts read-only.
#pragma once
#include "runtime/aot/manifest.h"
#include "runtime/cache/cache.h"
#include "runtime/workers/pool.h"
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace kiln {

struct Shard {
  int index = 1, count = 1; // 1 to count
};
Shard parse_shard(const std::string& text); // "3/8", of --shard; throws UserError
// The kernels of this shard: by id, so that it does not depend on the order or on what else the manifest holds.
std::vector<AotKernel> shard_of(std::vector<AotKernel> kernels, const Shard& shard);

enum class AotStatus { cached, compiled, rejected, failed, missing }; // missing: of a dry run
std::string_view to_string(AotStatus status);

struct AotResult {
  std::string title, arch, id, key; // key: empty unless the kernel is there
  AotStatus status = AotStatus::failed;
  double milliseconds = 0;
  std::string error; // of failed and rejected
};

struct AotReport {
  std::vector<AotResult> results; // in the order of the kernels
  std::map<std::string, std::uint64_t> events;
  double seconds = 0;
  std::size_t count(AotStatus status) const;
  bool complete() const; // every kernel is there
};

struct AotOptions {
  std::filesystem::path output;
  WorkerOptions workers; // count: kernels at once
  LogFunction log = log_to_stderr();
  std::function<void(std::size_t done, const AotResult& latest)> progress; // one call at a time; an exception is the event "progress_threw"
  bool dry_run = false;                                                    // only looks what is there
  bool trust_shared = false;        // as CacheOptions::trust_shared: others' entries in the output are taken
  std::filesystem::path notes = {}; // as CacheOptions::notes: nothing of this machine belongs into the output
};

// Skips the kernels that the layer has, so an interrupted run is resumed by running it again. The same kernels and
// compiler give the same bytes on every machine. Throws EnvironmentError when the output cannot be written at all.
AotReport run_aot(const std::vector<AotKernel>& kernels, const AotOptions& options);

} // namespace kiln
