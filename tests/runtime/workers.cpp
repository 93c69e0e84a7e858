// Worker processes: killed, hung, out of memory, not there, of another version; and what becomes of them when their parent ends.
#include "gen/catalog/catalog.h"
#include "runtime/jit/jit.h"
#include "runtime/stopwatch.h"
#include "runtime/workers/compile_job.h"
#include "runtime/workers/pool.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/child.h"
#include "tests/runtime/processes.h"
#include "tests/runtime/system_calls.h"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>

namespace workers_tests {
namespace {
std::atomic<pid_t> killed_by_pid{0}; // by kill(), the last one
}

// Takes the place of libc's, so that a test sees which processes Kiln signals by a number that may be another's by then.
extern "C" int kill(pid_t pid, int signal) {
  killed_by_pid = pid;
  return static_cast<int>(syscall(SYS_kill, pid, signal));
}

using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

KernelRequest request_for(std::int64_t cols, const fs::path& dumps = {}) {
  CompileOptions options = own_process_options(process_environment());
  if (!dumps.empty()) options.environment.dump_dir = dumps;
  return kernel_request(catalog_spec("rmsnorm", {.cols = cols}), target("gfx942"), {}, options);
}

WorkerOptions one_worker() {
  WorkerOptions options = worker_options(process_environment());
  options.own_process = true;
  options.count = 1;
  return options;
}

// A variable of this process for as long as it lives.
struct Variable {
  const char* name;
  Variable(const char* name_, const char* value) : name(name_) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }
};

struct Pool {
  std::shared_ptr<EventLog> events = std::make_shared<EventLog>(LogFunction());
  WorkerPool workers;
  explicit Pool(const WorkerOptions& options) : workers(options, events) {}
};

EnvironmentError failure_of(WorkerPool& pool, const KernelRequest& request) {
  try {
    pool.compile(request);
  } catch (const EnvironmentError& error) {
    return error;
  }
  return {"none", "nothing was thrown", "", "", ""};
}

void check_dump(const EnvironmentError& error, const KernelRequest& request) {
  CAPTURE(error.what());
  REQUIRE_FALSE(error.path.empty());
  CHECK(contents(fs::path(error.path) / "rmsnorm.kiln") == request.spec);
  CHECK(contents(fs::path(error.path) / "rmsnorm.hip").find("__global__") != std::string::npos);
}

} // namespace

TEST_CASE("a worker gives the very bytes that this process would, and stays for the next kernel") {
  Pool pool(one_worker());
  const KernelRequest request = request_for(512);
  const EntryFiles theirs = pool.workers.compile(request), own = compile_entry(request);
  CHECK(theirs.meta == own.meta);
  CHECK(theirs.object == own.object);
  CHECK(theirs.source == own.source);
  const std::vector<pid_t> pids = pool.workers.pids();
  REQUIRE(pids.size() == 1);
  pool.workers.compile(request_for(1024));
  CHECK(pool.workers.pids() == pids);
  CHECK(pool.events->counts().empty());
}

TEST_CASE("errors come through a worker as they are") {
  Pool pool(one_worker());
  KernelRequest request = request_for(512);
  request.overrides = {"threads_per_row=7"};
  CHECK_THROWS_AS(pool.workers.compile(request), UserError);
  request = request_for(512);
  request.options.environment.hiprtc_path = "/nowhere/libhiprtc.so";
  const EnvironmentError error = failure_of(pool.workers, request);
  CHECK(error.subject == "hipRTC");
  CHECK(error.log.find("/nowhere") != std::string::npos);
  CHECK_NOTHROW(pool.workers.compile(request_for(512)));
  CHECK(pool.workers.pids().size() == 1); // none of this cost the worker
}

TEST_CASE("a worker that hangs or is killed costs its kernel an error with the source, and the pool goes on") {
  const Scratch scratch;
  WorkerOptions options = one_worker();
  options.time_limit = std::chrono::milliseconds(30000);
  Pool pool(options);
  const KernelRequest request = request_for(512, scratch.path / "dumps");
  pool.workers.compile(request);
  REQUIRE(pool.workers.pids().size() == 1);
  pid_t worker = pool.workers.pids()[0];
  kill(worker, SIGSTOP);
  {
    const std::jthread killer([&] {
      usleep(50000);
      kill(worker, SIGKILL);
    });
    const EnvironmentError killed = failure_of(pool.workers, request);
    CHECK(killed.fact.find("was ended by signal 9 (Killed)") != std::string::npos);
    check_dump(killed, request);
  }
  CHECK_NOTHROW(pool.workers.compile(request));

  options.time_limit = std::chrono::milliseconds(700);
  Pool impatient(options);
  for (int i = 0; i < 20 && impatient.workers.pids().empty(); ++i) { // a busy machine may be too slow for this limit
    try {
      impatient.workers.compile(request);
    } catch (const EnvironmentError&) {}
  }
  REQUIRE(impatient.workers.pids().size() == 1);
  worker = impatient.workers.pids()[0];
  kill(worker, SIGSTOP);
  const Stopwatch watch;
  const EnvironmentError hung = failure_of(impatient.workers, request);
  CHECK(hung.fact.find("took longer than the limit of 700 ms") != std::string::npos);
  check_dump(hung, request);
  CHECK(watch.milliseconds() < 10000);
  CHECK_FALSE(is_running(worker));
  CHECK(impatient.events->count("worker_failed") >= 1);
}

