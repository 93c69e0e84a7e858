// WorkerPool: who compiles what, and what a crash means.
#include "runtime/workers/pool.h"
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "isa_checks/parallel.h"
#include "runtime/compile/comgr_cache.h"
#include "runtime/compile/dump.h"
#include "runtime/workers/compile_job.h"
#include "runtime/workers/process.h"
#include <algorithm>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln {
namespace {

namespace fs = std::filesystem;

bool runnable(const fs::path& program) { return access(program.c_str(), X_OK) == 0 && !fs::is_directory(program); }

// The program that Kiln's library lives in may be an interpreter far from Kiln, so the worker is looked for beside the library:
// lib/libkiln.so and bin/kiln-worker, or both in one folder.
std::vector<fs::path> folders_beside_library() {
  Dl_info library{};
  std::error_code error;
  if (dladdr(reinterpret_cast<const void*>(&find_worker), &library) == 0 || library.dli_fname == nullptr) return {};
  const fs::path folder = fs::canonical(library.dli_fname, error).parent_path();
  if (error) return {};
  return {folder, folder.parent_path() / "bin"};
}

EntryFiles compile_in_process(const KernelRequest& request, const WorkerOptions& options) {
  if (request.options.preload_arguments && !options.own_process)
    throw WorkerNeeded("kernel " + kernel_name(request),
                       "there is no worker process, and to preload arguments is an option that would change what others in this "
                       "process compile meanwhile",
                       "set KILN_WORKER to kiln-worker, or KILN_PRELOAD_ARGUMENTS=0");
  return compile_entry(request);
}

} // namespace

WorkerOptions worker_options(const Environment& environment) {
  WorkerOptions options;
  options.program = find_worker(environment.worker, environment.program_path);
  options.count = environment.jobs;
  options.variables = process_variables(environment);
  std::erase_if(options.variables, [](const std::string& v) { return v.starts_with(fmt::format("{}=", comgr_cache_variable)); });
  options.variables.push_back(fmt::format("{}={}", comgr_cache_variable, comgr_cache_off)); // kernels are kept by Kiln's cache alone
  return options;
}

fs::path find_worker(const fs::path& given, const std::string& path_variable) {
  if (!given.empty()) return given;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  std::vector<fs::path> folders{self.parent_path()};
  std::ranges::copy(folders_beside_library(), std::back_inserter(folders));
  folders.emplace_back(KILN_INSTALLED_BIN);
  for (std::size_t at = 0; at < path_variable.size();) {
    const std::size_t end = std::min(path_variable.find(':', at), path_variable.size());
    if (path_variable[at] == '/') folders.emplace_back(path_variable.substr(at, end - at));
    at = end + 1;
  }
  for (const fs::path& folder : folders)
    if (runnable(folder / "kiln-worker")) return folder / "kiln-worker";
  return {};
}

WorkerPool::WorkerPool(WorkerOptions options, std::shared_ptr<EventLog> events) : options_(std::move(options)), events_(std::move(events)) {
  if (options_.count <= 0) options_.count = static_cast<int>(processors());
}

WorkerPool::~WorkerPool() = default;

std::vector<pid_t> WorkerPool::pids() const {
  const std::lock_guard lock(mutex_);
  std::vector<pid_t> pids;
  for (const auto& worker : idle_) pids.push_back(worker->pid());
  return pids;
}

