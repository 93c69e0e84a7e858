// The texts of random specs, one behind the other with a line "---" between, for the tests that write them again in Python.
//   kiln_random_specs FIRST COUNT
#include "tests/fuzz/spec_generator.h"
#include <cstdio>
#include <cstdlib>

int main(int count, char** arguments) {
  if (count != 3) return std::fputs("usage: kiln_random_specs FIRST COUNT\n", stderr), 2;
  const std::uint64_t first = std::strtoull(arguments[1], nullptr, 10), end = first + std::strtoull(arguments[2], nullptr, 10);
  for (std::uint64_t seed = first; seed < end; ++seed) std::printf("%s---\n", kiln::to_text(kiln::random_spec(seed)).c_str());
}
