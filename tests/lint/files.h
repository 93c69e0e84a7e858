// Files for the tests of isa_lint, written here: bundles of every kind, host programs, folders.
#pragma once
#include "isa_checks/input/byte_source.h"
#include "isa_checks/object/elf_image.h"
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::isa::testing {

struct Entry {
  std::string id; // "hipv4-amdgcn-amd-amdhsa--gfx942"
  Bytes bytes;
};

// A plain offload bundle as clang-offload-bundler lays it out: entries aligned to 4096 bytes.
Bytes bundle(const std::vector<Entry>& entries);
// A compressed one. Version 1 to 3.
Bytes compressed(std::span<const std::uint8_t> content, int version, Compression method);
// A 64-bit x86 shared object. `sections` are (name, content); with `wrapper`, .hipFatBinSegment points at the first of them,
// by the pointer itself, or by a relative relocation when `relocated`.
Bytes host_file(const std::vector<std::pair<std::string, Bytes>>& sections, bool wrapper = false, bool relocated = false);
// Several in a row, each but the last padded to 4096 bytes.
Bytes in_a_row(const std::vector<Bytes>& parts);

// One kernel "k" that loads narrowly and drains in its loop; `name` may be another.
Bytes plain_object(std::string_view arch, std::string_view name = "k", std::string_view body = {});
std::string plain_text(std::string_view arch, std::string_view name = "k", std::string_view body = {}); // as assembly

// A folder of this test alone, gone at the end.
struct Folder {
  std::filesystem::path path;
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const std::string& name, std::string_view content) const; // returns the path
  std::string write(const std::string& name, const Bytes& content) const;
  static void write_to(const std::filesystem::path& folder, const std::string& name, const Bytes& content);
  std::string at(const std::string& name) const { return (path / name).string(); }
};
std::string contents(const std::string& path);

// isa_lint in this process.
struct Result {
  int exit_code = -1;
  std::string out, err;
};
Result isa_lint(const std::vector<std::string>& arguments);

} // namespace kiln::isa::testing