// Held while a compile runs, whatever becomes of it.
class WorkerPool::Place {
public:
  explicit Place(WorkerPool& pool) : pool_(pool) {
    std::unique_lock lock(pool_.mutex_);
    pool_.changed_.wait(lock, [this] { return pool_.busy_ < pool_.options_.count; });
    ++pool_.busy_;
  }
  ~Place() {
    {
      const std::lock_guard lock(pool_.mutex_);
      --pool_.busy_;
    }
    pool_.changed_.notify_one();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

private:
  WorkerPool& pool_;
};

// An idle one that lives, else a new one. Null when none can be had.
std::unique_ptr<WorkerProcess> WorkerPool::take(bool noted) {
  if (options_.in_process) return nullptr;
  while (true) {
    std::unique_ptr<WorkerProcess> worker;
    {
      const std::lock_guard lock(mutex_);
      if (idle_.empty()) break;
      worker = std::move(idle_.back());
      idle_.pop_back();
    }
    if (worker->alive()) return worker;
    events_->note("worker_died_idle",
                  fmt::format("process {} ended while it had nothing to do; another one takes its place", worker->pid()));
  }
  return start(noted);
}

std::unique_ptr<WorkerProcess> WorkerPool::start(bool noted) {
  try {
    if (options_.program.empty())
      throw EnvironmentError("worker process", "there is no kiln-worker beside this program, where Kiln was installed, or in PATH",
                             "set KILN_WORKER to it");
    return std::make_unique<WorkerProcess>(options_.program, options_.variables, options_.memory_limit);
  } catch (const EnvironmentError& error) {
    if (noted)
      events_->note("worker_unavailable",
                    fmt::format("compiling in this process, one kernel at a time and without limits: {}", error.what()));
    return nullptr;
  }
}

EntryFiles WorkerPool::compile_here(const KernelRequest& request) {
  owner_.require("WorkerPool");
  const Place place(*this);
  return compile_in_process(request, options_);
}

EntryFiles WorkerPool::compile(const KernelRequest& request) {
  owner_.require("WorkerPool");
  const Place place(*this);
  std::unique_ptr<WorkerProcess> worker = take(true);
  if (!worker) return compile_in_process(request, options_);
  const std::variant<std::string, WorkerFailure> answer = worker->ask(request_message(request), options_.time_limit);
  if (const auto* failure = std::get_if<WorkerFailure>(&answer)) {
    events_->note("worker_failed", fmt::format("the worker that compiled {} {}", kernel_name(request), failure->fact));
    fail(request, failure->fact, failure->output);
  }
  keep(std::move(worker));
  return entry_of(std::get<std::string>(answer));
}

CompilerParts WorkerPool::compiler_parts(const Environment& environment) {
  owner_.require("WorkerPool");
  const Place place(*this);
  std::unique_ptr<WorkerProcess> worker = take(false); // a compile says it
  if (!worker) return kiln::compiler_parts(environment);
  const std::variant<std::string, WorkerFailure> answer = worker->ask(compiler_message(environment), options_.time_limit);
  if (const auto* failure = std::get_if<WorkerFailure>(&answer)) {
    events_->note("worker_failed", fmt::format("the worker that loaded the compiler {}", failure->fact));
    throw EnvironmentError("compiler", fmt::format("the worker process that loaded it {}", failure->fact),
                           "look at what it printed; it may need more memory", failure->output, {});
  }
  keep(std::move(worker));
  return compiler_of(std::get<std::string>(answer));
}

void WorkerPool::keep(std::unique_ptr<WorkerProcess> worker) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(worker));
}

// The source is emitted once more, here: a worker that is gone cannot hand it over.
void WorkerPool::fail(const KernelRequest& request, const std::string& fact, const std::string& output) const {
  const std::string kernel = kernel_name(request);
  std::string folder, remedy;
  try {
    std::vector<DumpFile> files{{kernel + ".kiln", request.spec}, {"worker-output.txt", output}};
    const Target gpu = target_of(request);
    const Plan plan = make_plan(parse_spec(request.spec), gpu);
    const Schedule schedule = candidates(plan, gpu, request.overrides).front();
    files.push_back({kernel + ".hip", self_contained(emit_source(plan, schedule, gpu))});
    folder = write_dump(dump_folder(request.options.environment), fmt::format("{}-{}", kernel, request.arch), files).string();
    remedy = fmt::format("read the source and the worker's output in {}", folder);
  } catch (const Error& error) {
    remedy = fmt::format("no source was left: {}", error.what());
  }
  throw EnvironmentError("kernel " + kernel,
                         fmt::format("the worker process that compiled it for {} {} (its limits: {} ms, {} MiB)", request.arch, fact,
                                     options_.time_limit.count(), options_.memory_limit >> 20),
                         remedy, output, folder);
}

} // namespace kiln
