// Jit: who looks where, and who compiles.
#include "runtime/jit/jit.h"
#include "runtime/jit/alias_table.h"
#include "runtime/jit/recorder.h"
#include "runtime/jit/task_queue.h"
#include "runtime/launch/device.h"
#include "runtime/stopwatch.h"
#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unordered_map>

namespace kiln {
namespace {

struct Counters {
  std::atomic<std::uint64_t> requests{0}, memory_hits{0}, joined{0}, folder_hits{0}, layer_hits{0}, remote_hits{0}, compiled{0},
      failed{0};
  std::atomic<double> compile_ms{0};

  void count(Origin origin) {
    switch (origin) {
    case Origin::memory:
      ++memory_hits;
      break;
    case Origin::folder:
      ++folder_hits;
      break;
    case Origin::layer:
      ++layer_hits;
      break;
    case Origin::remote:
      ++remote_hits;
      break;
    case Origin::compiled:
      ++compiled;
      break;
    }
  }
};

// The name of a request within one Jit, whose architecture and options are fixed.
std::string memory_key(const KernelRequest& request) {
  return fmt::format("{}\n{}", request.spec, fmt::join(request.overrides, "\n"));
}

std::shared_future<Kernel> ready(const Kernel& kernel) {
  std::promise<Kernel> promise;
  promise.set_value(kernel);
  return promise.get_future().share();
}

} // namespace

JitOptions jit_options(const Environment& environment) {
  JitOptions options;
  options.policy = environment.policy == "cache_only" ? JitPolicy::cache_only
                   : environment.policy == "record"   ? JitPolicy::record
                                                      : JitPolicy::jit;
  options.cache = cache_options(environment);
  options.workers = worker_options(environment);
  options.compile.environment = environment;
  options.manifest = environment.manifest;
  return options;
}

CacheMiss::CacheMiss(const KernelRequest& request, std::string key_)
    : Error(fmt::format("kernel {} for {}: no cache has it (key {}) and the policy is cache_only; compile it ahead with kiln aot "
                        "from this spec:\n{}",
                        kernel_name(request), request.arch, key_, request.spec)),
      kernel(kernel_name(request)), arch(request.arch), key(std::move(key_)), spec(request.spec) {}

std::string to_text(const JitStats& s) {
  std::string text = fmt::format("{} requests: {} from memory, {} joined, {} from the folder, {} from layers, {} from the "
                                 "remote, {} compiled in {:.0f} ms, {} failed\n",
                                 s.requests, s.memory_hits, s.joined, s.folder_hits, s.layer_hits, s.remote_hits, s.compiled,
                                 s.compile_ms, s.failed);
  for (const auto& [name, count] : s.events) text += fmt::format("  {} x{}\n", name, count);
  return text;
}

struct Jit::State {
  Target target;
  JitOptions options;
  std::shared_ptr<EventLog> events;
  KernelCache cache;
  WorkerPool workers;
  Recorder recorder;
  Counters counters;
  AliasTable aliases;
  std::mutex mutex;
  std::unordered_map<std::string, Kernel> kernels;                     // by memory_key
  std::unordered_map<std::string, std::shared_future<Kernel>> running; // by memory_key
  TaskQueue queue;                                                     // last: its threads use all of the above

  State(Target target_, JitOptions options_)
      : target(std::move(target_)), options(std::move(options_)), events(std::make_shared<EventLog>(options.log)),
        cache(options.cache, events), workers(options.workers, events), recorder(options.manifest), queue(workers.count()) {
    if (options.policy == JitPolicy::record && options.manifest.empty())
      throw UserError("JitOptions", "the policy is record and no manifest is given", "set JitOptions::manifest to a file");
  }

  // What one asker gets: a kernel that is there, somebody's running compile, or a promise to keep.
  struct Turn {
    std::optional<Kernel> kernel;
    std::shared_future<Kernel> future;
    std::shared_ptr<std::promise<Kernel>> promise; // null unless this asker has to resolve it
  };

  Turn take_turn(const std::string& key) {
    const std::lock_guard lock(mutex);
    if (const auto found = kernels.find(key); found != kernels.end()) {
      ++counters.memory_hits;
      return {.kernel = found->second, .future = {}, .promise = {}};
    }
    if (const auto found = running.find(key); found != running.end()) {
      ++counters.joined;
      return {.kernel = {}, .future = found->second, .promise = {}};
    }
    auto promise = std::make_shared<std::promise<Kernel>>();
    const std::shared_future<Kernel> future = promise->get_future().share();
    running.emplace(key, future);
    return {.kernel = {}, .future = future, .promise = std::move(promise)};
  }

