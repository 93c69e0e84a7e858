// isa_lint: what the compiler really produced. docs/isa_lint.md says how to use it.
#include "isa_checks/cli/run.h"
#include "isa_checks/cli/terminal.h"
#include <csignal>
#include <iostream>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

int main(int argc, char** argv) {
#if defined(__GLIBC__)
  // A kernel's analysis is a few megabytes, made and gone in milliseconds: keep the pages instead of asking for them anew.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 128 << 20);
#endif
  std::signal(SIGPIPE, SIG_DFL); // `isa_lint ... | head` ends quietly
  std::ios::sync_with_stdio(false);
  const int code = kiln::isa::cli::run({argv + 1, argv + argc}, std::cout, std::cerr, kiln::isa::cli::wants_colour(STDOUT_FILENO));
  std::cout.flush();
  if (std::cout) return code;
  std::cerr << "error: standard output: it cannot be written; check the disk\n";
  return 2;
}
