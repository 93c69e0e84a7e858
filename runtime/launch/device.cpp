// Device: its two kinds by name, memory, and the table of loaded kernels.
#include "runtime/launch/device.h"
#include "gen/error.h"
#include "gen/spec/characters.h"
#include "runtime/environment.h"
#include "runtime/launch/device_chip.h"
#include "runtime/launch/hip/hip_backend.h"
#include "runtime/launch/kernel_on_device.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unordered_map>
#include <utility>

namespace kiln {
namespace {

Target target_of(const DeviceBackend& backend) {
  try {
    const Target arch = target(backend.arch());
    std::string named = process_environment().chip;
    if (!named.empty() && timing::chip(named).arch != arch.arch()) named.clear(); // of another device of this machine
    return target(chip_of(arch, backend.product(), named).chip->name);
  } catch (const UserError& error) {
    throw EnvironmentError(backend.description(), "Kiln generates no code for it", error.remedy);
  }
}

} // namespace

DeviceMemory::DeviceMemory(std::shared_ptr<DeviceBackend> backend, std::size_t bytes, const std::string& name)
    : backend_(std::move(backend)), bytes_(bytes), data_(backend_->allocate(bytes, name)) {}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : backend_(std::move(other.backend_)), bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) backend_->release(data_);
}

DeviceTensor DeviceMemory::tensor(DType dtype, std::vector<std::int64_t> shape, std::int64_t row_stride, std::size_t offset) const {
  DeviceTensor tensor{.data = nullptr, .dtype = dtype, .shape = std::move(shape), .row_stride = row_stride};
  const auto needed = static_cast<std::size_t>(tensor.bytes());
  if (offset > bytes_ || needed > bytes_ - offset)
    throw UserError(to_text(tensor),
                    fmt::format("it has {} bytes, and {} of {} are left after offset {}", needed, offset > bytes_ ? 0 : bytes_ - offset,
                                bytes_, offset),
                    "allocate more");
  if (data_ != nullptr) tensor.data = static_cast<std::byte*>(data_) + offset;
  return tensor;
}

struct Device::Loaded {
  std::mutex mutex;
  std::unordered_map<std::string, std::weak_ptr<KernelOnDevice>> kernels; // by key
};

Device::Device(std::shared_ptr<DeviceBackend> backend)
    : backend_(std::move(backend)), target_(target_of(*backend_)), markers_(process_environment().roctx),
      loaded_(std::make_shared<Loaded>()) {}

Device Device::hip(int ordinal) { return hip(ordinal, process_environment().hip_path); }

Device Device::hip(int ordinal, const std::string& library) {
  return Device(make_hip_backend(std::make_shared<const Hip>(library), ordinal));
}

Device Device::emulated(std::string_view arch, EmulatorOptions options) { return Device(make_emulated_backend(arch, options)); }

Device Device::open(std::string_view name) {
  constexpr std::string_view of_hip = "hip:", of_model = "emulated:";
  if (name.starts_with(of_model)) return emulated(name.substr(of_model.size()));
  int ordinal = -1;
  if (name.starts_with(of_hip) && read_whole(name.substr(of_hip.size()), ordinal) && ordinal >= 0) return hip(ordinal);
  throw UserError("device", fmt::format("\"{}\" names none", name),
                  fmt::format("use hip:ORDINAL (hip:0) or emulated:ARCH ({})", fmt::join(known_archs(), ", ")));
}

LoadedKernel Device::load(const Kernel& kernel) const {
  const std::lock_guard lock(loaded_->mutex);
  std::weak_ptr<KernelOnDevice>& known = loaded_->kernels[kernel.key()];
  std::shared_ptr<KernelOnDevice> on_device = known.lock();
  if (on_device == nullptr) {
    on_device = std::make_shared<KernelOnDevice>(backend_, kernel, markers_);
    known = on_device;
  }
  return LoadedKernel(std::move(on_device));
}

DeviceMemory Device::allocate(std::size_t bytes, const std::string& name) const { return {backend_, bytes, name}; }

DeviceMemory Device::upload(const Tensor& tensor, const std::string& name) const {
  DeviceMemory memory = allocate(tensor.data().size(), name);
  copy_to_device(memory.data(), tensor.data());
  return memory;
}

Tensor Device::download(const DeviceTensor& tensor, Stream stream) const {
  Tensor host(tensor.dtype, tensor.shape, tensor.shape.size() > 1 ? tensor.row_stride : 0);
  copy_to_host(std::span(host.data()).first(static_cast<std::size_t>(tensor.bytes())), tensor.data, stream);
  return host;
}

Device default_device() { return Device::open(process_environment().device); }

} // namespace kiln
