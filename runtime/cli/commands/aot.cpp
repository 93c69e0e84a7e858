// kiln aot: the kernels of a manifest, compiled into a cache.
#include "runtime/aot/aot_command.h"
#include "runtime/cli/command.h"

namespace kiln::cli {

Command make_aot(CLI::App& root) {
  CLI::App* app = root.add_subcommand("aot", "Compile the kernels of a manifest ahead of time, into a cache");
  const auto command = add_aot_options(*app, true);
  return {app, [command] { return run_aot_command(*command, {"kiln", "aot"}, {}); }};
}

} // namespace kiln::cli
