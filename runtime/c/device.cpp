// Devices of the C ABI, and memory of theirs for programs that have no allocator.
#include "runtime/c/handles.h"
#include <fmt/format.h>

using namespace kiln;

extern "C" {

kiln_status kiln_device_open(const char* name, kiln_device** device) {
  return c::guarded([&] {
    c::require(device, "kiln_device_open", "device");
    Device opened = name == nullptr ? default_device() : Device::open(name);
    std::string description = opened.description();
    *device = new kiln_device{.device = std::move(opened), .description = std::move(description), .mutex = {}, .memory = {}};
  });
}

void kiln_device_free(kiln_device* device) { delete device; }

const char* kiln_device_arch(const kiln_device* device) { return device == nullptr ? nullptr : device->device.target().arch().c_str(); }
const char* kiln_device_description(const kiln_device* device) { return device == nullptr ? nullptr : device->description.c_str(); }
const char* kiln_device_fp8(const kiln_device* device) {
  return device == nullptr ? nullptr : to_string(device->device.target().fp8()).data(); // of a literal
}
int kiln_device_is_emulated(const kiln_device* device) { return device != nullptr && device->device.is_emulated() ? 1 : 0; }

kiln_status kiln_device_allocate(kiln_device* device, size_t bytes, const char* name, void** address) {
  return c::guarded([&] {
    c::require(device, "kiln_device_allocate", "device");
    c::require(address, "kiln_device_allocate", "address");
    DeviceMemory memory = device->device.allocate(bytes, name == nullptr ? "buffer" : name);
    void* const data = memory.data();
    const std::lock_guard lock(device->mutex);
    if (data != nullptr) device->memory.emplace(data, std::move(memory));
    *address = data;
  });
}

kiln_status kiln_device_release(kiln_device* device, void* address) {
  return c::guarded([&] {
    c::require(device, "kiln_device_release", "device");
    if (address == nullptr) return;
    std::optional<DeviceMemory> memory; // ends after the lock: HIP may wait for the device
    const std::lock_guard lock(device->mutex);
    const auto found = device->memory.find(address);
    if (found == device->memory.end())
      throw UserError("kiln_device_release", fmt::format("{} is no allocation of this device handle", fmt::ptr(address)),
                      "release an address that its kiln_device_allocate gave, once");
    memory.emplace(std::move(found->second));
    device->memory.erase(found);
  });
}

kiln_status kiln_device_write(kiln_device* device, void* to, const void* host, size_t bytes, void* stream) {
  return c::guarded([&] {
    c::require(device, "kiln_device_write", "device");
    if (bytes == 0) return;
    c::require(to, "kiln_device_write", "to");
    c::require(host, "kiln_device_write", "host");
    device->device.copy_to_device(to, {static_cast<const std::byte*>(host), bytes}, stream);
  });
}

kiln_status kiln_device_read(kiln_device* device, void* host, const void* from, size_t bytes, void* stream) {
  return c::guarded([&] {
    c::require(device, "kiln_device_read", "device");
    if (bytes == 0) return;
    c::require(host, "kiln_device_read", "host");
    c::require(from, "kiln_device_read", "from");
    device->device.copy_to_host({static_cast<std::byte*>(host), bytes}, from, stream);
  });
}

kiln_status kiln_device_zero(kiln_device* device, void* to, size_t bytes, void* stream) {
  return c::guarded([&] {
    c::require(device, "kiln_device_zero", "device");
    if (bytes == 0) return;
    c::require(to, "kiln_device_zero", "to");
    device->device.zero(to, bytes, stream);
  });
}

kiln_status kiln_device_synchronize(kiln_device* device, void* stream) {
  return c::guarded([&] {
    c::require(device, "kiln_device_synchronize", "device");
    device->device.synchronize(stream);
  });
}

} // extern "C"
