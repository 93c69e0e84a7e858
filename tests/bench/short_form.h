// The short form of a benchmark, which ctest runs: `--short` as the first argument.
#pragma once
#include <string_view>

namespace kiln {

// Takes `--short` from the arguments and says whether it was there. The short form does some of the work, in seconds at most, and judges
// no time: a machine that runs tests is busy. Bounds of counts hold as ever.
inline bool take_short_form(int& argc, char**& argv) {
  if (argc < 2 || std::string_view(argv[1]) != "--short") return false;
  argv[1] = argv[0];
  --argc, ++argv;
  return true;
}

} // namespace kiln
