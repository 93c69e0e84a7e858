// Environment: every setting that Kiln takes from environment variables. The one place that reads them.
#pragma once
#include "runtime/url.h"
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

enum class CompilerKind : std::uint8_t { hiprtc, comgr };
std::string_view to_string(CompilerKind kind); // "hiprtc", "comgr"

struct Environment {
  CompilerKind compiler = CompilerKind::hiprtc; // KILN_COMPILER
  std::string hiprtc_path;                      // KILN_HIPRTC_PATH; empty: searched for
  std::string comgr_path;                       // KILN_COMGR_PATH; empty: searched for
  std::filesystem::path dump_dir;               // KILN_DUMP_DIR; see dump_folder
  bool save_temps = false;                      // KILN_SAVE_TEMPS
  bool line_tables = false;                     // KILN_LINE_TABLES: -gline-tables-only, by #line. A part of cache keys

  bool preload_arguments = true; // KILN_PRELOAD_ARGUMENTS, as own_process_options and jit_options take it

  // What of other programs' variables changes the code that comes out, or which library is found: parts of cache keys.
  std::vector<std::string> compiler_variables; // sorted "NAME=value" of may_change_code
  std::string library_path, preload;           // LD_LIBRARY_PATH and LD_PRELOAD: which libraries the loader takes
  std::string program_path;                    // PATH

  std::filesystem::path cache_dir;                 // KILN_CACHE_DIR; empty: none can be found
  std::vector<std::filesystem::path> cache_layers; // KILN_CACHE_LAYERS, read-only
  std::uint64_t cache_max_bytes = 1u << 30;        // KILN_CACHE_MAX_MB
  bool cache_trust_shared = false;                 // KILN_CACHE_TRUST_SHARED
  std::filesystem::path cache_public_key;          // KILN_CACHE_PUBLIC_KEY; empty: no signatures are asked for
  Url cache_url;                                   // KILN_CACHE_URL
  bool cache_url_insecure = false;                 // KILN_CACHE_URL_INSECURE
  bool cache_url_write = false;                    // KILN_CACHE_URL_WRITE
  std::filesystem::path cache_url_ca;              // KILN_CACHE_URL_CA; empty: the authorities that libcurl trusts
  std::string policy = "jit";                      // KILN_JIT_POLICY: jit, cache_only, record
  std::filesystem::path manifest;                  // KILN_JIT_MANIFEST, of the policies record and cache_only
  std::vector<std::filesystem::path> tuning;       // KILN_TUNING: tables of measured schedules
  std::string chip;                                // KILN_CHIP, that tables are read for; empty: the largest of the architecture
  bool batch_invariant = false;                    // KILN_BATCH_INVARIANT, as jit_options and commands take it
  std::filesystem::path tuning_misses;             // KILN_TUNING_MISSES: a manifest of what no table has; empty: none is kept
  std::filesystem::path worker;                    // KILN_WORKER; empty: searched for
  int jobs = 0;                                    // KILN_JOBS; 0: one for each processor
  std::string hip_path;                            // KILN_HIP_PATH; empty: searched for
  std::string roctx;                               // KILN_ROCTX; empty: nothing is marked. As Markers takes it
  std::string device = "hip:0";                    // KILN_DEVICE: hip:ORDINAL or emulated:ARCH

  bool operator==(const Environment&) const = default;
};

// Says where dumps go: environment.dump_dir, or kiln-UID in /tmp when that is empty.
std::filesystem::path dump_folder(const Environment& environment);

// Whether a variable of another program is part of cache keys: those that comgr, hipRTC and clang read, but for those that
// were shown to change no byte (tests/compile/variables.cpp compiles with each).
bool may_change_code(std::string_view variable);
std::span<const std::string_view> harmless_variables(); // shown to change nothing

// The value of one variable, or nothing when it is not set.
using VariableLookup = std::function<std::optional<std::string>(std::string_view name)>;

// Checks every value; throws UserError that names the variable, its value and the allowed ones.
// An empty value is the same as none.
Environment parse_environment(const VariableLookup& lookup);
Environment process_environment();                     // parse_environment of this process
std::vector<std::string> process_compiler_variables(); // Environment::compiler_variables, of this process
// All variables of this process as "NAME=value", for a process that shall compile as `environment` says: what keys hold of other
// programs' variables (compiler_variables, library_path, preload) is as `environment` has it, whatever this process has by now.
std::vector<std::string> process_variables(const Environment& environment);
VariableLookup process_lookup(); // of this process, for what other programs' variables say (kiln doctor)

// One row of the documented table, with what `environment` holds.
struct VariableInfo {
  std::string name, values, fallback, current, meaning;
};
std::vector<VariableInfo> describe(const Environment& environment);

// Names of set variables that start with KILN_ and mean nothing to Kiln: most likely typing mistakes.
std::vector<std::string> unknown_variables();

} // namespace kiln
