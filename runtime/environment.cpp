// Environment: reads and checks the KILN_* variables.
#include "runtime/environment.h"
#include "gen/error.h"
#include "gen/spec/characters.h"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

extern char** environ;

namespace kiln {
namespace {

constexpr std::string_view hiprtc_search = "libhiprtc.so.7, .6 from the loader's path, then ROCM_PATH, HIP_PATH, /opt/rocm, /opt/rocm-*";
constexpr std::string_view hip_search =
    "the one that is loaded already, else libamdhip64.so.7, .6 from the loader's path, then ROCM_PATH, HIP_PATH, /opt/rocm, /opt/rocm-*";
constexpr std::string_view comgr_search = "libamd_comgr.so.3, .2 from the loader's path, then ROCM_PATH, HIP_PATH, /opt/rocm, /opt/rocm-*";

std::string value_of(const VariableLookup& lookup, std::string_view variable) { return lookup(variable).value_or(std::string()); }

CompilerKind parse_compiler(const std::string& value) {
  if (value.empty() || value == "hiprtc") return CompilerKind::hiprtc;
  if (value == "comgr") return CompilerKind::comgr;
  throw UserError("KILN_COMPILER", fmt::format("\"{}\" is not a compiler that Kiln knows", value),
                  "set it to hiprtc or comgr, or unset it");
}

bool parse_switch(std::string_view variable, const std::string& value, bool fallback = false) {
  if (value.empty()) return fallback;
  if (value == "0") return false;
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

// Those of the variables below that change no byte of any code object: comgr's cache, logs and timing.
constexpr std::string_view harmless[] = {"AMD_COMGR_CACHE",         "AMD_COMGR_CACHE_DIR",         "AMD_COMGR_CACHE_POLICY",
                                         "AMD_COMGR_REDIRECT_LOGS", "AMD_COMGR_EMIT_VERBOSE_LOGS", "AMD_COMGR_TIME_STATISTICS"};

// Read by comgr, hipRTC, clang's driver and LLVM.
constexpr std::string_view compiler_prefixes[] = {"AMD_COMGR_", "HIPRTC_", "CLANG_", "CCC_", "LLVM_"};
constexpr std::string_view compiler_names[] = {"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "SOURCE_DATE_EPOCH"};

std::vector<std::filesystem::path> parse_paths(std::string_view variable, std::string_view value) {
  std::vector<std::filesystem::path> paths;
  while (!value.empty()) {
    const std::size_t colon = std::min(value.find(':'), value.size());
    if (colon != 0) paths.emplace_back(parse_path(variable, std::string(value.substr(0, colon))));
    value.remove_prefix(std::min(colon + 1, value.size()));
  }
  return paths;
}

std::string joined(const std::vector<std::filesystem::path>& paths) {
  std::string text;
  for (const std::filesystem::path& path : paths) text += (text.empty() ? "" : ":") + path.string();
  return text;
}

std::uint64_t parse_number(std::string_view variable, const std::string& value, std::uint64_t fallback, std::uint64_t most) {
  if (value.empty()) return fallback;
  std::uint64_t number = 0;
  if (!read_whole(value, number) || number > most)
    throw UserError(std::string(variable), fmt::format("\"{}\" is no number from 0 to {}", value, most), "set it to one, or unset it");
  return number;
}

std::string parse_policy(const std::string& value) {
  if (value.empty()) return "jit";
  if (value == "jit" || value == "cache_only" || value == "record") return value;
  throw UserError("KILN_JIT_POLICY", fmt::format("\"{}\" is no policy", value), "set it to jit, cache_only or record, or unset it");
}

std::filesystem::path default_cache_dir(const VariableLookup& lookup) {
  const std::string cache = value_of(lookup, "XDG_CACHE_HOME"), home = value_of(lookup, "HOME");
  if (cache.starts_with('/')) return std::filesystem::path(cache) / "kiln" / "kernels";
  if (home.starts_with('/')) return std::filesystem::path(home) / ".cache" / "kiln" / "kernels";
  return {};
}

void parse_run_time(Environment& environment, const VariableLookup& lookup) {
  environment.library_path = value_of(lookup, "LD_LIBRARY_PATH");
  environment.preload = value_of(lookup, "LD_PRELOAD");
  environment.program_path = value_of(lookup, "PATH");
  environment.cache_dir = parse_path("KILN_CACHE_DIR", value_of(lookup, "KILN_CACHE_DIR"));
  if (environment.cache_dir.empty()) environment.cache_dir = default_cache_dir(lookup);
  environment.cache_layers = parse_paths("KILN_CACHE_LAYERS", value_of(lookup, "KILN_CACHE_LAYERS"));
  environment.cache_max_bytes = parse_number("KILN_CACHE_MAX_MB", value_of(lookup, "KILN_CACHE_MAX_MB"), 1024, 1u << 24) << 20;
  environment.cache_trust_shared = parse_switch("KILN_CACHE_TRUST_SHARED", value_of(lookup, "KILN_CACHE_TRUST_SHARED"));
  environment.cache_public_key = parse_path("KILN_CACHE_PUBLIC_KEY", value_of(lookup, "KILN_CACHE_PUBLIC_KEY"));
  environment.cache_url = Url(value_of(lookup, "KILN_CACHE_URL"));
  environment.cache_url_insecure = parse_switch("KILN_CACHE_URL_INSECURE", value_of(lookup, "KILN_CACHE_URL_INSECURE"));
  environment.cache_url_write = parse_switch("KILN_CACHE_URL_WRITE", value_of(lookup, "KILN_CACHE_URL_WRITE"));
  environment.cache_url_ca = parse_path("KILN_CACHE_URL_CA", value_of(lookup, "KILN_CACHE_URL_CA"));
  environment.policy = parse_policy(value_of(lookup, "KILN_JIT_POLICY"));
  environment.manifest = parse_path("KILN_JIT_MANIFEST", value_of(lookup, "KILN_JIT_MANIFEST"));
  if (environment.policy == "record" && environment.manifest.empty())
    throw UserError("KILN_JIT_POLICY", "the policy record needs a manifest to write to", "set KILN_JIT_MANIFEST to a file");
  environment.tuning = parse_paths("KILN_TUNING", value_of(lookup, "KILN_TUNING"));
  environment.chip = value_of(lookup, "KILN_CHIP");
  environment.batch_invariant = parse_switch("KILN_BATCH_INVARIANT", value_of(lookup, "KILN_BATCH_INVARIANT"));
  environment.tuning_misses = parse_path("KILN_TUNING_MISSES", value_of(lookup, "KILN_TUNING_MISSES"));
  environment.worker = parse_path("KILN_WORKER", value_of(lookup, "KILN_WORKER"));
  environment.jobs = static_cast<int>(parse_number("KILN_JOBS", value_of(lookup, "KILN_JOBS"), 0, 1024));
  environment.hip_path = parse_path("KILN_HIP_PATH", value_of(lookup, "KILN_HIP_PATH"));
  if (const std::string roctx = value_of(lookup, "KILN_ROCTX"); roctx != "0")
    environment.roctx = roctx == "1" ? roctx : parse_path("KILN_ROCTX", roctx);
  if (std::string device = value_of(lookup, "KILN_DEVICE"); !device.empty()) environment.device = std::move(device);
}

std::filesystem::path private_folder(const std::filesystem::path& temporary) { return temporary / fmt::format("kiln-{}", getuid()); }

} // namespace

bool may_change_code(std::string_view variable) {
  const bool read = std::ranges::any_of(compiler_prefixes, [&](std::string_view start) { return variable.starts_with(start); }) ||
                    std::ranges::find(compiler_names, variable) != std::end(compiler_names);
  return read && std::ranges::find(harmless, variable) == std::end(harmless);
}

std::span<const std::string_view> harmless_variables() { return harmless; }

std::string_view to_string(CompilerKind kind) { return kind == CompilerKind::hiprtc ? "hiprtc" : "comgr"; }

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
  environment.line_tables = parse_switch("KILN_LINE_TABLES", value_of(lookup, "KILN_LINE_TABLES"));
  environment.preload_arguments = parse_switch("KILN_PRELOAD_ARGUMENTS", value_of(lookup, "KILN_PRELOAD_ARGUMENTS"), true);
  parse_run_time(environment, lookup);
  return environment;
}

VariableLookup process_lookup() { return process_variable; }

Environment process_environment() {
  Environment environment = parse_environment(process_variable);
  environment.compiler_variables = process_compiler_variables();
  return environment;
}

std::vector<std::string> process_compiler_variables() {
  std::vector<std::string> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (const std::string_view text(*entry); may_change_code(text.substr(0, text.find('=')))) found.emplace_back(text);
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> process_variables(const Environment& environment) {
  const std::vector<std::string> replaced = process_compiler_variables();
  std::vector<std::string> variables = environment.compiler_variables;
  if (!environment.library_path.empty()) variables.push_back("LD_LIBRARY_PATH=" + environment.library_path);
  if (!environment.preload.empty()) variables.push_back("LD_PRELOAD=" + environment.preload);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("LD_LIBRARY_PATH=") && !std::string_view(*entry).starts_with("LD_PRELOAD=") &&
        std::ranges::find(replaced, *entry) == replaced.end())
      variables.emplace_back(*entry);
  return variables;
}

std::vector<VariableInfo> describe(const Environment& environment) {
  const auto path = [](const std::string& value) { return value.empty() ? std::string("searched for") : value; };
  return {
      {"KILN_COMPILER", "hiprtc | comgr", "hiprtc", std::string(to_string(environment.compiler)),
       "the library that turns HIP text into a code object"},
      {"KILN_HIPRTC_PATH", "file", std::string(hiprtc_search), path(environment.hiprtc_path), "the hipRTC to load"},
      {"KILN_COMGR_PATH", "file", std::string(comgr_search), path(environment.comgr_path), "the comgr to load when KILN_COMPILER=comgr"},
      {"KILN_DUMP_DIR", "folder", "kiln-UID in TMPDIR or /tmp", dump_folder(environment).string(),
       "where the source of a kernel that did not compile is left"},
      {"KILN_SAVE_TEMPS", "0 | 1", "0", environment.save_temps ? "1" : "0",
       "1: leave source, options and code object of every compile in KILN_DUMP_DIR"},
      {"KILN_LINE_TABLES", "0 | 1", "0", environment.line_tables ? "1" : "0",
       "1: code objects say which line of the spec an instruction computes"},
      {"KILN_PRELOAD_ARGUMENTS", "0 | 1", "1", environment.preload_arguments ? "1" : "0",
       "0: kernels load their arguments; other entries of the cache"},
      {"KILN_CACHE_DIR", "folder", "kiln/kernels in XDG_CACHE_HOME or ~/.cache", environment.cache_dir.string(), "the kernel cache"},
      {"KILN_CACHE_LAYERS", "folder:folder:...", "none", joined(environment.cache_layers),
       "caches that are only read, as kiln aot makes them"},
      {"KILN_CACHE_MAX_MB", "number", "1024", std::to_string(environment.cache_max_bytes >> 20), "the most that KILN_CACHE_DIR may hold"},
      {"KILN_CACHE_TRUST_SHARED", "0 | 1", "0", environment.cache_trust_shared ? "1" : "0",
       "1: use cache folders that others may write to, and what they put there"},
      {"KILN_CACHE_PUBLIC_KEY", "file", "none", environment.cache_public_key.string(),
       "Ed25519 keys in PEM; layers, the remote and imports give only what one of them signed (kiln cache sign)"},
      {"KILN_CACHE_URL", "https://HOST/PATH", "none", environment.cache_url.shown(), "a remote cache (GET and PUT of /ac/ and /cas/)"},
      {"KILN_CACHE_URL_INSECURE", "0 | 1", "0", environment.cache_url_insecure ? "1" : "0", "1: take a remote over http:// too"},
      {"KILN_CACHE_URL_WRITE", "0 | 1", "0", environment.cache_url_write ? "1" : "0", "1: upload what was compiled"},
      {"KILN_CACHE_URL_CA", "file", "those that libcurl trusts", environment.cache_url_ca.string(),
       "certificates in PEM of the authorities that may vouch for the remote cache, and no others"},
      {"KILN_JIT_POLICY", "jit | cache_only | record", "jit", environment.policy, "what to do on a cache miss"},
      {"KILN_JIT_MANIFEST", "file", "none", environment.manifest.string(),
       "where the policies record and cache_only write what was missing"},
      {"KILN_TUNING", "file:file:...", "none", joined(environment.tuning), "tables of schedules, as kiln tune makes them"},
      {"KILN_TUNING_MISSES", "file", "none", environment.tuning_misses.string(), "a manifest of the kernels that no such table has"},
      {"KILN_CHIP", "chip", "what the device says, else the largest of the architecture", environment.chip,
       "the chip of devices whose name says none: schedules are made for it, and its entries of such tables are used"},
      {"KILN_BATCH_INVARIANT", "0 | 1", "0", environment.batch_invariant ? "1" : "0",
       "1: the bits of a row depend on its own inputs alone, whatever else is in the batch (docs/batch_invariance.md)"},
      {"KILN_WORKER", "file", "kiln-worker beside the program, where Kiln was installed, or in PATH",
       environment.worker.empty() ? "searched for" : environment.worker.string(), "the program that compiles"},
      {"KILN_JOBS", "number", "one a processor", std::to_string(environment.jobs), "worker processes at once"},
      {"KILN_HIP_PATH", "file", std::string(hip_search), path(environment.hip_path), "the HIP runtime to load"},
      {"KILN_ROCTX", "0 | 1 | file", "0", environment.roctx.empty() ? "0" : environment.roctx,
       "1: name compiles, loads and launches on a profiler's time line; a file: by this roctx library"},
      {"KILN_DEVICE", "hip:ORDINAL | emulated:ARCH", "hip:0", environment.device, "the device of programs that name none"},
  };
}

std::vector<std::string> unknown_variables() {
  const std::vector<VariableInfo> known = describe(Environment{});
  std::vector<std::string> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view variable = text.substr(0, text.find('='));
    const bool is_known = std::ranges::any_of(known, [&](const VariableInfo& info) { return info.name == variable; });
    const bool of_others = variable.starts_with("KILN_DEV_") || variable == "KILN_C_LIBRARY"; // read by ./dev, and by Python's kiln
    if (variable.starts_with("KILN_") && !is_known && !of_others) unknown.emplace_back(variable);
  }
  std::ranges::sort(unknown);
  return unknown;
}

} // namespace kiln
