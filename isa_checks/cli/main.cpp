// isa_lint: what the compiler really produced. docs/isa_lint.md says how to use it.
#include "isa_checks/cli/run.h"
#include "isa_checks/cli/terminal.h"
#include <csignal>
#include <iostream>
#include <unistd.h>

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL); // `isa_lint ... | head` ends quietly
  std::ios::sync_with_stdio(false);
  const int code =
      kiln::isa::cli::run({argv + 1, argv + argc}, std::cout, std::cerr, kiln::isa::cli::wants_colour(STDOUT_FILENO));
  std::cout.flush();
  if (std::cout) return code;
  std::cerr << "error: standard output: it cannot be written; check the disk\n";
  return 2;
}
