// Jit: specs to compiled kernels, each once, through memory, caches and worker processes.
#pragma once
#include "gen/error.h"
#include "gen/spec/spec.h"
#include "gen/plan/target.h"
#include "runtime/launch/kernel.h"
#include "runtime/workers/pool.h"
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kiln {

// What it means that no cache has a kernel.
enum class JitPolicy : std::uint8_t {
  jit,        // it is compiled
  cache_only, // CacheMiss is thrown: nothing compiles while serving
  record,     // it is compiled, and appended to a manifest for `kiln aot`
};

struct JitOptions {
  JitPolicy policy = JitPolicy::jit;
  CacheOptions cache;
  WorkerOptions workers;
  CompileOptions compile;
  std::filesystem::path manifest;    // of JitPolicy::record; made or appended to, one JSON object a line
  LogFunction log = log_to_stderr(); // empty: silent
};
JitOptions jit_options(const Environment& environment); // what the KILN_* variables say

// No cache has the kernel, and the policy forbids to compile it. what() has key and spec.
struct CacheMiss : Error {
  CacheMiss(const KernelRequest& request, std::string key);
  std::string kernel, arch, key, spec;
};

struct JitStats {
  std::uint64_t requests = 0;
  std::uint64_t memory_hits = 0, joined = 0; // joined: another thread was at it already
  std::uint64_t folder_hits = 0, layer_hits = 0, remote_hits = 0, compiled = 0;
  std::uint64_t failed = 0;                    // ended in an exception, misses of cache_only among them
  double compile_ms = 0;                       // wall time, summed over kernels
  std::map<std::string, std::uint64_t> events; // every fallback by name; docs/cache.md explains the names
};
std::string to_text(const JitStats& stats);

// Of a list of kernels that are being compiled. Called by the threads of the Jit, one at a time.
struct Progress {
  std::size_t done = 0, total = 0, failed = 0;
  std::string kernel;                    // the latest
  double elapsed_s = 0, remaining_s = 0; // the second is an estimate
};
using ProgressFunction = std::function<void(const Progress&)>;

class Device; // runtime/launch/device.h

// All members are thread-safe.
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
  // Waits for the compiles that run; those that only wait in a queue end in an Error.
  ~Jit();
  Jit(const Jit&) = delete;
  Jit& operator=(const Jit&) = delete;

  // The kernel; its columns and types are the spec's, its run-time sizes are given at the launch. Asked again with the same spec
  // (a copy of it, or one built from the same Expr nodes) this is one hash lookup; an equal spec built anew costs its canonical
  // text, some microseconds. `overrides`: fields of the schedule, "vec=4". Throws UserError, EnvironmentError, RejectedError, and
  // CacheMiss. Failures are not kept: the next call tries again.
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
