// Jit: specs to compiled kernels, each once, through memory, caches and worker processes.
#pragma once
#include "gen/error.h"
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include "runtime/jit/stats.h"
#include "runtime/launch/kernel.h"
#include "runtime/tune/tuned_schedules.h"
#include "runtime/workers/pool.h"
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kiln {

// What to do on a cache miss.
enum class JitPolicy : std::uint8_t {
  jit,        // compile
  cache_only, // throw CacheMiss: nothing compiles while serving
  record,     // compile, and append the kernel to a manifest for `kiln aot`
};

struct JitOptions {
  JitPolicy policy = JitPolicy::jit;
  CacheOptions cache;
  WorkerOptions workers;
  CompileOptions compile;
  bool batch_invariant = false;      // the bits of a row depend on its own inputs alone: docs/batch_invariance.md. A part of keys
  TuningOptions tuning;              // tables of schedules that were the quickest
  std::filesystem::path manifest;    // what was missing, of JitPolicy::record and cache_only; appended to, one JSON object a line
  LogFunction log = log_to_stderr(); // empty: silent
};
JitOptions jit_options(const Environment& environment); // what the KILN_* variables say

// No cache has the kernel, and the policy forbids to compile it. what() has key and spec.
struct CacheMiss : Error {
  CacheMiss(const KernelRequest& request, std::string key);
  std::string kernel, arch, key, spec;
};

// How far a list of kernels is. Reported by the threads that make them, one at a time. What a ProgressFunction throws is counted as
// the event "progress_threw".
struct Progress {
  std::size_t done = 0, total = 0, failed = 0;
  std::string kernel;                    // the latest
  double elapsed_s = 0, remaining_s = 0; // the second is an estimate
};
using ProgressFunction = std::function<void(const Progress&)>;

class Device; // runtime/launch/device.h

// All members are thread-safe. A child of fork() makes a Jit of its own: every call of one that it inherited throws UserError, and
// destroying that touches nothing, so that the parent's workers and files go on.
//   Jit jit(target("gfx942"));
//   const Kernel kernel = jit.compile(spec);
class Jit {
public:
  // With no options: those of jit_options(process_environment()).
  explicit Jit(Target target);
  Jit(Target target, JitOptions options);
  // For the architecture of a device; what it compiles may be loaded on every device of that architecture.
  explicit Jit(const Device& device);
  Jit(const Device& device, JitOptions options);
  // Waits for the compiles that run; those that only wait in a queue end in an Error. In a child of fork(): does nothing.
  ~Jit();
  Jit(const Jit&) = delete;
  Jit& operator=(const Jit&) = delete;

  // The kernel; its columns and types are the spec's, its run-time sizes are given at the launch. Asked again with the same spec
  // (a copy of it, or one built from the same Expr nodes) this is one hash lookup; an equal spec built anew costs its canonical
  // text, some microseconds. `overrides`: fields of the schedule, "vec=4"; without, a tuning table may give them. Throws UserError,
  // EnvironmentError, RejectedError, and CacheMiss. Failures are not kept: the next call tries again.
  Kernel compile(const KernelSpec& spec, const std::vector<std::string>& overrides = {});
  std::shared_future<Kernel> compile_async(const KernelSpec& spec, const std::vector<std::string>& overrides = {});
  // All of them, asynchronously. `progress` is called before the future of the kernel that it reports is ready, so what it uses
  // has to live only as long as somebody waits for them; it must not wait for kernels of this Jit itself.
  std::vector<std::shared_future<Kernel>> warm(std::span<const KernelSpec> specs, ProgressFunction progress = {});

  JitStats stats() const;
  const Target& target() const;
  const JitOptions& options() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace kiln
