// KernelOnDevice: what all copies of a LoadedKernel share.
#pragma once
#include "gen/spec/spec.h"
#include "runtime/launch/backend.h"
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kiln {

// What the spec says of one tensor that the kernel takes an address of.
struct TensorRule {
  std::string name;
  std::string partner = {}; // the in-place output that shares its memory, or empty
  DType dtype = f32;
  Shape shape = {};
  bool strided = false, written = false;
  int argument = -1, stride_argument = -1; // indices into Kernel::arguments
};

struct KernelOnDevice {
  // Checks the layout, then loads. Throws UserError when the kernel is for another architecture, what check_layout and the
  // backend throw.
  KernelOnDevice(std::shared_ptr<DeviceBackend> backend, Kernel kernel);
  ~KernelOnDevice();
  KernelOnDevice(const KernelOnDevice&) = delete;
  KernelOnDevice& operator=(const KernelOnDevice&) = delete;

  std::shared_ptr<DeviceBackend> backend;
  Kernel kernel;
  std::unique_ptr<LoadedCode> code;
  std::vector<TensorRule> tensors; // in the order of the arguments
  // Rows that share a wave are addressed by 32-bit offsets from the first row of the workgroup (see KernelArgument::alignment).
  bool rows_share_waves = false;

  // One from the free list, or a new one, zeroed.
  void* take_workspace();
  void give_workspace(void* workspace) noexcept;

private:
  std::mutex mutex_;
  std::vector<void*> all_, free_;
};

} // namespace kiln
