// Marks in emitted text: a control character and a number, which no text of a kernel has.
#include "gen/emit/line_marks.h"
#include <charconv>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr char mark = '\x1f';

} // namespace

std::string line_mark(int spec_line) { return spec_line > 0 ? fmt::format("{}{}", mark, spec_line) : std::string(); }

std::vector<SpecLine> take_line_marks(std::string& text) {
  std::vector<SpecLine> lines;
  std::string plain;
  int line = 1;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == mark) {
      int number = 0;
      const auto [end, error] = std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
      lines.push_back({.text_line = line, .spec_line = number});
      at = static_cast<std::size_t>(end - text.data()) - 1;
      continue;
    }
    plain += text[at];
    line += text[at] == '\n' ? 1 : 0;
  }
  text = std::move(plain);
  return lines;
}

} // namespace kiln
