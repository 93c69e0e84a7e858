// Runs the built `kiln` program and catches what it says.
#pragma once
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::test {

struct CliResult {
  int exit_code = -1; // -1: ended by a signal
  std::string out, err;
};

inline std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A folder of this test alone, gone at the end.
struct Scratch {
  std::filesystem::path path;
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kiln-test-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

// `arguments` and `variables` ("A=1 B=2") go through a shell: keep them plain.
inline CliResult kiln(const std::string& arguments, const std::string& variables = {}) {
  const Scratch scratch;
  const std::string out = (scratch.path / "out").string(), err = (scratch.path / "err").string();
  const std::string command =
      "cd " + scratch.path.string() + " && " + variables + " " + KILN_CLI + " " + arguments + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
}

} // namespace kiln::test
