// WorkspaceOwners: which kernel a workspace belongs to that callers give. What a kernel leaves in it means nothing to another one, which
// would take it for its own parts and counts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

namespace kiln {

// Thread-safe.
class WorkspaceOwners {
public:
  // As long as it lives, the bytes are of that kernel.
  class Held;

  // Several bindings of one kernel may hold the same bytes. Throws UserError (`subject`) when another kernel holds some of them.
  std::unique_ptr<const Held> hold(const std::string& subject, std::uintptr_t address, std::size_t bytes, const std::string& kernel_name,
                                   const std::string& kernel_key);

private:
  struct Region {
    std::uintptr_t begin, end;
    std::string name, key; // of the kernel
  };
  struct Regions {
    std::mutex mutex;
    std::list<Region> list;
  };
  std::shared_ptr<Regions> regions_ = std::make_shared<Regions>();
};

class WorkspaceOwners::Held {
public:
  Held(std::shared_ptr<Regions> regions, Region region) : regions_(std::move(regions)) {
    regions_->list.push_front(std::move(region));
    at_ = regions_->list.begin();
  }
  ~Held() {
    const std::lock_guard lock(regions_->mutex);
    regions_->list.erase(at_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

private:
  std::shared_ptr<Regions> regions_;
  std::list<Region>::iterator at_;
};

} // namespace kiln
