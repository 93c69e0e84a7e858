// Jit: who looks where, and who compiles.
#include "runtime/jit/jit.h"
#include "runtime/append_line.h"
#include "runtime/build/build_kernel.h"
#include "runtime/jit/alias_table.h"
#include "runtime/jit/kernel_table.h"
#include "runtime/jit/task_queue.h"
#include "runtime/launch/device.h"
#include "runtime/owner_process.h"
#include "runtime/stopwatch.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace kiln {
namespace {

// Appends the kernels that were missing to a manifest that `kiln aot` reads; runtime/aot/manifest.h says what a line may hold.
class Recorder {
public:
  explicit Recorder(std::filesystem::path manifest) : manifest_(std::move(manifest)) {}
  // Each kernel once in this process, as a line of its own, whole or not at all: one write at the end of the file, which other
  // processes' writes do not cut, and which is taken back when the file cannot grow. Throws EnvironmentError.
  void add(const KernelRequest& request) {
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

private:
  std::filesystem::path manifest_;
  std::mutex mutex_;
  std::set<std::string> seen_;
};

// The name of a request within one Jit, whose architecture and options are fixed.
std::string memory_key(const KernelRequest& request) { return fmt::format("{}\n{}", request.spec, fmt::join(request.overrides, "\n")); }

std::shared_future<Kernel> ready(const Kernel& kernel) {
  std::promise<Kernel> promise;
  promise.set_value(kernel);
  return promise.get_future().share();
}

std::exception_ptr never_began(const KernelRequest& request) {
  return std::make_exception_ptr(
      Error(fmt::format("kernel {}: its compile never began: its Jit was destroyed, or could start no thread", kernel_name(request))));
}

} // namespace

JitOptions jit_options(const Environment& environment) {
  JitOptions options;
  options.policy = environment.policy == "cache_only" ? JitPolicy::cache_only
                   : environment.policy == "record"   ? JitPolicy::record
                                                      : JitPolicy::jit;
  options.cache = cache_options(environment);
  options.workers = worker_options(environment);
  options.compile = own_process_options(environment); // that of the workers
  options.manifest = environment.manifest;
  options.tuning = tuning_options(environment);
  options.batch_invariant = environment.batch_invariant;
  return options;
}

CacheMiss::CacheMiss(const KernelRequest& request, std::string key_)
    : Error(fmt::format("kernel {} for {}: no cache has it (key {}) and the policy is cache_only; compile it ahead with kiln aot "
                        "from this spec:\n{}",
                        kernel_name(request), request.arch, key_, request.spec)),
      kernel(kernel_name(request)), arch(request.arch), key(std::move(key_)), spec(request.spec) {}

namespace {
KernelRequest without_preload(KernelRequest request) {
  request.options.preload_arguments = false;
  return request;
}
} // namespace

// A request takes these steps, in this order, whoever asks: remembered, ask, make (look_up, compile).
struct Jit::State {
  OwnerProcess owner;
  Target target;
  JitOptions options;
  std::shared_ptr<EventLog> events;
  KernelCache cache;
  WorkerPool workers;
  Markers markers;
  TunedSchedules tuned;
  Recorder recorder;
  JitCounters counters;
  AliasTable aliases; // by the identity of a spec's nodes
  KernelTable table;  // by memory_key
  State* inherited = nullptr;
  TaskQueue queue; // last: its threads use all of the above

  State(Target target_, JitOptions options_)
      : target(target_.with_batch_invariance(target_.batch_invariant() || options_.batch_invariant)), options(std::move(options_)),
        events(std::make_shared<EventLog>(options.log)),
        cache(options.cache, events, {}, [this](const Environment& environment) { return workers.compiler_parts(environment); }),
        workers(options.workers, events), markers(options.compile.environment.roctx),
        tuned(options.tuning, events, [this] { return compiler(); }), recorder(options.manifest), queue(workers.count()) {
    if (options.policy == JitPolicy::record && options.manifest.empty())
      throw UserError("JitOptions", "the policy is record and no manifest is given", "set JitOptions::manifest to a file");
  }

  // One request on its way.
  struct Asked {
    KernelSpec spec;
    std::vector<std::string> overrides;
    KernelRequest request;
    std::optional<KernelRequest> afresh; // without the schedule of a tuning table, if the request has one
    std::string key;
    KernelTable::Ticket ticket;
  };

