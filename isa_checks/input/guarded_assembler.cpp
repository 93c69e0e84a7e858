// The assembler in a child process.
#include "isa_checks/input/guarded_assembler.h"
#include "isa_checks/decode/assembler.h"
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/error.h"
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::isa {
namespace {

constexpr rlim_t max_memory = rlim_t{768} << 20;    // bytes on top of what the process has mapped already
constexpr std::chrono::seconds longest_silence{60}; // of a child that neither works nor ends
constexpr std::size_t largest_answer = std::size_t{512} << 20;

// What comes through the pipe: one byte that says which, then the object, or subject, fact and remedy with a zero after each.
constexpr std::uint8_t answer_object = 'O', answer_error = 'E';

std::uint64_t mapped_bytes() {
  std::uint64_t pages = 0;
  if (FILE* const file = std::fopen("/proc/self/statm", "re")) {
    unsigned long long first = 0;
    if (std::fscanf(file, "%llu", &first) == 1) pages = first;
    std::fclose(file);
  }
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void write_all(int to, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = write(to, at, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) _exit(3); // the parent is gone
    at += done;
    size -= static_cast<std::size_t>(done);
  }
}

// With AddressSanitizer, address space says nothing about memory: its shadow alone is terabytes.
constexpr bool limits_address_space =
#if defined(__SANITIZE_ADDRESS__)
    false;
#else
    true;
#endif

constexpr rlim_t max_seconds = limits_address_space ? 20 : 4; // of processor time, which alone bounds memory in the second case

void set_limits(std::uint64_t mapped) {
  const auto limit = [](auto resource, rlim_t value) {
    const rlimit both{value, value};
    setrlimit(resource, &both);
  };
  if (limits_address_space) limit(RLIMIT_AS, mapped + max_memory);
  limit(RLIMIT_CPU, max_seconds);
  limit(RLIMIT_CORE, 0);
}

// Ends the child whatever happens; nothing of the parent's is flushed or unwound.
[[noreturn]] void child(int to, std::string_view text, const AssembleOptions& options, const TargetFacts& target, const std::string& name) {
  try {
    const Bytes object = assemble(text, target, name, options);
    write_all(to, &answer_object, 1);
    write_all(to, object.data(), object.size());
    _exit(0);
  } catch (const Error& error) {
    write_all(to, &answer_error, 1);
    for (const std::string* part : {&error.subject, &error.fact, &error.remedy}) write_all(to, part->c_str(), part->size() + 1);
    _exit(1);
  } catch (...) { // no memory
    _exit(2);
  }
}

// Until the child closes its end. False when it was silent for too long.
bool collect(int from, Bytes& answer) {
  std::array<std::uint8_t, 64 * 1024> piece;
  for (;;) {
    pollfd wait{from, POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(longest_silence).count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || answer.size() > largest_answer) return false;
    const ssize_t got = read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    answer.insert(answer.end(), piece.begin(), piece.begin() + got);
  }
}

[[noreturn]] void rethrow(const Bytes& answer, int status, const std::string& name, std::string_view arch) {
  if (!answer.empty() && answer[0] == answer_error) {
    std::array<std::string, 3> parts;
    std::size_t at = 1;
    for (std::string& part : parts) {
      const char* const begin = reinterpret_cast<const char*>(answer.data()) + at;
      part.assign(begin, strnlen(begin, answer.size() - at));
      at = std::min(at + part.size() + 1, answer.size());
    }
    throw Error(parts[0], parts[1], parts[2]);
  }
  const bool too_long = WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
  const bool no_memory = WIFEXITED(status) && WEXITSTATUS(status) == 2;
  throw Error(name,
              fmt::format("LLVM's assembler for {} {}", arch,
                          too_long    ? fmt::format("took more than {} s", max_seconds)
                          : no_memory ? fmt::format("needs more than {} MiB", max_memory >> 20)
                                      : std::string("gave up on it without a message")),
              "assemble it with clang and give the object");
}

} // namespace

Bytes assemble_guarded(std::string_view text, std::string_view target_id, const std::string& name) {
  const std::string_view arch = target_id.substr(0, target_id.find(':'));
  const TargetFacts& target = target_facts(arch);
  const AssembleOptions options{.features = std::string(target_id.substr(arch.size())), .line_tables = true};
  const Disassembler back_end(target); // LLVM's registries are filled before the fork, when no other thread can be inside
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Error(name, std::string("no pipe: ") + std::strerror(errno), "close other programs");
  const std::uint64_t mapped = mapped_bytes();
  const pid_t process = fork();
  if (process == 0) {
    set_limits(mapped);
    const int silent = open("/dev/null", O_WRONLY | O_CLOEXEC); // what LLVM says when it gives up is not for the user
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
      if (silent >= 0) dup2(silent, stream);
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGXCPU, SIGTERM})
      std::signal(signal, SIG_DFL); // what the program does on its own death is not for the child's
    child(ends[1], text, options, target, name);
  }
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    throw Error(name, std::string("no process for the assembler: ") + std::strerror(errno), "close other programs");
  }
  Bytes answer;
  if (!collect(ends[0], answer)) kill(process, SIGKILL);
  close(ends[0]);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {}
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) rethrow(answer, status, name, arch);
  answer.erase(answer.begin());
  return answer;
}

} // namespace kiln::isa
