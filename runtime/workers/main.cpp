// kiln-worker: compiles kernels for the process of Kiln that started it, and ends with it.
// Usage: kiln-worker MEMORY_LIMIT OWNER, with a socket as its standard input. It is no program for people.
#include "runtime/workers/compile_job.h"
#include "runtime/workers/message.h"
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace kiln;

std::uint64_t number(const char* text) {
  std::uint64_t value = 0;
  std::from_chars(text, text + std::strlen(text), value);
  return value;
}

// A compile cannot be interrupted, so a thread watches for the end of the owner, in two ways. The kernel closes the owner's socket
// when it ends, unless a child of it inherited the socket by fork(); the owner's pidfd becomes readable in any case.
// (PR_SET_PDEATHSIG would fire when the thread ends that started this process, which may be long before its process.)
void end_with_owner(pid_t owner) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, owner, 0)); // negative: poll leaves it out
  if (getppid() != owner) _exit(0);                                        // it ended before the number was looked up
  std::thread([process, owner] {
    pollfd watched[] = {{.fd = STDIN_FILENO, .events = POLLRDHUP, .revents = 0}, {.fd = process, .events = POLLIN, .revents = 0}};
    const int pause = process < 0 ? 1000 : -1; // ms; Linux before 5.3 is asked for the owner
    while (poll(watched, 2, pause) <= 0 && getppid() == owner) {}
    _exit(0);
  }).detach();
}

void limit_resources([[maybe_unused]] std::uint64_t memory) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
#ifndef KILN_SANITIZED // sanitizers reserve terabytes of address space
  if (memory != 0) {
    const rlimit limit{memory, memory};
    setrlimit(RLIMIT_AS, &limit);
  }
#endif
}

} // namespace

int main(int argc, char** argv) {
  struct stat input{};
  if (argc != 3 || fstat(STDIN_FILENO, &input) != 0 || !S_ISSOCK(input.st_mode)) {
    std::fprintf(stderr, "error: kiln-worker: it is started by Kiln, not by people; use kiln compile or kiln aot\n");
    return 2;
  }
  end_with_owner(static_cast<pid_t>(number(argv[2])));
  limit_resources(number(argv[1]));
  if (!send_message(STDIN_FILENO, worker_greeting())) return 0;
  std::string request;
  while (receive_message(STDIN_FILENO, request) == Received::message) {
    std::string answer;
    try {
      answer = answer_message(request_of(request));
    } catch (const std::exception& error) {
      answer = failure_message(error);
    }
    if (!send_message(STDIN_FILENO, answer)) break;
  }
  std::fflush(nullptr);
  _exit(0); // compilers have slow exit handlers, and nothing here is worth them
}
