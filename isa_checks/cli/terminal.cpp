// What isa_lint asks of the terminal; the one file of it that reads the environment.
#include "isa_checks/cli/terminal.h"
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>

namespace kiln::isa::cli {

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

bool wants_colour(int descriptor) {
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return is_terminal(descriptor) && (!no_colour || !*no_colour) && (!terminal || std::string_view(terminal) != "dumb");
}

std::string printable(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) c = '?';
  }
  return text;
}

std::string painted(bool colour, std::string_view code, std::string_view text) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string_view colour_of(Severity severity) {
  return severity == Severity::error ? "1;31" : severity == Severity::warning ? "1;33" : "1;36";
}

ProgressLine::ProgressLine() : on_(is_terminal(STDERR_FILENO)) {}

void ProgressLine::show(std::uint64_t done, std::uint64_t all, std::size_t kernels, std::size_t findings) {
  const auto now = std::chrono::steady_clock::now();
  if (!on_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  shown_ = true;
  const double share = all > 0 ? 100 * static_cast<double>(done) / static_cast<double>(all) : 100;
  fmt::print(stderr, "\r\x1b[K{:3.0f}% of {} MiB, {} kernels, {} findings", share, all >> 20, kernels, findings);
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (!shown_) return;
  shown_ = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

} // namespace kiln::isa::cli
