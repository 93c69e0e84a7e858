// The three kinds of error: what the user did, what the environment did, and bugs.
#pragma once
#include <stdexcept>
#include <string>

namespace kiln {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Why something is not done, as an answer to a question: subject, fact with numbers, remedy.
struct Refusal {
  std::string subject, fact, remedy;
};

// What the user did. what() is "subject: fact; remedy".
struct UserError : Error {
  UserError(std::string subject, std::string fact, std::string remedy);
  explicit UserError(const Refusal& r) : UserError(r.subject, r.fact, r.remedy) {}
  std::string subject, fact, remedy;
};

// What the environment did: a missing library, a compiler failure, a full disk. `log` is the tool's own words, `path`
// a file to look at (the dumped source), either may be empty. what() has all of them, each once: the log in lines of its own.
struct EnvironmentError : Error {
  EnvironmentError(std::string subject, std::string fact, std::string remedy, std::string log = {}, std::string path = {});
  std::string subject, fact, remedy, log, path;
};

// A bug in Kiln.
struct InternalError : Error {
  explicit InternalError(const std::string& what); // "internal: ...; please report"
};

} // namespace kiln
