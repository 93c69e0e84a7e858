// WorkspacePool: the workspaces of one loaded kernel, each for one BoundKernel at a time and until its last launch is over.
// It never asks a stream: the stream of the last launch may be gone, and HIP has no safe way to find out (hipEventRecord on a destroyed
// stream crashes in HIP 7.2).
#pragma once
#include "runtime/launch/backend.h"
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kiln {

// Thread-safe. Grows when it has none that is free; when `max_retired` may still be in use, it waits for the device instead.
class WorkspacePool {
public:
  WorkspacePool(std::shared_ptr<DeviceBackend> backend, std::string name, std::size_t bytes);
  ~WorkspacePool(); // frees them all; freeing waits for the launches that still use one
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  static constexpr std::size_t max_retired = 8; // so a program that binds again and again waits once in 8 times

  // A free one, or a new one, zeroed. Throws what the backend throws.
  void* take();
  void give(void* workspace) noexcept;   // that no launch used
  void retire(void* workspace) noexcept; // that launches used, which may not be over

private:
  std::shared_ptr<DeviceBackend> backend_;
  std::string name_;
  std::size_t bytes_;
  std::mutex mutex_;
  std::vector<void*> all_, free_, retired_;
};

// A workspace that one BoundKernel has taken.
class TakenWorkspace {
public:
  explicit TakenWorkspace(WorkspacePool& pool) : pool_(pool), address_(pool.take()) {}
  ~TakenWorkspace() { used_ ? pool_.retire(address_) : pool_.give(address_); }
  TakenWorkspace(const TakenWorkspace&) = delete;
  TakenWorkspace& operator=(const TakenWorkspace&) = delete;

  void* address() const { return address_; }
  void use() { used_.store(true, std::memory_order_relaxed); } // before each launch

private:
  WorkspacePool& pool_;
  void* address_;
  std::atomic<bool> used_{false};
};

} // namespace kiln