  // A hit in memory, of the very spec or a copy of it.
  std::optional<Kernel> remembered(const KernelSpec& spec, const std::vector<std::string>& overrides) {
    owner.require("Jit");
    counters.requests.fetch_add(1, std::memory_order_relaxed);
    std::optional<Kernel> kernel = aliases.find(spec, overrides);
    if (kernel) counters.memory_hits.fetch_add(1, std::memory_order_relaxed);
    return kernel;
  }

  // A place in the table: of an equal spec that is there or on its way, or this asker's own.
  Asked ask(const KernelSpec& spec, const std::vector<std::string>& overrides, FinishedFunction finished) {
    Asked asked{.spec = spec,
                .overrides = overrides,
                .request = kernel_request(spec, target, overrides, options.compile),
                .afresh = {},
                .key = {},
                .ticket = {}};
    if (overrides.empty())
      if (std::vector<std::string> settings = tuned.settings_for(spec, target); !settings.empty())
        asked.afresh = std::exchange(asked.request, kernel_request(spec, target, std::move(settings), options.compile));
    asked.key = memory_key(asked.request);
    asked.ticket = table.take(asked.key, std::move(finished));
    if (asked.ticket.role == KernelTable::Role::joined) ++counters.joined;
    if (asked.ticket.role == KernelTable::Role::there) {
      ++counters.memory_hits;
      aliases.add(spec, overrides, asked.ticket.kernel.get());
    }
    return asked;
  }

  // Answers all who asked for it. Never throws.
  void make(const Asked& asked) {
    try {
      const Kernel kernel = asked.afresh ? look_up_tuned(asked) : look_up(asked.request);
      aliases.add(asked.spec, asked.overrides, kernel);
      table.settle(asked.key, kernel);
    } catch (...) {
      ++counters.failed;
      table.settle(asked.key, std::current_exception());
    }
  }

  // What the compiler is that would compile now: as cache keys have it, if there is a cache.
  std::string compiler() {
    const KernelRequest any{.spec = {}, .arch = target.arch(), .overrides = {}, .options = options.compile};
    const std::string identity = field_of(cache.key(any), "compiler");
    return identity.empty() ? workers.compiler_parts(options.compile.environment).identity : identity;
  }

  // A table's schedule may be invalid, break its contract, or be in no cache: then as if there were no table.
  Kernel look_up_tuned(const Asked& asked) {
    try {
      return look_up(asked.request);
    } catch (const UserError& error) {
      tuned.reject(asked.spec, asked.request.overrides, error.what());
    } catch (const RejectedError& error) {
      tuned.reject(asked.spec, asked.request.overrides, error.what());
    } catch (const CacheMiss& error) {
      tuned.reject(asked.spec, asked.request.overrides, error.what());
    }
    return look_up(*asked.afresh);
  }

  Kernel look_up(const KernelRequest& request) {
    std::optional<Found> found;
    if (options.policy == JitPolicy::cache_only) found = find(request);
    else found = find_or_make(request);
    if (!found) {
      if (!options.manifest.empty()) record(request);
      throw CacheMiss(request, cache.key(request).hex);
    }
    counters.count(found->origin);
    return Kernel(std::move(found->kernel), found->origin);
  }

  // As asked for, else with the schedule of the architecture's largest chip, which runs on all; batch-invariant ones have the bits of
  // theirs.
  std::optional<Found> find(const KernelRequest& request) {
    std::optional<Found> found = find_for_chip(request);
    if (found || request.chip.empty() || request.batch_invariant) return found;
    KernelRequest other = request;
    other.chip.clear();
    if (found = find_for_chip(other); found)
      events->note("schedule_of_other_chip", fmt::format("{} is in a cache only as scheduled for {}, not for {}", kernel_name(request),
                                                         kiln::target(request.arch).chip().name, request.chip));
    return found;
  }

  // As asked for, else as a process may have made it that must not preload (CompileOptions::preload_arguments).
  std::optional<Found> find_for_chip(const KernelRequest& request) {
    std::optional<Found> found = cache.find(request);
    if (found || !request.options.preload_arguments) return found;
    if (found = cache.find(without_preload(request)); found)
      events->note("arguments_not_preloaded", kernel_name(request) + " is in a cache only as compiled without");
    return found;
  }

