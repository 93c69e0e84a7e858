// WorkspacePool: free, taken, and pending until a stream has passed a mark.
#include "runtime/launch/workspace_pool.h"
#include "gen/error.h"
#include <algorithm>

namespace kiln {

WorkspacePool::WorkspacePool(std::shared_ptr<DeviceBackend> backend, std::string name, std::size_t bytes)
    : backend_(std::move(backend)), name_(std::move(name)), bytes_(bytes) {}

WorkspacePool::~WorkspacePool() {
  for (const Pending& pending : pending_) pending.mark->wait();
  for (void* workspace : all_) backend_->release(workspace);
}

void* WorkspacePool::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) { // asked only now: an event must not be queried while a stream is captured
    const auto passed = std::ranges::partition(pending_, [](const Pending& pending) { return !pending.mark->passed(); });
    for (const Pending& pending : passed) free_.push_back(pending.workspace);
    pending_.erase(passed.begin(), passed.end());
  }
  if (!free_.empty()) {
    void* workspace = free_.back();
    free_.pop_back();
    return workspace;
  }
  const std::size_t count = all_.size() + 1; // room for all, so that giving back never allocates
  all_.reserve(count);
  free_.reserve(count);
  pending_.reserve(count);
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

void WorkspacePool::give_after(void* workspace, Stream stream) noexcept {
  try {
    std::unique_ptr<StreamMark> mark = backend_->mark(stream);
    const std::lock_guard lock(mutex_);
    pending_.push_back({workspace, std::move(mark)});
  } catch (const std::exception&) { // no event: see the declaration
  }
}

} // namespace kiln
