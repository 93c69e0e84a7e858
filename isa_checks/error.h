// The error of isa_checks: an input that cannot be read, or a request that cannot be met.
#pragma once
#include <stdexcept>
#include <string>

namespace kiln::isa {

// Subject, fact (with numbers), remedy. what() is "subject: fact; remedy". Findings about a kernel are data, never
// errors.
struct Error : std::runtime_error {
  Error(std::string subject, std::string fact, std::string remedy);
  std::string subject, fact, remedy;
};

// A well-formed code object of an architecture that the target table does not know, so that a tool may count and skip
// it.
struct UnknownArch : Error {
  using Error::Error;
};

} // namespace kiln::isa
