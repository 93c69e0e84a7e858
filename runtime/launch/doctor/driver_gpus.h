// The GPUs that the kernel driver lists, without HIP.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

// "gfx942" of each node of the driver's topology that is a GPU, in its order. `root` is "/", but in tests. Without a driver: none.
std::vector<std::string> driver_archs(const std::filesystem::path& root);

} // namespace kiln
