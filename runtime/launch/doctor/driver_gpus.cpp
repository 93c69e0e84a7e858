// The GPUs that the kernel driver lists: /sys/class/kfd/kfd/topology/nodes/N/properties.
#include "runtime/launch/doctor/driver_gpus.h"
#include "runtime/launch/doctor/doctor_lines.h"
#include <fmt/format.h>
#include <fstream>

namespace kiln {

std::vector<std::string> driver_archs(const std::filesystem::path& root) {
  std::vector<std::string> archs;
  for (const std::filesystem::path& node : folders_in(root / "sys/class/kfd/kfd/topology/nodes")) {
    std::ifstream stream(node / "properties");
    std::string key;
    for (std::uint64_t value = 0; stream >> key >> value;)
      if (key == "gfx_target_version" && value != 0) // 90402 is gfx942: two digits each of major, minor, stepping
        archs.push_back(fmt::format("gfx{}{:x}{:x}", value / 10000, value / 100 % 100, value % 100));
  }
  return archs;
}

} // namespace kiln
