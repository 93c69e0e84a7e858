// DynamicLibrary: dlopen with a search list and errors that say what was tried.
#include "runtime/compile/dynamic_library.h"
#include "gen/error.h"
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <filesystem>
#include <fmt/format.h>
#include <link.h>

namespace kiln {
namespace {

std::vector<std::string> candidates(const LibraryRequest& request) {
  if (!request.given_path.empty()) return {request.given_path};
  std::vector<std::string> files = request.names;
  for (const std::string& folder : request.folders)
    for (const std::string& name : request.names) files.push_back(folder + "/" + name);
  return files;
}

std::string loaded_path(void* handle, const std::string& candidate) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) return candidate;
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(map->l_name, error);
  return error ? std::string(map->l_name) : real.string();
}

struct BuildIdSearch {
  std::string_view name;
  std::string id, path;
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
      for (std::size_t i = 0; i < header.n_descsz; ++i)
        id += fmt::format("{:02x}", static_cast<unsigned char>(notes[description + i]));
      return id;
    }
    at = end;
  }
  return {};
}

int visit_library(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<BuildIdSearch*>(data);
  std::string_view file = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  file = file.substr(file.rfind('/') + 1); // npos + 1 is 0: no slash, whole name
  if (!file.starts_with(search.name)) return 0;
  search.path = info->dlpi_name;
  for (int i = 0; i < info->dlpi_phnum && search.id.empty(); ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto address = static_cast<std::uintptr_t>(info->dlpi_addr + segment.p_vaddr);
    search.id = build_id_in_notes(reinterpret_cast<const char*>(address), segment.p_memsz);
  }
  return search.id.empty() ? 0 : 1;
}

} // namespace

DynamicLibrary::DynamicLibrary(const LibraryRequest& request) : subject_(request.subject) {
  std::string tried, reasons;
  for (const std::string& file : candidates(request)) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      path_ = loaded_path(handle_, file);
      return;
    }
    const char* reason = dlerror();
    tried += (tried.empty() ? "" : ", ") + file;
    reasons += fmt::format("{}\n", reason == nullptr ? file.c_str() : reason);
  }
  const std::string fact = request.given_path.empty()
                               ? fmt::format("no such library could be loaded (tried {})", tried)
                               : fmt::format("{} of {} could not be loaded", tried, request.variable);
  throw EnvironmentError(subject_, fact, request.remedy, reasons);
}

void* DynamicLibrary::address(const char* symbol) const {
  void* found = dlsym(handle_, symbol);
  if (found == nullptr) {
    throw EnvironmentError(subject_, fmt::format("{} has no function {}", path_, symbol),
                           "install a version of ROCm that Kiln knows (6.2 to 7.x)");
  }
  return found;
}

std::string build_id_of_loaded(std::string_view name) {
  BuildIdSearch search{name, {}, {}};
  dl_iterate_phdr(visit_library, &search);
  return search.id;
}

std::string path_of_loaded(std::string_view name) {
  BuildIdSearch search{name, {}, {}};
  dl_iterate_phdr(visit_library, &search);
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(search.path, error);
  return error ? search.path : real.string();
}

} // namespace kiln
