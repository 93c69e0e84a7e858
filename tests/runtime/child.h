// A forked child of a test: how it ends, and which workers a process has.
#pragma once
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace kiln::test {

struct ChildEnd {
  int exit_code = -1, signal = 0; // one of them
  bool operator==(const ChildEnd&) const = default;
};
inline std::ostream& operator<<(std::ostream& stream, const ChildEnd& end) {
  return end.signal != 0 ? stream << "signal " << end.signal : stream << "exit code " << end.exit_code;
}

// Runs `body` in a child, whose exit code is what it returns, 98 for an exception; SIGALRM ends it after `seconds`.
template <class Body> ChildEnd in_child(const Body& body, unsigned seconds = 60) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    int code = 98;
    try {
      code = body();
    } catch (...) {}
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? ChildEnd{-1, WTERMSIG(status)} : ChildEnd{WEXITSTATUS(status), 0};
}

inline bool is_running(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  return std::getline(file, stat) && stat.find(") Z ") == std::string::npos && stat.find(") X ") == std::string::npos;
}

// Ends a child and waits until all of its threads have ended. Does not reap it.
inline void end_process(pid_t child) {
  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
}

// The kiln-workers that `parent` started and that still run.
inline std::vector<pid_t> workers_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    const std::size_t end = stat.rfind(')');
    if (end == std::string::npos || stat.find("(kiln-worker)") == std::string::npos) continue;
    char state = 0;
    pid_t of = 0;
    std::istringstream(stat.substr(end + 1)) >> state >> of;
    if (of == parent && state != 'Z' && state != 'X') found.push_back(std::stoi(name));
  }
  return found;
}

} // namespace kiln::test
