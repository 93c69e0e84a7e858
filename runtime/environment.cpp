// Environment: reads and checks the KILN_* variables.
#include "runtime/environment.h"
#include "gen/error.h"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

extern char** environ;

namespace kiln {
namespace {

constexpr std::string_view hiprtc_search = "libhiprtc.so.7, .6 from the loader's path, then /opt/rocm/lib";
constexpr std::string_view comgr_search = "libamd_comgr.so.3, .2 from the loader's path, then /opt/rocm/lib";

std::string value_of(const VariableLookup& lookup, std::string_view variable) {
  return lookup(variable).value_or(std::string());
}

CompilerKind parse_compiler(const std::string& value) {
  if (value.empty() || value == "hiprtc") return CompilerKind::hiprtc;
  if (value == "comgr") return CompilerKind::comgr;
  throw UserError("KILN_COMPILER", fmt::format("\"{}\" is not a compiler that Kiln knows", value),
                  "set it to hiprtc or comgr, or unset it");
}

bool parse_switch(std::string_view variable, const std::string& value) {
  if (value.empty() || value == "0") return false;
  if (value == "1") return true;
  throw UserError(std::string(variable), fmt::format("\"{}\" is neither 0 nor 1", value), "set it to 0 or 1");
}

// Relative paths would mean another file after every chdir of the program that Kiln lives in.
std::string parse_path(std::string_view variable, const std::string& value) {
  if (value.empty() || value.front() == '/') return value;
  throw UserError(std::string(variable), fmt::format("\"{}\" is not an absolute path", value),
                  "write the path from the root, starting with /");
}

std::optional<std::string> process_variable(std::string_view variable) {
  const char* value = std::getenv(std::string(variable).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::filesystem::path private_folder(const std::filesystem::path& temporary) {
  return temporary / fmt::format("kiln-{}", getuid());
}

} // namespace

std::string_view name(CompilerKind kind) { return kind == CompilerKind::hiprtc ? "hiprtc" : "comgr"; }

std::filesystem::path dump_folder(const Environment& environment) {
  return environment.dump_dir.empty() ? private_folder("/tmp") : environment.dump_dir;
}

Environment parse_environment(const VariableLookup& lookup) {
  Environment environment;
  environment.compiler = parse_compiler(value_of(lookup, "KILN_COMPILER"));
  environment.hiprtc_path = parse_path("KILN_HIPRTC_PATH", value_of(lookup, "KILN_HIPRTC_PATH"));
  environment.comgr_path = parse_path("KILN_COMGR_PATH", value_of(lookup, "KILN_COMGR_PATH"));
  environment.dump_dir = parse_path("KILN_DUMP_DIR", value_of(lookup, "KILN_DUMP_DIR"));
  const std::string temporary = value_of(lookup, "TMPDIR");
  if (environment.dump_dir.empty() && temporary.starts_with('/')) environment.dump_dir = private_folder(temporary);
  environment.save_temps = parse_switch("KILN_SAVE_TEMPS", value_of(lookup, "KILN_SAVE_TEMPS"));
  return environment;
}

Environment process_environment() { return parse_environment(process_variable); }

std::vector<VariableInfo> describe(const Environment& environment) {
  const auto path = [](const std::string& value) { return value.empty() ? std::string("searched for") : value; };
  return {
      {"KILN_COMPILER", "hiprtc | comgr", "hiprtc", std::string(name(environment.compiler)),
       "the library that turns HIP text into a code object"},
      {"KILN_HIPRTC_PATH", "file", std::string(hiprtc_search), path(environment.hiprtc_path), "the hipRTC to load"},
      {"KILN_COMGR_PATH", "file", std::string(comgr_search), path(environment.comgr_path),
       "the comgr to load when KILN_COMPILER=comgr"},
      {"KILN_DUMP_DIR", "folder", "kiln-UID in TMPDIR or /tmp", dump_folder(environment).string(),
       "where the source of a kernel that did not compile is left"},
      {"KILN_SAVE_TEMPS", "0 | 1", "0", environment.save_temps ? "1" : "0",
       "1: leave source, options and code object of every compile in KILN_DUMP_DIR"},
  };
}

std::vector<std::string> unknown_variables() {
  const std::vector<VariableInfo> known = describe(Environment{});
  std::vector<std::string> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view variable = text.substr(0, text.find('='));
    const bool is_known = std::ranges::any_of(known, [&](const VariableInfo& info) { return info.name == variable; });
    const bool of_dev = variable.starts_with("KILN_DEV_"); // read by the script ./dev
    if (variable.starts_with("KILN_") && !is_known && !of_dev) unknown.emplace_back(variable);
  }
  std::ranges::sort(unknown);
  return unknown;
}

} // namespace kiln
