// Arguments of benchmarks: `--short`, and how often to measure.
#pragma once
#include "gen/spec/characters.h"
#include <filesystem>
#include <fmt/ranges.h>
#include <optional>
#include <string_view>

namespace kiln {

// Takes `--short` from the arguments and says whether it was there: ctest runs this form. It does some of the work, in seconds at most, and
// judges no time: a machine that runs tests is busy. Bounds of counts hold as ever.
inline bool take_short_form(int& argc, char**& argv) {
  if (argc < 2 || std::string_view(argv[1]) != "--short") return false;
  argv[1] = argv[0];
  --argc, ++argv;
  return true;
}

// The one argument, a number of `things` from `least`; `usual` without it. None, after an error was printed: it is something else.
inline std::optional<int> count_argument(int argc, char** argv, std::string_view things, int usual, int least = 1) {
  int count = usual;
  if (argc < 2 || (argc == 2 && read_whole(argv[1], count) && count >= least)) return count;
  fmt::print(stderr, "error: {}: '{}' is not one number from {}; usage: {} [NUMBER]\n", things, fmt::join(argv + 1, argv + argc, " "),
             least, std::filesystem::path(argv[0]).filename().string());
  return std::nullopt;
}

} // namespace kiln
