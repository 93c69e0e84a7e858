// WorkspacePool: free, taken, and retired until the device is idle.
#include "runtime/launch/workspace_pool.h"

namespace kiln {

WorkspacePool::WorkspacePool(std::shared_ptr<DeviceBackend> backend, std::string name, std::size_t bytes)
    : backend_(std::move(backend)), name_(std::move(name)), bytes_(bytes) {}

WorkspacePool::~WorkspacePool() {
  for (void* workspace : all_) backend_->release(workspace);
}

void* WorkspacePool::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty() && retired_.size() >= max_retired) {
    backend_->wait_until_idle();
    free_.swap(retired_);
  }
  if (!free_.empty()) {
    void* workspace = free_.back();
    free_.pop_back();
    return workspace;
  }
  const std::size_t count = all_.size() + 1; // room for all, so that giving back never allocates
  all_.reserve(count);
  free_.reserve(count);
  retired_.reserve(count);
  void* workspace = backend_->allocate(bytes_, name_);
  try {
    backend_->zero(workspace, bytes_, nullptr);
  } catch (...) {
    backend_->release(workspace);
    throw;
  }
  all_.push_back(workspace);
  return workspace;
}

void WorkspacePool::give(void* workspace) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(workspace);
}

void WorkspacePool::retire(void* workspace) noexcept {
  const std::lock_guard lock(mutex_);
  retired_.push_back(workspace);
}

} // namespace kiln
