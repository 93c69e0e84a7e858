// The error of isa_checks: an input that cannot be read, or a request that cannot be met.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

namespace kiln::isa {

// Subject, fact (with numbers), remedy. what() is "subject: fact; remedy". Findings about a kernel are data, never
// errors.
struct Error : std::runtime_error {
  Error(std::string subject_, std::string fact_, std::string remedy_)
      : std::runtime_error(subject_ + ": " + fact_ + "; " + remedy_), subject(std::move(subject_)), fact(std::move(fact_)),
        remedy(std::move(remedy_)) {}
  std::string subject, fact, remedy;
};

// A well-formed code object of an architecture that the target table does not know, so that a tool may count and skip
// it.
struct UnknownArch : Error {
  using Error::Error;
};

} // namespace kiln::isa
