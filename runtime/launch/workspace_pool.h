// WorkspacePool: the workspaces of one loaded kernel, each for one BoundKernel at a time and until its last launch is over.
#pragma once
#include "runtime/launch/backend.h"
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kiln {

// Thread-safe. Grows when it has none that is free.
class WorkspacePool {
public:
  WorkspacePool(std::shared_ptr<DeviceBackend> backend, std::string name, std::size_t bytes);
  ~WorkspacePool(); // waits for the launches that still use one, then frees them all
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  // A free one, or a new one, zeroed. Waits for nothing but the zeroes. Throws what the backend throws.
  void* take();
  void give(void* workspace) noexcept; // that no launch used
  // Free once `stream` has done what was launched on it so far. Does not wait. If the stream cannot say when that is (it is gone,
  // or captured), the workspace stays taken until the pool goes.
  void give_after(void* workspace, Stream stream) noexcept;

private:
  struct Pending {
    void* workspace = nullptr;
    std::unique_ptr<StreamMark> mark;
  };
  std::shared_ptr<DeviceBackend> backend_;
  std::string name_;
  std::size_t bytes_;
  std::mutex mutex_;
  std::vector<void*> all_, free_;
  std::vector<Pending> pending_;
};

// A workspace that one BoundKernel has taken, and the stream that uses it.
class TakenWorkspace {
public:
  explicit TakenWorkspace(WorkspacePool& pool) : pool_(pool), address_(pool.take()) {}
  ~TakenWorkspace() { used_ ? pool_.give_after(address_, stream_) : pool_.give(address_); }
  TakenWorkspace(const TakenWorkspace&) = delete;
  TakenWorkspace& operator=(const TakenWorkspace&) = delete;

  void* address() const { return address_; }
  // Called before each launch. Launches that share a workspace follow one another, so the last stream knows of all of them.
  void use_on(Stream stream) {
    stream_.store(stream, std::memory_order_relaxed);
    used_.store(true, std::memory_order_relaxed);
  }

private:
  WorkspacePool& pool_;
  void* address_;
  std::atomic<Stream> stream_{nullptr};
  std::atomic<bool> used_{false};
};

} // namespace kiln
