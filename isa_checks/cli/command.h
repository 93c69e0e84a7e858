// Command: one subcommand of isa_lint. Each lives in a file of its own; run.cpp lists them.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

namespace kiln::isa::cli {

// Exit codes of isa_lint.
inline constexpr int clean = 0, found = 1, unusable = 2;

struct Streams {
  std::ostream &out, &err;
  bool colour = false; // `out` is a terminal that shows colours
};

// CLI11 2.5 and newer fold a footer's lines into a paragraph unless told otherwise.
template <class Formatter> void keep_lines(Formatter& formatter) {
  if constexpr (requires { formatter.enable_footer_formatting(false); }) formatter.enable_footer_formatting(false);
}

class Command {
public:
  Command(const std::string& usage, const std::string& description) : app(description, usage) {
    app.get_formatter()->column_width(34);
    keep_lines(*app.get_formatter());
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  virtual ~Command() = default;
  CLI::App app;
  virtual int run(Streams& streams) = 0; // after parsing; returns an exit code, throws Error
};

using MakeCommand = std::unique_ptr<Command>();
MakeCommand make_lint, make_explain, make_facts, make_diff, make_show;

} // namespace kiln::isa::cli
