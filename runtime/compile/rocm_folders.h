// Folders in which a ROCm may be installed. The loader's own search comes first; Python packages of ROCm are found by ROCM_PATH.
#pragma once
#include "runtime/environment.h"
#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

// Folders that are there, in this order: ROCM_PATH, HIP_PATH, /opt/rocm, the newest /opt/rocm-* first. `root` stands before /opt.
std::vector<std::filesystem::path> rocm_folders(const VariableLookup& variables, const std::filesystem::path& root = "/");

// Their folders of libraries, for LibraryRequest, by the variables of this process.
std::vector<std::string> rocm_library_folders();

} // namespace kiln
