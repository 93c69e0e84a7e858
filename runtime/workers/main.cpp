// kiln-worker: compiles kernels for a process of Kiln that started it, until that process closes the socket or ends.
// Usage: kiln-worker MEMORY_LIMIT, with a socket as its standard input. It is no program for people.
#include "runtime/workers/compile_job.h"
#include <charconv>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace kiln;

// A compile cannot be interrupted, so a thread watches for the other end of the socket to be closed: by the kernel, when its
// process ends in whatever way. (PR_SET_PDEATHSIG would fire when the thread ends that started this process.)
void end_with_parent() {
  std::thread([] {
    pollfd other_end{.fd = STDIN_FILENO, .events = POLLRDHUP, .revents = 0};
    while (poll(&other_end, 1, -1) < 0) {
    }
    _exit(0);
  }).detach();
}

void limit_resources(const char* memory) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  std::uint64_t bytes = 0;
  std::from_chars(memory, memory + std::strlen(memory), bytes);
#ifndef KILN_SANITIZED // sanitizers reserve terabytes of address space
  if (bytes != 0) {
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
  }
#endif
}

} // namespace

int main(int argc, char** argv) {
  struct stat input {};
  if (argc != 2 || fstat(STDIN_FILENO, &input) != 0 || !S_ISSOCK(input.st_mode)) {
    std::fprintf(stderr, "error: kiln-worker: it is started by Kiln, not by people; use kiln compile or kiln aot\n");
    return 2;
  }
  end_with_parent();
  limit_resources(argv[1]);
  if (!send_message(STDIN_FILENO, worker_greeting())) return 0;
  Message request;
  while (receive_message(STDIN_FILENO, request) == Received::message) {
    Message answer;
    try {
      answer = answer_message(request_of(request));
    } catch (const std::exception& error) {
      answer = {"other", error.what()};
    }
    if (!send_message(STDIN_FILENO, answer)) break;
  }
  std::fflush(nullptr);
  _exit(0); // compilers have slow exit handlers, and nothing here is worth them
}