  // What this process must not compile is found in caches, or compiled another way under a key of its own.
  Found find_or_make(const KernelRequest& request) {
    try {
      return cache.find_or_make(request, [&] { return compile(request, &WorkerPool::compile); });
    } catch (const WorkerNeeded& error) {
      events->note("arguments_not_preloaded", error.what());
      const KernelRequest other = without_preload(request);
      return cache.find_or_make(other, [&] { return compile(other, &WorkerPool::compile_here); });
    }
  }

  EntryFiles compile(const KernelRequest& request, EntryFiles (WorkerPool::*how)(const KernelRequest&)) {
    if (options.policy == JitPolicy::record) record(request);
    const Markers::Range range = markers.range("compile", kernel_name(request));
    const Stopwatch watch;
    EntryFiles files = (workers.*how)(request);
    counters.compile_ms += watch.milliseconds();
    return files;
  }

  void record(const KernelRequest& request) {
    try {
      recorder.add(request);
    } catch (const EnvironmentError& error) {
      events->note("not_recorded", error.what());
    }
  }

  // As Jit::compile, with `make` on a thread of the queue. `finished`: see KernelTable.
  std::shared_future<Kernel> start(const KernelSpec& spec, const std::vector<std::string>& overrides, FinishedFunction finished) {
    if (const std::optional<Kernel> kernel = remembered(spec, overrides)) {
      if (finished) finished(false);
      return ready(*kernel);
    }
    const Asked asked = ask(spec, overrides, std::move(finished));
    if (asked.ticket.role != KernelTable::Role::mine) return asked.ticket.kernel;
    try {
      queue.add([this, asked](bool stopped) { stopped ? table.settle(asked.key, never_began(asked.request)) : make(asked); });
    } catch (...) { // nobody must wait for what will not be done
      table.settle(asked.key, never_began(asked.request));
      throw;
    }
    return asked.ticket.kernel;
  }
};

Jit::Jit(Target target) : Jit(std::move(target), jit_options(process_environment())) {}
Jit::Jit(Target target, JitOptions options) : state_(std::make_unique<State>(std::move(target), std::move(options))) {}
Jit::Jit(const Device& device) : Jit(device.target()) {}
Jit::Jit(const Device& device, JitOptions options) : Jit(device.target(), std::move(options)) {}

Jit::~Jit() {
  if (state_->owner.is_current()) return;
  // Its locks may be held, its threads are not there, its workers are the parent's: it stays as it is, and reachable, for ever.
  static State* inherited = nullptr;
  state_->inherited = inherited;
  inherited = state_.release();
}

Kernel Jit::compile(const KernelSpec& spec, const std::vector<std::string>& overrides) {
  if (std::optional<Kernel> kernel = state_->remembered(spec, overrides)) return *std::move(kernel);
  const State::Asked asked = state_->ask(spec, overrides, {});
  if (asked.ticket.role == KernelTable::Role::mine) state_->make(asked);
  return asked.ticket.kernel.get();
}

std::shared_future<Kernel> Jit::compile_async(const KernelSpec& spec, const std::vector<std::string>& overrides) {
  return state_->start(spec, overrides, {});
}

std::vector<std::shared_future<Kernel>> Jit::warm(std::span<const KernelSpec> specs, ProgressFunction progress) {
  struct Watch {
    std::mutex mutex;
    Stopwatch time;
    Progress progress;
  };
  const auto watch = std::make_shared<Watch>();
  watch->progress.total = specs.size();
  const auto one_done = [watch, progress, events = state_->events](const std::string& name, bool failed) {
    const std::lock_guard lock(watch->mutex);
    Progress& now = watch->progress;
    ++now.done;
    now.failed += failed ? 1 : 0;
    now.kernel = name;
    now.elapsed_s = watch->time.milliseconds() / 1000;
    now.remaining_s = now.elapsed_s / static_cast<double>(now.done) * static_cast<double>(now.total - now.done);
    events->guard("progress_threw", [&] { progress(now); });
  };
  std::vector<std::shared_future<Kernel>> futures;
  for (const KernelSpec& spec : specs) {
    FinishedFunction finished;
    if (progress) finished = [one_done, name = spec.name()](bool failed) { one_done(name, failed); };
    futures.push_back(state_->start(spec, {}, std::move(finished)));
  }
  return futures;
}

JitStats Jit::stats() const {
  state_->owner.require("Jit");
  return state_->counters.with(state_->events->counts());
}

const Target& Jit::target() const { return state_->target; }
const JitOptions& Jit::options() const { return state_->options; }

} // namespace kiln
