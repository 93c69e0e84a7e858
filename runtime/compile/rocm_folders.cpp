// Folders in which a ROCm may be installed: what variables say, the usual one, versioned ones.
#include "runtime/compile/rocm_folders.h"
#include <algorithm>
#include <cstring>

namespace kiln {

namespace fs = std::filesystem;

std::vector<fs::path> rocm_folders(const VariableLookup& variables, const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code error;
  const auto add = [&](const fs::path& folder) {
    if (!folder.empty() && fs::is_directory(folder, error)) folders.push_back(folder);
  };
  for (const char* name : {"ROCM_PATH", "HIP_PATH"})
    if (variables) add(variables(name).value_or(""));
  add(root / "opt/rocm");
  std::vector<std::string> versioned;
  for (fs::directory_iterator at(root / "opt", error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with("rocm-")) versioned.push_back(at->path().filename().string());
  std::ranges::sort(versioned, [](const std::string& a, const std::string& b) { return strverscmp(a.c_str(), b.c_str()) > 0; });
  for (const std::string& name : versioned) add(root / "opt" / name);
  return folders;
}

std::vector<std::string> rocm_library_folders() {
  std::vector<std::string> folders;
  for (const fs::path& folder : rocm_folders(process_lookup()))
    for (const char* name : {"lib", "lib64"}) folders.push_back((folder / name).string());
  return folders;
}

} // namespace kiln
