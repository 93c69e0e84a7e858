// Inputs: the code objects in what a user names: files of every kind that holds AMD device code, and folders of them.
#pragma once
#include "isa_checks/error.h"
#include "isa_checks/object/elf_image.h"
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa {

struct InputOptions {
  // Architectures to read, by name; empty: all that the target table knows. Bundle entries of others are not extracted.
  std::vector<std::string> archs;
  // For assembly text that names no target of its own; "" makes such text an error.
  std::string assembly_arch;
};

// Called in the order of the files. None of these may throw Error but to end the whole.
struct InputVisitor {
  // A host program or library without device code; when empty, such an input is told to `failed`.
  std::function<void()> no_device_code = {};
  // An AMDGPU ELF file in memory; `name` says where it came from ("libx.so, bundle 3, gfx942").
  std::function<void(SharedBytes bytes, const std::string& name)> object;
  // A code object that was passed over: of another architecture ("gfx1100"), as a bundle's entry says.
  std::function<void(const std::string& arch)> skipped;
  // An input, or a part of one, that cannot be read; the next one follows.
  std::function<void(const Error& error)> failed;
};

// ELF code objects; offload bundles, plain and compressed, several in a row; host programs and libraries with
// .hip_fatbin; assembly text. Anything else is reported to `failed`. At most one code object is in memory at a time.
// `done` is told how far into the bytes the reading has come.
void read_input(const SharedBytes& bytes, const std::string& name, const InputOptions& options, const InputVisitor& visitor,
                const std::function<void(std::uint64_t)>& done = {});

// What stands for standard input among paths.
inline constexpr std::string_view standard_input = "-";

// Files and "-" as they are; folders as the sorted files under them that look like input by their first bytes or end in .s.
// `failed` is told of a path that does not exist, and of a folder that cannot be read or holds nothing to read; the other
// paths follow. Without it, the first of them is thrown.
std::vector<std::string> expand_paths(const std::vector<std::string>& paths, const std::function<void(const Error&)>& failed = {});

} // namespace kiln::isa
