// Device: where kernels run. A GPU through HIP, or the CPU model, with one interface, so that a program that uses it is tested
// unchanged on a machine without a GPU.
#pragma once
#include "gen/plan/target.h"
#include "gen/reference/tensor.h"
#include "runtime/environment.h"
#include "runtime/launch/emulated/emulated_backend.h"
#include "runtime/launch/loaded_kernel.h"
#include "runtime/launch/markers.h"
#include <memory>
#include <string>
#include <string_view>

namespace kiln {

// Device memory with one owner; released with it.
class DeviceMemory {
public:
  DeviceMemory(std::shared_ptr<DeviceBackend> backend, std::size_t bytes, const std::string& name);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  void* data() const { return data_; } // a device address, a multiple of 256; null when there are no bytes
  std::size_t bytes() const { return bytes_; }
  // The bytes from `offset` on as a tensor. Throws UserError when they are too few.
  DeviceTensor tensor(DType dtype, std::vector<std::int64_t> shape, std::int64_t row_stride = 0, std::size_t offset = 0) const;

private:
  std::shared_ptr<DeviceBackend> backend_;
  std::size_t bytes_ = 0;
  void* data_ = nullptr;
};

// A cheap value; copies share one device. Thread-safe. No call changes the caller's current HIP device.
//   const Device device = default_device();
//   Jit jit(device.target());
//   const BoundKernel norm = device.load(jit.compile(spec)).bind({{"x", x}, {"y", y}});
//   norm.launch(stream);
class Device {
public:
  // GPU `ordinal` of HIP. Throws EnvironmentError: no HIP runtime, no such device, or an architecture that Kiln does not know.
  // The two-argument form names the library to load, as KILN_HIP_PATH does.
  static Device hip(int ordinal);
  static Device hip(int ordinal, const std::string& library);
  // The CPU model of "gfx942" or "gfx950". A launch is over when it returns, whatever the stream. Allocations hold NaN at first.
  // Throws UserError for another architecture.
  static Device emulated(std::string_view arch, EmulatorOptions options = {});
  // "hip:0", "emulated:gfx942". Throws UserError for other words, and what the two above throw.
  static Device open(std::string_view name);

  const Target& target() const { return target_; }
  bool is_emulated() const { return backend_->is_emulated(); }
  std::string product() const { return backend_->product(); }         // "AMD Instinct MI300X"
  std::string description() const { return backend_->description(); } // for people

  // Loads the kernel (hipModuleLoadData), best before any capture (docs/embedding.md). A kernel that is loaded already is the
  // same kernel again. Throws UserError for a kernel of another architecture, EnvironmentError when HIP refuses, or when the code
  // object's arguments are not those that the spec has.
  LoadedKernel load(const Kernel& kernel) const;

  // The following are for programs that have no allocator and streams of their own: set-up, tests. They wait until it is done.
  DeviceMemory allocate(std::size_t bytes, const std::string& name = "buffer") const;
  DeviceMemory upload(const Tensor& tensor, const std::string& name = "tensor") const; // with the strides of `tensor`
  Tensor download(const DeviceTensor& tensor, Stream stream = nullptr) const;
  void copy_to_device(void* to, std::span<const std::byte> from, Stream stream = nullptr) const {
    backend_->copy_to_device(to, from, stream);
  }
  void copy_to_host(std::span<std::byte> to, const void* from, Stream stream = nullptr) const { backend_->copy_to_host(to, from, stream); }
  void zero(void* to, std::size_t bytes, Stream stream = nullptr) const { backend_->zero(to, bytes, stream); }
  void synchronize(Stream stream = nullptr) const { backend_->synchronize(stream); }

  // These return at once; on the CPU model they are done by then. Bytes of the host must stay where they are until the stream has come
  // this far. On a GPU the copy overlaps with the host's work only if they are pinned (hipHostMalloc).
  void start_copy_to_device(void* to, std::span<const std::byte> from, Stream stream = nullptr) const {
    backend_->start_copy_to_device(to, from, stream);
  }
  void start_copy_to_host(std::span<std::byte> to, const void* from, Stream stream = nullptr) const {
    backend_->start_copy_to_host(to, from, stream);
  }
  void start_copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream = nullptr) const {
    backend_->start_copy_on_device(to, from, bytes, stream);
  }
  // The point that the stream has come to when all is done that it was given so far.
  std::unique_ptr<StreamMark> mark(Stream stream = nullptr) const { return backend_->mark(stream); }

  DeviceBackend& backend() const { return *backend_; }

private:
  struct Loaded; // what has been loaded, by key
  explicit Device(std::shared_ptr<DeviceBackend> backend);
  std::shared_ptr<DeviceBackend> backend_;
  Target target_;
  Markers markers_; // as KILN_ROCTX says
  std::shared_ptr<Loaded> loaded_;
};

// The device that KILN_DEVICE names; the first GPU of HIP when it is not set. There is no fallback to the CPU model.
Device default_device();

} // namespace kiln
