// DeviceBackend: what a device must be able to do. There are two: a GPU through HIP, and the CPU model.
#pragma once
#include "runtime/launch/kernel.h"
#include "runtime/launch/workspace_owners.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kiln {

using Stream = void*; // a hipStream_t; null: the default stream of the kernel's device

// A launch with everything fixed. The pointed-to bytes are read before launch returns.
struct LaunchPacket {
  std::uint32_t blocks = 0, threads = 0;
  std::span<const std::byte> block; // the argument block
  void** parameters = nullptr;      // one pointer into it for each argument, in order
};

// A kernel on a device. Thread-safe.
class LoadedCode {
public:
  virtual ~LoadedCode() = default;
  virtual void launch(const LaunchPacket& packet, Stream stream) const = 0;
};

// A point of a stream: after all that was launched on it before.
class StreamMark {
public:
  virtual ~StreamMark() = default;
  virtual bool passed() const noexcept = 0; // without waiting; false also when the device cannot say
  virtual void wait() const noexcept = 0;
};

// Measures what lies between two points of a stream, on the device's own clock.
class DeviceClock {
public:
  virtual ~DeviceClock() = default;
  virtual void start(Stream stream) = 0;
  virtual void stop(Stream stream) = 0;
  virtual double milliseconds() = 0; // waits until the second point is reached
};

// Thread-safe. Addresses are the device's own and must not be dereferenced by the host.
class DeviceBackend {
public:
  virtual ~DeviceBackend() = default;
  virtual std::string arch() const = 0;        // "gfx942"
  virtual std::string product() const = 0;     // "AMD Instinct MI300X"
  virtual std::string description() const = 0; // for people
  virtual bool is_emulated() const = 0;

  virtual void* allocate(std::size_t bytes, const std::string& name) = 0; // a multiple of 256
  virtual void release(void* address) noexcept = 0;
  // These three return when the bytes are there.
  virtual void copy_to_device(void* to, std::span<const std::byte> from, Stream stream) = 0;
  virtual void copy_to_host(std::span<std::byte> to, const void* from, Stream stream) = 0;
  virtual void zero(void* to, std::size_t bytes, Stream stream) = 0;
  // These three return at once. Bytes of the host must stay where they are until the stream has come this far.
  virtual void start_copy_to_device(void* to, std::span<const std::byte> from, Stream stream) = 0;
  virtual void start_copy_to_host(std::span<std::byte> to, const void* from, Stream stream) = 0;
  virtual void start_copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) = 0; // the two do not overlap
  virtual void synchronize(Stream stream) = 0;
  virtual void wait_until_idle() = 0; // for all that was launched on any stream
  // Why `bytes` bytes from `address` cannot be a tensor; empty when nothing speaks against it.
  virtual std::string why_no_memory(const void* address, std::size_t bytes) const = 0;

  virtual std::unique_ptr<StreamMark> mark(Stream stream) = 0;
  virtual std::unique_ptr<LoadedCode> load(const Kernel& kernel) = 0;
  virtual std::unique_ptr<DeviceClock> clock() = 0; // throws UserError where time means nothing

  WorkspaceOwners& given_workspaces() { return given_workspaces_; }

private:
  WorkspaceOwners given_workspaces_;
};

} // namespace kiln
