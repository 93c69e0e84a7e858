// aot_main: `kiln aot` and the programs that users make of their own specs: options, output, exit codes.
#pragma once
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kiln {

struct AotCommand; // the parsed options

// Adds the options of `kiln aot` to `app`; with a manifest as its argument if `takes_manifest`.
std::shared_ptr<AotCommand> add_aot_options(CLI::App& app, bool takes_manifest);

// The specs of a program, for one architecture.
using SpecList = std::function<std::vector<KernelSpec>(const Target& target)>;

// `invocation`: the words that start this command again ("kiln", "aot"). `specs` is empty when the manifest has them.
// Returns 0 when every kernel is in the output, 1 when one failed or was rejected, and throws the errors of gen/error.h.
int run_aot_command(const AotCommand& command, std::vector<std::string> invocation, const SpecList& specs);

// A whole program: kiln aot with specs written in C++ instead of a manifest. Never throws.
//   int main(int argc, char** argv) { return kiln::aot_main(argc, argv, my_specs); }
int aot_main(int argc, char** argv, const SpecList& specs);

} // namespace kiln

// The same as one line. `list`: a function that takes a const kiln::Target& and returns std::vector<kiln::KernelSpec>.
#define KILN_AOT_MAIN(list)                                                                                                                \
  int main(int argc, char** argv) { return kiln::aot_main(argc, argv, list); }
