// number_from: a number from an environment variable of the fuzzing, such as KILN_FUZZ_COUNT.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace kiln::testing {

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

} // namespace kiln::testing
