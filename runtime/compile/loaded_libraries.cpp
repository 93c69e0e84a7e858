// Loaded libraries: the loader's list, their notes and their needs.
#include "runtime/compile/loaded_libraries.h"
#include "runtime/digest.h"
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <link.h>
#include <map>
#include <mutex>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace kiln {
namespace {

// What these are makes no difference to the code: none is asked what to emit. libm: LLVM folds calls of sin, exp and the like by
// it, and Kiln's headers call none of them (they name the device's instructions).
constexpr std::string_view no_makers[] = {"linux-vdso",
                                          "ld-linux",
                                          "libc.so",
                                          "libm.so",
                                          "libdl.so",
                                          "libpthread.so",
                                          "librt.so",
                                          "libgcc_s",
                                          "libstdc++",
                                          "libc++",
                                          "libatomic",
                                          "libz.so",
                                          "libzstd",
                                          "liblzma",
                                          "libxml2",
                                          "libicu",
                                          "libedit",
                                          "libncurses",
                                          "libtinfo",
                                          "libbsd",
                                          "libmd.so",
                                          "libffi",
                                          "libz3",
                                          "libnuma",
                                          "libelf",
                                          "libdrm",
                                          "libasan",
                                          "libubsan",
                                          "libtsan",
                                          "libamdhip64",
                                          "libhsa-runtime64",
                                          "librocprofiler-register"};

// One of the loader's list, as raw as it is there.
struct Raw {
  std::string file; // as the loader has it; empty: the program
  std::string soname, build_id;
  std::vector<std::string> needed;
  std::string name() const { return file.substr(file.rfind('/') + 1); } // npos + 1 is 0: no slash, whole name
};

// Notes are (name size, description size, type), then both texts, each padded to 4 bytes.
std::string build_id_in_notes(const char* notes, std::size_t size) {
  std::size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= size) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes + at, sizeof header);
    const std::size_t owner = at + sizeof header;
    const std::size_t description = owner + (header.n_namesz + 3u) / 4u * 4u;
    const std::size_t end = description + (header.n_descsz + 3u) / 4u * 4u;
    if (end > size || end <= at) return {};
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && std::memcmp(notes + owner, "GNU", 4) == 0) {
      std::string id;
      for (std::size_t i = 0; i < header.n_descsz; ++i) id += fmt::format("{:02x}", static_cast<unsigned char>(notes[description + i]));
      return id;
    }
    at = end;
  }
  return {};
}

void read_dynamic(const ElfW(Dyn) * entries, std::uintptr_t base, Raw& raw) {
  std::uintptr_t strings = 0;
  for (const auto* d = entries; d->d_tag != DT_NULL; ++d)
    if (d->d_tag == DT_STRTAB) strings = d->d_un.d_ptr;
  if (strings == 0) return;
  if (strings < base) strings += base; // glibc relocates it on most architectures, and leaves it in the vdso
  const auto text = [strings](std::uintptr_t at) { return std::string(reinterpret_cast<const char*>(strings + at)); };
  for (const auto* d = entries; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_NEEDED) raw.needed.push_back(text(d->d_un.d_val));
    if (d->d_tag == DT_SONAME) raw.soname = text(d->d_un.d_val);
  }
}

int visit(dl_phdr_info* info, std::size_t, void* to) {
  Raw raw{.file = info->dlpi_name == nullptr ? "" : info->dlpi_name, .soname = {}, .build_id = {}, .needed = {}};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = info->dlpi_phdr[i];
    const auto address = static_cast<std::uintptr_t>(info->dlpi_addr + segment.p_vaddr);
    if (segment.p_type == PT_NOTE && raw.build_id.empty())
      raw.build_id = build_id_in_notes(reinterpret_cast<const char*>(address), segment.p_memsz);
    if (segment.p_type == PT_DYNAMIC) read_dynamic(reinterpret_cast<const ElfW(Dyn)*>(address), info->dlpi_addr, raw);
  }
  static_cast<std::vector<Raw>*>(to)->push_back(std::move(raw));
  return 0;
}

std::vector<Raw> all_loaded() {
  std::vector<Raw> list;
  dl_iterate_phdr(visit, &list);
  return list;
}

std::string resolved(const std::string& file) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(file, error);
  return error ? file : real.string();
}

bool makes_code(const Raw& raw) {
  return std::ranges::none_of(no_makers, [name = raw.name()](std::string_view start) { return name.starts_with(start); });
}

std::string content_digest(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return sha256(text.str());
}

} // namespace

std::vector<LoadedLibrary> loaded_closure(const std::vector<std::string>& roots) {
  const std::vector<Raw> all = all_loaded();
  std::vector<const Raw*> found;
  const auto add = [&found](const Raw& raw) {
    if (!raw.file.empty() && makes_code(raw) && std::ranges::find(found, &raw) == found.end()) found.push_back(&raw);
  };
  for (const Raw& raw : all)
    if (std::ranges::any_of(roots, [&](const std::string& root) { return raw.name().starts_with(root); })) add(raw);
  for (std::size_t i = 0; i < found.size(); ++i) // grows
    for (const std::string& needed : found[i]->needed)
      for (const Raw& raw : all)
        if (raw.soname == needed || raw.name() == needed) add(raw);
  std::vector<LoadedLibrary> libraries;
  for (const Raw* raw : found) {
    const std::string path = resolved(raw->file);
    libraries.push_back({raw->name(), path, raw->build_id.empty() ? content_digest(path) : raw->build_id});
  }
  std::ranges::sort(libraries, {}, &LoadedLibrary::name);
  return libraries;
}

namespace {

// LLVM's file has 140 MB, of which a mapping reads as much as lies before the text: 2.5 ms.
bool holds(int file, const struct stat& facts, std::string_view text) {
  if (facts.st_size <= 0) return false;
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) return false;
  const bool held = memmem(bytes, size, text.data(), text.size()) != nullptr;
  munmap(bytes, size);
  return held;
}

} // namespace

// A process asks for each kernel that it compiles, so answers are kept for as long as a file is the one that was read.
bool any_holds(const std::vector<std::string>& files, std::string_view text) {
  using Key = std::tuple<dev_t, ino_t, off_t, time_t, long, std::string>;
  static std::mutex mutex;
  static std::map<Key, bool> known;
  const std::lock_guard lock(mutex);
  return std::ranges::any_of(files, [&](const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    struct stat f{};
    bool held = false;
    if (fstat(file, &f) == 0) {
      const auto [at, is_new] = known.try_emplace({f.st_dev, f.st_ino, f.st_size, f.st_mtim.tv_sec, f.st_mtim.tv_nsec, std::string(text)});
      if (is_new) at->second = holds(file, f, text);
      held = at->second;
    }
    close(file);
    return held;
  });
}

std::string path_of_loaded(std::string_view name) {
  for (const Raw& raw : all_loaded())
    if (raw.name().starts_with(name)) return resolved(raw.file);
  return {};
}

} // namespace kiln
