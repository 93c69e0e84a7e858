// Handles: what stands behind the pointers of kiln_c.h, and the border that no exception crosses.
#pragma once
#include "runtime/jit/jit.h"
#include "runtime/launch/device.h"
#include <future>
#include <kiln/kiln_c.h>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

struct kiln_device {
  kiln::Device device;
  std::string description;
  std::mutex mutex;
  std::map<const void*, kiln::DeviceMemory> memory; // by address
};

struct kiln_jit {
  kiln::Jit jit;
};

struct kiln_pending {
  std::shared_future<kiln::Kernel> kernel;
};

struct kiln_kernel {
  explicit kiln_kernel(kiln::Kernel kernel_) : kernel(std::move(kernel_)), spec(kernel.spec_text()) {}
  // Loaded once for each device. Keeps the device's memory and modules alive.
  kiln::LoadedKernel load(const kiln::Device& device) const;

  const kiln::Kernel kernel;
  const std::string spec;
  mutable std::mutex mutex;
  mutable std::string interface; // empty until somebody asks
  mutable std::vector<std::pair<const kiln::DeviceBackend*, kiln::LoadedKernel>> loaded;
};

struct kiln_bound {
  kiln::BoundKernel bound;
};

namespace kiln::c {

// Keeps the error in flight as this thread's text, and says its code.
kiln_status keep_error() noexcept;

// Throws UserError when `pointer` is null: "kiln_jit_compile: spec is NULL; ...".
void require(const void* pointer, const char* function, const char* what);

// Runs what a function of the C ABI does. Nothing leaves but a code.
template <class Work> kiln_status guarded(Work&& work) noexcept {
  try {
    work();
    return KILN_OK;
  } catch (...) {
    return keep_error();
  }
}

DType dtype_of(const char* name, const std::string& subject); // throws UserError that names the types

// As bind takes them. Throws UserError that names the argument.
std::vector<Argument> arguments_of(const std::string& kernel, std::span<const kiln_argument> given);

} // namespace kiln::c
