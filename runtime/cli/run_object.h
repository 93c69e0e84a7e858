// RunObject: executes a kernel of any code object on the CPU, with arguments from the command line.
#pragma once
#include "isa_checks/exec/run/execute.h"
#include "runtime/cli/kernel_choice.h"
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kiln::cli {

struct ObjectRun {
  std::string object, kernel;
  std::vector<std::uint32_t> grid;    // workgroups, 1 to 3 numbers
  std::vector<std::uint32_t> block;   // work items of a workgroup, 1 to 3 numbers
  std::uint32_t dynamic_lds = 0;      // bytes
  std::vector<std::string> arguments; // in order: NAME=FILE, i32:N, i64:N, f32:X, words:N,N,..., zeros:BYTES, out:BYTES:FILE
};

// What a command launches: a spec, or a kernel of a code object.
void add_launched_options(CLI::App& app, KernelChoice& choice, ObjectRun& object);
// Which of the two was given. Throws UserError when neither or both were, or options of the other one.
bool is_object(const std::string& command, const KernelChoice& choice, const ObjectRun& object);

// A launch that is ready to be executed.
struct ObjectLaunch {
  isa::CodeObject object;
  std::string kernel;
  exec::Grid grid;
  exec::Memory memory;
  std::vector<std::byte> arguments;
  std::vector<std::pair<std::uint64_t, std::string>> files; // buffers by address, and where they go at the end
};
// Throws as run_object does.
ObjectLaunch prepare_object(const ObjectRun& request);

// Buffers of NAME=FILE and out: are written back to their files, unless the kernel did not complete. Throws UserError for an
// ill-formed argument or one that does not fit the kernel's metadata, isa::Error for an object or kernel that is not there.
exec::ExecResult run_object(const ObjectRun& request, const exec::ExecOptions& options);

} // namespace kiln::cli
