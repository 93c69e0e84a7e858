// Caller: calls of a KernelSet's functions with tensors of DLPack.
#pragma once
#include "runtime/jit/jit.h"
#include "runtime/launch/device.h"
#include "runtime/tvm_ffi/kernel_set.h"
#include <dlpack/dlpack.h>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace kiln::tvm {

using CallArgument = std::variant<const DLTensor*, double>;

// Thread-safe.
class Caller {
public:
  // `device`: "hip:0" or "emulated:gfx942"; empty: what KILN_DEVICE says. For a folder nothing is ever compiled, for a manifest what
  // KILN_JIT_POLICY allows. Throws what read_kernels and Device::open throw.
  Caller(const std::filesystem::path& path, const std::string& device);

  const KernelSet& kernels() const { return set_; }
  void compile_all(); // what calls would compile, now; throws what Jit::compile throws

  // On a GPU the tensors' own, on the stream that `stream_of(number of the device)` gives. Nothing waits for it, nothing is copied, and a
  // graph may capture it once the kernel was called, or compile_all. On an emulated device the tensors are in host memory, and are
  // copied there and back. Throws UserError, and what compiling, loading and launching throw.
  void call(const std::string& kernel, std::span<const CallArgument> arguments, const std::function<void*(int)>& stream_of);

private:
  Device device_of(const DLDevice& where);
  void run_emulated(const LoadedKernel& kernel, const Variant& variant, std::vector<Argument> arguments) const;

  Device device_;
  KernelSet set_;
  Jit jit_;
  std::mutex mutex_;
  std::map<int, Device> gpus_; // by number
};

} // namespace kiln::tvm
