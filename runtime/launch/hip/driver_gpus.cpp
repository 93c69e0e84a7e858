// The GPUs that the kernel driver lists: /sys/class/kfd/kfd/topology/nodes/N/properties.
#include "runtime/launch/hip/driver_gpus.h"
#include <algorithm>
#include <fmt/format.h>
#include <fstream>

namespace kiln {

std::vector<std::string> driver_archs(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> nodes;
  std::error_code error;
  for (std::filesystem::directory_iterator at(root / "sys/class/kfd/kfd/topology/nodes", error), end; !error && at != end;
       at.increment(error))
    nodes.push_back(at->path());
  std::ranges::sort(nodes);
  std::vector<std::string> archs;
  for (const std::filesystem::path& node : nodes) {
    std::ifstream stream(node / "properties");
    std::string key;
    for (std::uint64_t value = 0; stream >> key >> value;)
      if (key == "gfx_target_version" && value != 0) // 90402 is gfx942: two digits each of major, minor, stepping
        archs.push_back(fmt::format("gfx{}{:x}{:x}", value / 10000, value / 100 % 100, value % 100));
  }
  return archs;
}

} // namespace kiln
