// Terminal: whether somebody looks at a stream, and a line that shows how far the work is.
#pragma once
#include "isa_checks/verdict/finding.h"
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::isa::cli {

bool is_terminal(int descriptor);
// A terminal that understands colours, and NO_COLOR is not set (no-color.org).
bool wants_colour(int descriptor);

// Names in files may hold anything: control characters, which a terminal would obey, become "?". Line feeds and tabs stay.
std::string printable(std::string text);

// The text in the colours of an ECMA-48 code, "1;31", if `colour` is asked for; and the code of a finding.
std::string painted(bool colour, std::string_view code, std::string_view text);
std::string_view colour_of(Severity severity);

// One moving line on standard error, at most ten times a second; nothing at all when that is no terminal.
class ProgressLine {
public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(std::uint64_t done, std::uint64_t all, std::size_t kernels, std::size_t findings);
  void clear(); // before something else is printed

private:
  bool on_, shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

} // namespace kiln::isa::cli
