// KernelBuffers: device memory for launches of one kernel on host tensors: inputs uploaded, outputs, workspace, all bound.
#pragma once
#include "gen/reference/evaluate.h"
#include "runtime/launch/device.h"
#include <optional>
#include <vector>

namespace kiln {

// Sets of buffers that launches take in turn, so that data need not come from a cache. `device` and `inputs` outlive it.
class KernelBuffers {
public:
  // `spec` is the kernel's own. As many sets as have `bytes` bytes together, at least `least`, at most 16384; rows lie as close as the
  // kernel's strides allow. Matrices that are preshuffled are shuffled here. Throws what Device throws.
  KernelBuffers(const Device& device, const Kernel& kernel, const KernelSpec& spec, const Inputs& inputs, std::int64_t bytes = 0,
                std::int64_t least = 1);

  void launch();           // on the next set, on the default stream
  Outputs outputs() const; // of the first set, as evaluate gives them; waits for its launches
  std::int64_t sets() const { return count_; }
  std::int64_t bytes() const { return count_ * bytes_; } // of all sets

private:
  // One tensor within a set.
  struct Placement {
    std::string name;
    DeviceTensor tensor;         // its data is filled in for each set
    std::int64_t offset = 0;     // within a set
    std::vector<std::byte> data; // empty for outputs
  };
  void place(const std::string& name, std::vector<std::int64_t> shape, DType dtype, const Expr* input);
  void bind(std::int64_t set);
  DeviceTensor tensor_of(const Placement& placement, std::int64_t set) const;

  const Device& device_;
  LoadedKernel loaded_;
  const KernelSpec spec_;
  const Inputs& inputs_;
  std::vector<Placement> placements_;
  std::int64_t bytes_ = 0, count_ = 0; // bytes of one set
  std::optional<DeviceMemory> memory_, workspace_;
  std::vector<BoundKernel> bound_;
  std::size_t next_ = 0;
};

// The outputs of one launch. Throws what Device throws: on an emulated device ExecutionError with its findings.
Outputs run_on(const Device& device, const Kernel& kernel, const KernelSpec& spec, const Inputs& inputs);

} // namespace kiln
