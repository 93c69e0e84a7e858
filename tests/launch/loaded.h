// Stub: the HIP stub as a test uses it, and kernels to load.
#pragma once
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/device.h"
#include "tests/launch/hip_stub.h"
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

namespace kiln::test {

// The stub's state as it is when nothing has happened yet.
inline HipStub& fresh_stub() {
  static HipStub& stub = []() -> HipStub& {
    void* handle = dlopen(KILN_HIP_STUB, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle != nullptr);
    return *reinterpret_cast<decltype(&kiln_hip_stub)>(dlsym(handle, "kiln_hip_stub"))();
  }();
  const HipStub fresh;
  stub.record = true, stub.version = fresh.version, stub.devices = fresh.devices, stub.names = fresh.names, stub.current = 0;
  stub.calls.clear(), stub.errors.clear(), stub.errors_after.clear(), stub.parameter_sizes.clear();
  stub.launches.clear(), stub.elapsed_ms.clear(), stub.destroyed_streams.clear();
  stub.capturing = stub.capture_invalid = stub.was_reset = stub.crashed = false;
  return stub;
}

inline Device stub_device(int ordinal = 0) { return Device::hip(ordinal, KILN_HIP_STUB); }

// The setting by which small products have sums of several workgroups, and so a workspace.
inline constexpr const char* split = "workgroups=64";

// As Jit gives it, with no cache and no worker.
inline Kernel compiled(const KernelSpec& spec, const std::string& arch = "gfx942", const std::vector<std::string>& overrides = {}) {
  CompileOptions options;
  options.environment = process_environment();
  const Target gpu = target(arch);
  return kernel_of(spec, gpu, overrides, options, build_kernel(spec, gpu, options, overrides));
}

// A product whose sums come from several workgroups, and so with a workspace.
inline const Kernel& product() {
  static const Kernel kernel =
      compiled(KernelSpec("product").output("c", f16, matmul_nt(input("a", f16, {dynamic("m", 1, 4), 512}), input("b", f16, {256, 512}))),
               "gfx942", {split});
  return kernel;
}

inline BoundKernel bind_product(const LoadedKernel& kernel, const DeviceMemory& memory) {
  return kernel.bind({{"a", memory.tensor(f16, {1, 512})},
                      {"b", memory.tensor(f16, {256, 512}, 0, 4096)},
                      {"c", memory.tensor(f16, {1, 256}, 0, 4096 + 256 * 512 * 2)}});
}
inline constexpr std::size_t product_bytes = 4096 + 256 * 512 * 2 + 512;

} // namespace kiln::test
