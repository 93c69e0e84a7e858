// compile: HIP text to a code object, through hipRTC or comgr.
#pragma once
#include "gen/emit/kernel_source.h"
#include "gen/plan/target.h"
#include "runtime/compile/compiler_library.h"
#include "runtime/environment.h"
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// Options of every kernel, for either library. hipRTC's own defaults come before these.
// -fno-slp-vectorize: the templates say what is packed; the vectoriser undoes fused mixed-precision products for it.
// -nogpulib: Kiln's headers use no device library, and linking them costs 12 ms per kernel (hipRTC 6.4).
inline constexpr std::array<std::string_view, 5> device_options{"-O3", "-std=c++20", "-ffp-contract=fast", "-fno-slp-vectorize",
                                                                "-nogpulib"};

// Loads kernel arguments into scalar registers before the first instruction (docs/hardware.md, "Preloaded arguments"), as many as fit:
// LLVM preloads arguments in order until one has no room. LLVM knows it as an option of the whole process alone.
inline constexpr std::string_view preload_option_name = "amdgpu-kernarg-preload-count";
inline constexpr std::string_view preload_option = "-amdgpu-kernarg-preload-count=16"; // after -mllvm

// What Environment::line_tables adds, for profilers and disassemblers. The instructions are the same (tests/compile/line_tables.cpp).
inline constexpr std::string_view line_tables_option = "-gline-tables-only";

struct CompileOptions {
  Environment environment;            // which library, where from, where dumps go
  bool warnings_as_errors = false;    // -Wall -Wextra -Werror
  bool replace_builtin_header = true; // hipRTC only; false costs a parse of 1 MB, for comparison
  // false: no packed f32 instructions, for a kernel whose code would have a faulty form of them (docs/rules/ERR001.md).
  bool packed_f32 = true;
  // Give preload_option to an LLVM that has it. While a compile with it runs, every other user of the same LLVM in the process gets
  // other code too, so it is for processes in which only Kiln compiles: workers and Kiln's own programs. A part of cache keys.
  bool preload_arguments = false;
};

// For a process in which only Kiln compiles.
CompileOptions own_process_options(const Environment& environment);

struct CodeObject {
  std::string name; // of the kernel
  std::string arch;
  std::vector<std::uint8_t> bytes;   // an AMDGPU ELF file
  std::string compiler;              // as compiler_identity says
  std::string llvm;                  // "clang version 21.1.8", as the code object says; empty when it does not
  double milliseconds = 0;           // wall time inside the compiler library
  std::vector<CompilerStage> stages; // that time, as far as the library lets one see it
  std::string log;                   // warnings
};

// Needs no GPU. `source.arch` is the architecture of `target`.
// Throws EnvironmentError: without the library (what was tried, what to install), and for a text that does not
// compile (the compiler's log, and the path of a folder with the source, its headers and a command that repeats it).
CodeObject compile(const KernelSource& source, const Target& target, const CompileOptions& options = {});

// The library that `environment` chooses with everything loaded that makes code, for cache keys and reports, and their files.
struct CompilerParts {
  // "hiprtc libhiprtc.so.6.4.43484 e5978e740817, libLLVM.so.21.1 0b6d9be2a4f7, libamd_comgr.so.3 c28ae02d0817": build ids
  std::string identity;
  std::vector<std::string> files; // paths
};
CompilerParts compiler_parts(const Environment& environment); // loads it; throws EnvironmentError
inline std::string compiler_identity(const Environment& environment) { return compiler_parts(environment).identity; }

// Options of the compiler for every kernel that is compiled so: a part of cache keys.
std::vector<std::string> compiler_options(const CompileOptions& options);

// The input of the library: the text, Kiln's device headers and all options.
CompilerInput compiler_input(const KernelSource& source, const Target& target, const CompileOptions& options);

} // namespace kiln
