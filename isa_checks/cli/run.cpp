// Choosing the subcommand, parsing, and turning every error into one line and an exit code.
#include "isa_checks/cli/run.h"
#include "isa_checks/cli/command.h"
#include "isa_checks/cli/terminal.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace kiln::isa::cli {
namespace {

constexpr std::pair<std::string_view, MakeCommand*> commands[] = {
    {"lint", make_lint}, {"explain", make_explain}, {"facts", make_facts}, {"diff", make_diff}, {"show", make_show}};

// `isa_lint FILE` is `isa_lint lint FILE`; a file that is called like a command is reached by ./NAME.
std::unique_ptr<Command> choose(std::vector<std::string>& arguments) {
  for (const auto& [name, make] : commands)
    if (!arguments.empty() && arguments.front() == name) {
      arguments.erase(arguments.begin());
      return make();
    }
  return make_lint();
}

int parse_and_run(std::vector<std::string> arguments, Streams& streams) {
  const std::unique_ptr<Command> command = choose(arguments);
  try {
    std::ranges::reverse(arguments); // as CLI11 takes them
    command->app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) { // --help, --version
      command->app.exit(error, streams.out, streams.err);
      return clean;
    }
    throw Error("command line", error.what(), "isa_lint --help says what there is");
  }
  return command->run(streams);
}

} // namespace

int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err, bool colour) {
  Streams streams{out, err, colour};
  try {
    return parse_and_run(arguments, streams);
  } catch (const Error& error) {
    err << "error: " << printable(error.what()) << '\n';
  } catch (const std::bad_alloc&) {
    err << "error: isa_lint: there is no memory left; give fewer or smaller files at once\n";
  } catch (const std::exception& error) {
    err << "error: internal: " << error.what() << "; please report it with the input\n";
  }
  return unusable;
}

} // namespace kiln::isa::cli