TEST_CASE("a worker that died while it was idle is replaced") {
  Pool pool(one_worker());
  pool.workers.compile(request_for(512));
  REQUIRE(pool.workers.pids().size() == 1);
  end_process(pool.workers.pids()[0]);
  CHECK_NOTHROW(pool.workers.compile(request_for(512)));
  CHECK(pool.events->count("worker_died_idle") == 1);
}

TEST_CASE("a compile that needs more memory than it may have is an error, not the end of the host") {
  const Scratch scratch;
  const KernelRequest request = request_for(512, scratch.path / "dumps");
  bool seen = false;
  // How much LLVM maps before it compiles anything differs; some of these are enough to start and not enough to compile.
  for (std::uint64_t limit = 200; limit <= 500 && !seen; limit += 20) {
    WorkerOptions options = one_worker();
    options.memory_limit = limit << 20;
    Pool pool(options);
    try {
      pool.workers.compile(request);
    } catch (const EnvironmentError& error) {
      seen = pool.events->count("worker_failed") == 1 || std::string(error.what()).find("memory") != std::string::npos;
    }
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // limits are off then
  CHECK(seen);
#endif
}

TEST_CASE("a limit of file sizes is an error of a write in a worker, and no signal that ends it") {
  CHECK(exit_code_of([&] {
          const rlimit limit{512, RLIM_INFINITY}; // less than the compiler's temporary files and the worker's output
          setrlimit(RLIMIT_FSIZE, &limit);
          Pool pool(one_worker());
          try {
            pool.workers.compile(request_for(512));
          } catch (const EnvironmentError& error) {
            return std::string(error.what()).find("signal") == std::string::npos ? 0 : 1;
          }
          return 0;
        }) == 0);
}

TEST_CASE("a worker takes as many variables and settings as there are") {
  CHECK(in_child([] {
          for (int i = 0; i < 100; ++i) setenv(fmt::format("LLVM_KILN_{}", i).c_str(), "1", 1);
          KernelRequest request = request_for(512);
          if (request.options.environment.compiler_variables.size() < 100) return 1;
          Pool pool(one_worker());
          if (pool.workers.compile(request).object.empty()) return 2;
          for (int i = 0; i < 100; ++i) request.overrides.emplace_back("tiles=1");
          return pool.workers.compile(request).object.empty() ? 3 : 0;
        }) == ChildEnd{0, 0});
}

TEST_CASE("a process without address space for the compiler leaves it to its worker") {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const Scratch scratch;
  CHECK(in_child([&] {
          std::size_t pages = 0;
          std::ifstream("/proc/self/statm") >> pages;
          const rlimit limit{(pages << 12) + (std::size_t{48} << 20), RLIM_INFINITY}; // the compiler and LLVM take 200 MiB and more
          setrlimit(RLIMIT_AS, &limit);
          JitOptions options = jit_options(process_environment());
          options.cache = {.folder = scratch.path, .layers = {}, .remote = {}};
          options.log = {};
          Jit jit(target("gfx942"), options);
          if (jit.compile(catalog_spec("rmsnorm", {.cols = 512})).origin() != Origin::compiled) return 1;
          return jit.stats().events.empty() ? 0 : 2;
        }) == ChildEnd{0, 0});
#endif
}

TEST_CASE("without a worker program the kernel is compiled here, and that is said") {
  const Scratch scratch;
  const fs::path other = scratch.path / "kiln-worker";
  std::ofstream(other) << "#!/bin/sh\nprintf '\\001\\0\\0\\0\\0\\0\\0\\0\\001\\0\\0\\0\\0\\0\\0\\0x' >&0\nsleep 5\n";
  chmod(other.c_str(), 0755);
  for (const fs::path& program : {fs::path("/nowhere/kiln-worker"), fs::path("/bin/true"), other}) {
    WorkerOptions options = one_worker();
    options.program = program;
    Pool pool(options);
    CHECK_FALSE(pool.workers.compile(request_for(512)).object.empty());
    CHECK(pool.events->count("worker_unavailable") == 1);
  }
  WorkerOptions options = one_worker();
  options.in_process = true;
  options.own_process = false;
  Pool others(options);
  CHECK_THROWS_AS(others.workers.compile(request_for(512)), WorkerNeeded); // preloaded arguments change what others compile meanwhile
  KernelRequest plain = request_for(512);
  plain.options.preload_arguments = false;
  CHECK_NOTHROW(others.workers.compile(plain));
  CHECK(find_worker({}, "").filename() == "kiln-worker"); // the one beside this program
}

TEST_CASE("workers end with their parent, however it ends") {
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  const pid_t parent = fork();
  if (parent == 0) {
    Pool pool(one_worker());
    pool.workers.compile(request_for(512));
    const pid_t worker = pool.workers.pids().at(0);
    if (write(pipes[1], &worker, sizeof worker) != static_cast<ssize_t>(sizeof worker)) _exit(1);
    raise(SIGKILL);
  }
  pid_t worker = 0;
  REQUIRE(read(pipes[0], &worker, sizeof worker) == static_cast<ssize_t>(sizeof worker));
  close(pipes[0]);
  close(pipes[1]);
  waitpid(parent, nullptr, 0);
  bool gone = false;
  for (int i = 0; i < 2000 && !gone; ++i, usleep(10000)) gone = !is_running(worker);
  CHECK(gone);
}

TEST_CASE("workers get the variables of the pool's construction, and a compile under others is refused") {
  const KernelRequest request = request_for(512);
  const EntryFiles expected = compile_entry(request);
  WorkerOptions options = one_worker();
  Pool pool(options);
  options.in_process = true;
  Pool here(options);
  const Variable append("HIPRTC_COMPILE_OPTIONS_APPEND", "-ffast-math");
  const EntryFiles made = pool.workers.compile(request);
  CHECK((made.object == expected.object)); // not printed: kilobytes
  CHECK((made.meta == expected.meta));
  // In this process the library reads the variable whatever Kiln does.
  const EnvironmentError refused = failure_of(here.workers, request);
  CHECK(refused.fact.find("HIPRTC_COMPILE_OPTIONS_APPEND") != std::string::npos);
  // A request of the new environment is not for the workers of the old one.
  CHECK(failure_of(pool.workers, request_for(512)).fact.find("HIPRTC_COMPILE_OPTIONS_APPEND") != std::string::npos);
  CHECK((pool.workers.compile(request).object == expected.object));
}

TEST_CASE("a worker that the host has reaped is not signalled by its number") {
  Pool pool(one_worker());
  pool.workers.compile(request_for(512));
  REQUIRE(pool.workers.pids().size() == 1);
  const pid_t worker = pool.workers.pids()[0];
  syscall(SYS_kill, worker, SIGKILL);
  REQUIRE(waitpid(worker, nullptr, 0) == worker); // as a host does that waits for every child; the number is free now
  killed_by_pid = 0;
  CHECK_NOTHROW(pool.workers.compile(request_for(512)));
  CHECK(killed_by_pid != worker);
}

TEST_CASE("workers do without pidfds where there are none") {
  CHECK(in_child([] {
          fail_system_call(SYS_pidfd_open, ENOSYS); // as an old Linux answers
          if (syscall(SYS_pidfd_open, getpid(), 0) >= 0) return 1;
          pid_t worker = 0;
          {
            Pool pool(one_worker());
            pool.workers.compile(request_for(512));
            worker = pool.workers.pids().at(0);
            end_process(worker);
            pool.workers.compile(request_for(512));
            if (pool.events->count("worker_died_idle") != 1 || pool.events->counts().size() != 1) return 2;
            worker = pool.workers.pids().at(0);
          }
          return is_running(worker) ? 3 : 0;
        }) == ChildEnd{0, 0});
}

TEST_CASE("a log function that throws is said once and costs nothing") {
  CHECK(in_child([] {
          WorkerOptions options = one_worker();
          options.program = "/nowhere/kiln-worker"; // an event, and so a line of the log
          int calls = 0;
          const auto events = std::make_shared<EventLog>([&](const std::string&) {
            ++calls;
            throw 42;
          });
          WorkerPool workers(options, events);
          for (int i = 0; i < 2; ++i) // the second waits for ever when the first lost its place
            if (workers.compile(request_for(512)).object.empty()) return 1;
          return calls == 1 && events->count("worker_unavailable") == 2 && events->count("log_threw") == 1 ? 0 : 2;
        }) == ChildEnd{0, 0});
}

} // namespace workers_tests
