// DynamicLibrary: dlopen with a search list and errors that say what was tried.
#include "runtime/compile/dynamic_library.h"
#include "gen/error.h"
#include <dlfcn.h>
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
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr || map->l_name == nullptr) return candidate;
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(map->l_name, error);
  return error ? std::string(map->l_name) : real.string();
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
  const std::string fact = request.given_path.empty() ? fmt::format("no such library could be loaded (tried {})", tried)
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

} // namespace kiln
