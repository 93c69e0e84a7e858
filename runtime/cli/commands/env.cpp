// kiln env: the variables that Kiln reads, what they hold, and which compiler that makes.
#include "gen/error.h"
#include "gen/plan/target.h"
#include "runtime/cli/command.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/hiprtc.h"
#include "runtime/environment.h"
#include "runtime/table.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>

namespace kiln::cli {
namespace {

// What the chosen compiler is, or why there is none.
struct CompilerState {
  std::string identity, builtin_header, error;
};

CompilerState compiler_state(const Environment& environment) {
  CompilerState state;
  try {
    state.identity = compiler_identity(environment);
    if (environment.compiler == CompilerKind::hiprtc) {
      const bool replaced = honours_replaced_header(Hiprtc(environment.hiprtc_path), std::string(known_archs().front()));
      state.builtin_header = replaced ? "replaced" : "kept: this hipRTC takes no replacement, compiles cost 0.1 s more";
    }
  } catch (const EnvironmentError& error) {
    state.error = error.what();
  }
  return state;
}

void print_json(const Environment& environment, const CompilerState& state) {
  nlohmann::ordered_json document;
  for (const VariableInfo& row : describe(environment)) {
    document["variables"][row.name] = {{"values", row.values}, {"default", row.fallback}, {"now", row.current}, {"meaning", row.meaning}};
  }
  document["unknown_variables"] = unknown_variables();
  document["compiler"] = {{"identity", state.identity}, {"builtin_header", state.builtin_header}, {"error", state.error}};
  document["archs"] = known_archs();
  fmt::print("{}\n", document.dump(2));
}

void print_text(const Environment& environment, const CompilerState& state) {
  Table table{.header = {"VARIABLE", "VALUES", "NOW", "MEANING (DEFAULT)"}, .rows = {}};
  for (const VariableInfo& row : describe(environment))
    table.rows.push_back({row.name, row.values, row.current, fmt::format("{} ({})", row.meaning, row.fallback)});
  fmt::print("{}\n", to_text(table));
  if (state.error.empty()) fmt::print("compiler         {}\n", state.identity);
  if (!state.builtin_header.empty()) fmt::print("built-in header  {}\n", state.builtin_header);
  fmt::print("architectures    {}\n", fmt::join(known_archs(), ", "));
  for (const std::string& variable : unknown_variables())
    fmt::print(stderr, "warning: {}: Kiln knows no such variable; the table above has those it knows\n", variable);
  if (!state.error.empty()) fmt::print(stderr, "error: {}\n", state.error);
}

} // namespace

Command make_env(CLI::App& root) {
  CLI::App* app = root.add_subcommand("env", "Show the environment variables, their values, and the compiler they select");
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "Print one JSON document");
  return {app, [json] {
            const Environment environment = process_environment();
            const CompilerState state = compiler_state(environment);
            *json ? print_json(environment, state) : print_text(environment, state);
            return state.error.empty() ? ok : kernel_failed;
          }};
}

} // namespace kiln::cli
