// WorkspaceOwners: a list of regions, which is short: kernels take workspaces from their own pool unless told otherwise.
#include "runtime/launch/workspace_owners.h"
#include "gen/error.h"
#include <fmt/format.h>

namespace kiln {

std::unique_ptr<const WorkspaceOwners::Held> WorkspaceOwners::hold(const std::string& subject, std::uintptr_t address, std::size_t bytes,
                                                                   const std::string& kernel_name, const std::string& kernel_key) {
  const std::lock_guard lock(regions_->mutex);
  for (const Region& other : regions_->list)
    if (other.begin < address + bytes && address < other.end && other.key != kernel_key)
      throw UserError(subject,
                      fmt::format("its bytes {:#x} to {:#x} are the workspace of another kernel, {}, which is bound", address,
                                  address + bytes, other.name),
                      "give each kernel a workspace of its own, or leave it out");
  return std::make_unique<const Held>(regions_, Region{address, address + bytes, kernel_name, kernel_key});
}

} // namespace kiln