  EntryFiles compile(const KernelRequest& request) {
    if (options.policy == JitPolicy::record) record(request);
    const Stopwatch watch;
    EntryFiles files = workers.compile(request);
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

  Kernel look_up(const KernelRequest& request) {
    if (options.policy == JitPolicy::cache_only) {
      std::optional<Found> found = cache.find(request);
      if (!found) throw CacheMiss(request, cache.key(request).hex);
      counters.count(found->origin);
      return Kernel(std::move(found->kernel), found->origin);
    }
    Found found = cache.find_or_make(request, [&] { return compile(request); });
    counters.count(found.origin);
    return Kernel(std::move(found.kernel), found.origin);
  }

  using Finished = std::function<void(bool failed)>;

  // Keeps the promise, one way or the other. Never throws. `finished` comes first: who waits for the future may take away what
  // the callback uses.
  void resolve(const KernelRequest& request, const std::string& key, std::promise<Kernel>& promise,
               const Finished& finished = {}) {
    std::optional<Kernel> kernel;
    std::exception_ptr error;
    try {
      kernel = look_up(request);
    } catch (...) {
      error = std::current_exception();
      ++counters.failed;
    }
    {
      const std::lock_guard lock(mutex);
      if (kernel) kernels.emplace(key, *kernel);
      running.erase(key);
    }
    if (finished) finished(!kernel);
    kernel ? promise.set_value(*kernel) : promise.set_exception(error);
  }

  void give_up(const KernelRequest& request, const std::string& key, std::promise<Kernel>& promise, const Finished& finished) {
    {
      const std::lock_guard lock(mutex);
      running.erase(key);
    }
    if (finished) finished(true);
    promise.set_exception(std::make_exception_ptr(Error(fmt::format(
        "kernel {}: its compile never began: its Jit was destroyed, or could start no thread", kernel_name(request)))));
  }

  // A future of its own for one who joined, so that `finished` comes before it too. Behind the compile in the queue, or waiting
  // for a thread that called compile().
  std::shared_future<Kernel> follow(const std::shared_future<Kernel>& leader, const Finished& finished) {
    auto promise = std::make_shared<std::promise<Kernel>>();
    std::shared_future<Kernel> future = promise->get_future().share();
    queue.add([leader, promise, finished](bool) {
      leader.wait();
      try {
        const Kernel& kernel = leader.get();
        finished(false);
        promise->set_value(kernel);
      } catch (...) {
        finished(true);
        promise->set_exception(std::current_exception());
      }
    });
    return future;
  }

  // `finished` is called once, before the future is ready. It must not throw.
  std::shared_future<Kernel> start(const KernelSpec& spec, const std::vector<std::string>& overrides, const Finished& finished) {
    ++counters.requests;
    const auto there = [&finished](const Kernel& kernel) {
      if (finished) finished(false);
      return ready(kernel);
    };
    if (const std::optional<Kernel> kernel = aliases.find(spec, overrides)) {
      ++counters.memory_hits;
      return there(*kernel);
    }
    const KernelRequest request = kernel_request(spec, target, overrides, options.compile);
    const std::string key = memory_key(request);
    Turn turn = take_turn(key);
    if (turn.kernel) return there(*turn.kernel);
    if (!turn.promise) return finished ? follow(turn.future, finished) : turn.future;
    try {
      queue.add([this, request, key, promise = turn.promise, finished](bool stopped) {
        stopped ? give_up(request, key, *promise, finished) : resolve(request, key, *promise, finished);
      });
    } catch (...) { // nobody must wait for what will not be done
      give_up(request, key, *turn.promise, {});
      throw;
    }
    return turn.future;
  }
};

Jit::Jit(Target target) : Jit(std::move(target), jit_options(process_environment())) {}
Jit::Jit(Target target, JitOptions options) : state_(std::make_unique<State>(std::move(target), std::move(options))) {}
Jit::Jit(const Device& device) : Jit(device.target()) {}
Jit::Jit(const Device& device, JitOptions options) : Jit(device.target(), std::move(options)) {}
Jit::~Jit() = default;

Kernel Jit::compile(const KernelSpec& spec, const std::vector<std::string>& overrides) {
  state_->counters.requests.fetch_add(1, std::memory_order_relaxed);
  if (std::optional<Kernel> kernel = state_->aliases.find(spec, overrides)) {
    state_->counters.memory_hits.fetch_add(1, std::memory_order_relaxed);
    return *std::move(kernel);
  }
  const KernelRequest request = kernel_request(spec, state_->target, overrides, state_->options.compile);
  const std::string key = memory_key(request);
  State::Turn turn = state_->take_turn(key);
  if (turn.promise) state_->resolve(request, key, *turn.promise);
  Kernel kernel = turn.kernel ? *turn.kernel : turn.future.get();
  state_->aliases.add(spec, overrides, kernel);
  return kernel;
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
    try {
      progress(now);
    } catch (const std::exception& error) {
      events->note("progress_threw", error.what());
    }
  };
  std::vector<std::shared_future<Kernel>> futures;
  for (const KernelSpec& spec : specs)
    futures.push_back(progress ? state_->start(spec, {}, [one_done, name = spec.name()](bool failed) { one_done(name, failed); })
                               : state_->start(spec, {}, {}));
  return futures;
}

JitStats Jit::stats() const {
  const Counters& c = state_->counters;
  return {.requests = c.requests,
          .memory_hits = c.memory_hits,
          .joined = c.joined,
          .folder_hits = c.folder_hits,
          .layer_hits = c.layer_hits,
          .remote_hits = c.remote_hits,
          .compiled = c.compiled,
          .failed = c.failed,
          .compile_ms = c.compile_ms,
          .events = state_->events->counts()};
}

const Target& Jit::target() const { return state_->target; }
const JitOptions& Jit::options() const { return state_->options; }

} // namespace kiln
