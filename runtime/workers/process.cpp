// WorkerProcess: spawns a worker and talks with it.
#include "runtime/workers/process.h"
#include "gen/error.h"
#include "runtime/workers/compile_job.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln {
namespace {

constexpr std::chrono::seconds start_limit{20}; // loading LLVM from a cold disk takes seconds
constexpr off_t output_tail = 16384;            // bytes

[[noreturn]] void fail(const std::filesystem::path& program, const std::string& fact, const std::string& log = {}) {
  throw EnvironmentError("worker process", fmt::format("{}: {}", program.string(), fact),
                         "set KILN_WORKER to the kiln-worker that was installed with this Kiln", log);
}

constexpr auto waitid_pidfd = static_cast<idtype_t>(3); // P_PIDFD, which older C libraries do not name

// The same file under a number that the worker's standard streams do not overwrite: a daemon may have closed its own.
FileDescriptor above_standard(const FileDescriptor& file) { return FileDescriptor(fcntl(file.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1)); }

struct SpawnSettings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
};

} // namespace

WorkerProcess::WorkerProcess(const std::filesystem::path& program, std::span<const std::string> variables, std::uint64_t memory_limit) {
  start(program, variables, memory_limit);
  std::string greeting;
  const Received got = receive_message(socket_.get(), greeting, start_limit);
  if (got == Received::timed_out) fail(program, "said nothing for 20 s", end("said nothing").output);
  if (got == Received::closed) {
    const WorkerFailure failure = end("");
    fail(program, failure.fact + " at its start", failure.output);
  }
  if (greeting != worker_greeting()) {
    end("is of another Kiln");
    fail(program, "is of another version of Kiln");
  }
}

// Keeps from the compiler what the host has open, blocks or handles; a group of its own, since a Ctrl-C is the host's to handle.
void WorkerProcess::start(const std::filesystem::path& program, std::span<const std::string> variables, std::uint64_t memory_limit) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail(program, std::strerror(errno));
  socket_ = FileDescriptor(ends[0]);
  const FileDescriptor theirs = above_standard(FileDescriptor(ends[1]));
  output_ = above_standard(FileDescriptor(memfd_create("kiln-worker-output", MFD_CLOEXEC)));
  if (!theirs || !output_) fail(program, std::strerror(errno));
  fcntl(output_.get(), F_SETFL, O_APPEND);

  SpawnSettings spawn;
  posix_spawn_file_actions_adddup2(&spawn.files, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&spawn.files, output_.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&spawn.files, output_.get(), STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&spawn.files, STDERR_FILENO + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&spawn.attributes, &none);
  posix_spawnattr_setsigdefault(&spawn.attributes, &all);
  posix_spawnattr_setpgroup(&spawn.attributes, 0);
  posix_spawnattr_setflags(&spawn.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string path = program.string(), limit = std::to_string(memory_limit), owner = std::to_string(getpid());
  char* arguments[] = {path.data(), limit.data(), owner.data(), nullptr};
  std::vector<char*> environment;
  for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  const int error = posix_spawn(&pid_, path.c_str(), &spawn.files, &spawn.attributes, arguments, environment.data());
  if (error != 0) {
    pid_ = -1;
    fail(program, std::strerror(error));
  }
  // The number is the child's still: it has not even greeted.
  process_ = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0 && owner_.is_current()) end("is not needed any more");
}

std::string WorkerProcess::output() const {
  const off_t size = lseek(output_.get(), 0, SEEK_END), from = std::max<off_t>(0, size - output_tail);
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  const ssize_t got = pread(output_.get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return text;
}

// A pidfd becomes readable when its process ends, whoever reaps that. Without one (Linux before 5.3, some containers) the question
// is put to waitid, which knows children that nobody has reaped.
bool WorkerProcess::wait_until_gone(std::chrono::milliseconds limit) const {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int ms = std::max(0, static_cast<int>(left.count()));
    siginfo_t info{};
    pollfd watched{.fd = process_.get(), .events = POLLIN, .revents = 0};
    if (process_ ? poll(&watched, 1, ms) > 0
                 : waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0)
      return true;
    if (ms == 0) return false;
    if (!process_) usleep(1000);
  }
}

// Not by the number of a process that may have been reaped: it may be another's by now.
void WorkerProcess::stop() const {
  if (process_) syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  else if (!wait_until_gone(std::chrono::milliseconds(0))) kill(pid_, SIGKILL);
}

// How it ended, in words.
std::string WorkerProcess::reap() const {
  siginfo_t info{};
  const idtype_t kind = process_ ? waitid_pidfd : P_PID;
  while (waitid(kind, static_cast<id_t>(process_ ? process_.get() : pid_), &info, WEXITED) != 0)
    if (errno != EINTR) return "ended"; // the host has reaped it, or ignores SIGCHLD
  if (info.si_code == CLD_EXITED) return fmt::format("ended with exit code {}", info.si_status);
  return fmt::format("was ended by signal {} ({})", info.si_status, strsignal(info.si_status));
}

// A worker whose socket was closed by itself is dead or about to die: how it ended is worth a moment.
WorkerFailure WorkerProcess::end(const std::string& because) {
  using namespace std::chrono_literals;
  if (!because.empty() || !wait_until_gone(200ms)) stop();
  const std::string ending = reap();
  process_ = FileDescriptor();
  pid_ = -1;
  return {because.empty() ? ending : because, output()};
}

std::variant<std::string, WorkerFailure> WorkerProcess::ask(const std::string& request, std::chrono::milliseconds limit) {
  if (ftruncate(output_.get(), 0) != 0) return end(std::strerror(errno));
  if (!send_message(socket_.get(), request)) return end("");
  std::string answer;
  switch (receive_message(socket_.get(), answer, limit)) {
  case Received::message: return answer;
  case Received::timed_out: return end(fmt::format("took longer than the limit of {} ms and was ended", limit.count()));
  case Received::closed: break;
  }
  return end("");
}

bool WorkerProcess::alive() const { return pid_ > 0 && !wait_until_gone(std::chrono::milliseconds(0)); }

} // namespace kiln
