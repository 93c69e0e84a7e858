// Child processes of tests: forked, ended, and as other users.
#pragma once
#include <cstdio>
#include <grp.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::test {

// Runs `work` in a child and gives its id; the child ends with the exit code that `work` returns, 99 for an exception.
template <typename Work> pid_t start_child(const Work& work) {
  std::fflush(nullptr); // or a child that a sanitiser ends writes what is in the buffers once more
  const pid_t pid = fork();
  if (pid == 0) {
    try {
      _exit(work());
    } catch (...) {
      _exit(99);
    }
  }
  return pid;
}

// Its exit code, or -1 for a signal.
inline int wait_for(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

template <typename Work> int exit_code_of(const Work& work) { return wait_for(start_child(work)); }

// In a child with the rights of an unprivileged user; 77 where this process cannot become one.
template <typename Work> int as_user(uid_t user, gid_t member_of, mode_t mask, const Work& work) {
  return exit_code_of([&] {
    if (geteuid() != 0 || setgroups(1, &member_of) != 0 || setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) return 77;
    umask(mask);
    return work();
  });
}

} // namespace kiln::test
