// Telling the kinds of input apart, and taking each one to its code objects.
#include "isa_checks/input/inputs.h"
#include "isa_checks/input/guarded_assembler.h"
#include "isa_checks/input/host_image.h"
#include "isa_checks/input/offload_bundle.h"
#include "isa_checks/target/target_table.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <set>

namespace kiln::isa {
namespace {

namespace fs = std::filesystem;
using View = std::span<const std::uint8_t>;

bool is_elf(View bytes) { return bytes.size() >= 4 && std::memcmp(bytes.data(), "\177ELF", 4) == 0; }

// Text that an assembler for AMD GPUs would be given, whatever its name.
bool is_assembly(View bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, 4096).find('\0') != text.npos) return false;
  return text.find(".amdgcn_target") != text.npos || text.find(".amdhsa_kernel") != text.npos;
}

// "gfx942:xnack-" out of `.amdgcn_target "amdgcn-amd-amdhsa--gfx942:xnack-"`; "" when there is none.
std::string_view named_target(std::string_view text) {
  const std::size_t at = text.find(".amdgcn_target");
  if (at == text.npos) return {};
  std::string_view line = text.substr(at, text.substr(at).find('\n'));
  const std::size_t begin = line.find("--gfx");
  if (begin == line.npos) return {};
  line.remove_prefix(begin + 2);
  return line.substr(0, line.find_first_of("\" \t\r"));
}

class InputReader {
public:
  InputReader(const InputOptions& options, const InputVisitor& visitor) : options_(options), visitor_(visitor) {}

  void read(const SharedBytes& file, const std::string& name, const std::function<void(std::uint64_t)>& done) {
    const View bytes = *file;
    if (is_bundle(bytes)) return bundles(bytes, name, 0, done);
    if (is_host_elf(bytes)) return host(bytes, name, done);
    if (is_elf(bytes)) return visitor_.object(file, name);
    if (is_assembly(bytes)) return assembly(bytes, name);
    throw Error(name, bytes.empty() ? "it is empty" : "it is no ELF file, no offload bundle and no AMD assembly text",
                "give a code object (.co, .hsaco, .o), an offload bundle, a program or library with device code, or a .s file");
  }

private:
  bool reads(std::string_view arch) const {
    return find_target(arch) && (options_.archs.empty() || std::ranges::find(options_.archs, arch) != options_.archs.end());
  }

  // Bundles in a row, with zeros between them up to the next page.
  void bundles(View bytes, const std::string& name, std::uint64_t base, const std::function<void(std::uint64_t)>& done) {
    std::uint64_t at = 0;
    for (int index = 0; at < bytes.size(); ++index) {
      const View rest = bytes.subspan(at);
      if (!is_bundle(rest))
        throw Error(name, fmt::format("after {} offload bundles, byte {} begins something else", index, base + at),
                    "check that it was copied whole");
      BundleVisitor visitor;
      visitor.wanted = [&](const BundleEntry& entry) {
        const bool wanted = reads(entry.arch);
        if (!wanted && !entry.id.starts_with("host")) visitor_.skipped(std::string(entry.arch.empty() ? entry.id : entry.arch));
        return wanted;
      };
      visitor.entry = [&](const BundleEntry& entry, Bytes object) {
        visitor_.object(std::move(object), fmt::format("{}, bundle {}, {}", name, index, short_id(entry)));
      };
      at += read_bundle(rest, fmt::format("{}, bundle {}", name, index), visitor);
      while (at < bytes.size() && bytes[at] == 0) ++at;
      if (done) done(base + at);
    }
  }

  static std::string_view short_id(const BundleEntry& entry) {
    return entry.arch.empty() ? entry.id : entry.id.substr(static_cast<std::size_t>(entry.arch.data() - entry.id.data()));
  }

  void host(View bytes, const std::string& name, const std::function<void(std::uint64_t)>& done) {
    const std::vector<FileRange> ranges = find_device_code(bytes, name);
    if (ranges.empty() && visitor_.no_device_code) return visitor_.no_device_code();
    if (ranges.empty())
      throw Error(name, "it is a host program or library without device code (it has no section .hip_fatbin)",
                  "give one that was built from HIP, or a code object");
    for (const FileRange& range : ranges) bundles(bytes.subspan(range.offset, range.size), name, range.offset, done);
  }

  void assembly(View bytes, const std::string& name) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::string_view id = named_target(text);
    if (id.empty()) id = options_.assembly_arch;
    if (id.empty())
      throw Error(name, "its assembly text has no .amdgcn_target",
                  fmt::format("say what it is for with --arch, one of {}", known_target_names()));
    const std::string_view arch = id.substr(0, id.find(':'));
    if (!reads(arch)) return visitor_.skipped(std::string(arch));
    visitor_.object(assemble_guarded(text, id, name), name);
  }

  const InputOptions& options_;
  const InputVisitor& visitor_;
};

bool looks_like_input(const fs::path& path) {
  if (path.extension() == ".s") return true;
  std::array<std::uint8_t, 64> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(head.data()), head.size());
  const View bytes(head.data(), static_cast<std::size_t>(file.gcount()));
  return is_bundle(bytes) || (is_elf(bytes) && !is_host_elf(bytes)) ||
         (is_host_elf(bytes) && path.extension() != ".o"); // host objects are parts of a program that is there as well
}

// A library lies in a folder once, with links of other versions' names beside it: those are left out.
void leave_out_links(std::vector<std::string>& files, std::size_t first) {
  std::set<std::string> real;
  const auto place = [](const std::string& file) {
    std::error_code error;
    const fs::path path = fs::canonical(file, error);
    return error ? file : path.string();
  };
  for (std::size_t n = first; n < files.size(); ++n)
    if (!fs::is_symlink(files[n])) real.insert(place(files[n]));
  const auto again = [&](const std::string& file) { return fs::is_symlink(file) && !real.insert(place(file)).second; };
  files.erase(std::remove_if(files.begin() + static_cast<std::ptrdiff_t>(first), files.end(), again), files.end());
}

void add_folder(const fs::path& folder, std::vector<std::string>& files) {
  const std::size_t before = files.size();
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end; !error && at != end;
       at.increment(error))
    if (at->is_regular_file(error) && looks_like_input(at->path())) files.push_back(at->path().string());
  std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  leave_out_links(files, before);
  if (error) throw Error(folder.string(), "the folder cannot be read: " + error.message(), "check its permissions");
  if (files.size() == before)
    throw Error(folder.string(), "the folder holds no file with device code",
                "give a folder of code objects, bundles, libraries or .s files");
}

void add_path(const std::string& path, std::vector<std::string>& files) {
  if (path == standard_input) return files.push_back(path);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw Error(path, "there is no such file or folder", "check the path");
  if (status.type() == fs::file_type::none)
    throw Error(path, "it cannot be reached: " + error.message(), "check the folders and links on its path");
  if (fs::is_directory(status)) add_folder(path, files);
  else files.push_back(path);
}

} // namespace

void read_input(const SharedBytes& bytes, const std::string& name, const InputOptions& options, const InputVisitor& visitor,
                const std::function<void(std::uint64_t)>& done) {
  try {
    InputReader(options, visitor).read(bytes, name, done);
  } catch (const Error& error) {
    visitor.failed(error);
  }
}

std::vector<std::string> expand_paths(const std::vector<std::string>& paths, const std::function<void(const Error&)>& failed) {
  std::vector<std::string> files;
  for (const std::string& path : paths) try {
      add_path(path, files);
    } catch (const Error& error) {
      if (!failed) throw;
      failed(error);
    }
  return files;
}

} // namespace kiln::isa
