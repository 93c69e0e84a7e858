// Which seeds and points a run takes: number_from reads a variable of the fuzzing, such as KILN_FUZZ_COUNT; swept_points those of a sweep.
#pragma once
#include "gen/spec/characters.h"
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::testing {

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  std::uint64_t number = 0;
  if (!read_whole(text, number))
    throw std::invalid_argument(std::string(variable) + ": \"" + text + "\" is no number; give 0 or more, in decimal");
  return number;
}

// The numbers, below `points`, that KILN_SWEEP_FIRST (0) and KILN_SWEEP_COUNT (8) choose; a count over `points` takes all. Neighbours in
// this order are far apart in the list, whose length is no multiple of 1009.
inline std::vector<std::uint64_t> swept_points(std::uint64_t points) {
  constexpr std::uint64_t stride = 1009; // a prime
  const std::uint64_t first = number_from("KILN_SWEEP_FIRST", 0), count = std::min(number_from("KILN_SWEEP_COUNT", 8), points);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = first; i < first + count; ++i) numbers.push_back(i * stride % points);
  return numbers;
}

} // namespace kiln::testing
