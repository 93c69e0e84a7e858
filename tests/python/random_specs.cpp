// The texts of random specs, one behind the other with a line "---" between, for the tests that write them again in Python.
//   kiln_random_specs FIRST COUNT
#include "gen/spec/characters.h"
#include "tests/fuzz/spec_generator.h"
#include <cstdio>

int main(int argc, char** argv) {
  std::uint64_t first = 0, count = 0;
  if (argc != 3 || !kiln::read_whole(argv[1], first) || !kiln::read_whole(argv[2], count))
    return std::fputs("usage: kiln_random_specs FIRST COUNT, two numbers from 0\n", stderr), 2;
  for (std::uint64_t seed = first; seed < first + count; ++seed) std::printf("%s---\n", kiln::to_text(kiln::random_spec(seed)).c_str());
}
