// Kernels of the C ABI: what they are, and how they are bound and launched.
#include "runtime/c/handles.h"
#include "runtime/launch/arguments/interface.h"
#include <fmt/format.h>

kiln::LoadedKernel kiln_kernel::load(const kiln::Device& device) const {
  const std::lock_guard lock(mutex);
  for (const auto& [backend, kernel_there] : loaded)
    if (backend == &device.backend()) return kernel_there;
  return loaded.emplace_back(&device.backend(), device.load(kernel)).second;
}

namespace kiln::c {
namespace {

DeviceTensor tensor_of(const kiln_tensor& given, const std::string& subject) {
  if (given.rank < 0 || given.rank > max_rank)
    throw UserError(subject, fmt::format("its rank is {}", given.rank),
                    fmt::format("give the number of its dimensions, at most {}", max_rank));
  const auto rank = static_cast<std::size_t>(given.rank);
  if (rank != 0) require(given.shape, subject.c_str(), "its shape");
  const std::span strides(given.strides, given.strides == nullptr ? 0 : rank);
  return strided_tensor(given.data, dtype_of(given.dtype, subject), {given.shape, rank}, strides, subject);
}

} // namespace

std::vector<Argument> arguments_of(const std::string& kernel, std::span<const kiln_argument> given) {
  std::vector<Argument> arguments;
  arguments.reserve(given.size());
  for (const kiln_argument& argument : given) {
    require(argument.name, "kiln_kernel_bind", "the name of an argument");
    if (argument.tensor == nullptr) arguments.emplace_back(argument.name, argument.number);
    else arguments.emplace_back(argument.name, tensor_of(*argument.tensor, fmt::format("kernel {}, argument {}", kernel, argument.name)));
  }
  return arguments;
}

} // namespace kiln::c

using namespace kiln;

extern "C" {

void kiln_kernel_free(kiln_kernel* kernel) { delete kernel; }
const char* kiln_kernel_name(const kiln_kernel* kernel) { return kernel == nullptr ? nullptr : kernel->kernel.name().c_str(); }
const char* kiln_kernel_arch(const kiln_kernel* kernel) { return kernel == nullptr ? nullptr : kernel->kernel.arch().c_str(); }
const char* kiln_kernel_key(const kiln_kernel* kernel) { return kernel == nullptr ? nullptr : kernel->kernel.key().c_str(); }
const char* kiln_kernel_origin(const kiln_kernel* kernel) {
  return kernel == nullptr ? nullptr : to_string(kernel->kernel.origin()).data(); // of a literal
}
const char* kiln_kernel_spec(const kiln_kernel* kernel) { return kernel == nullptr ? nullptr : kernel->spec.c_str(); }
const char* kiln_kernel_meta(const kiln_kernel* kernel) { return kernel == nullptr ? nullptr : kernel->kernel.meta().c_str(); }

const char* kiln_kernel_interface(const kiln_kernel* kernel) {
  if (kernel == nullptr) return nullptr;
  const kiln_status status = c::guarded([&] {
    const std::lock_guard lock(kernel->mutex);
    if (kernel->interface.empty()) kernel->interface = to_json(interface_of(kernel->kernel));
  });
  return status == KILN_OK ? kernel->interface.c_str() : nullptr;
}

size_t kiln_kernel_workspace_bytes(const kiln_kernel* kernel) {
  return kernel == nullptr ? 0 : static_cast<std::size_t>(kernel->kernel.workspace_bytes());
}

const void* kiln_kernel_code_object(const kiln_kernel* kernel, size_t* bytes) {
  if (kernel == nullptr) return nullptr;
  const std::span<const std::byte> object = kernel->kernel.code_object();
  if (bytes != nullptr) *bytes = object.size();
  return object.data();
}

kiln_status kiln_kernel_load(const kiln_kernel* kernel, const kiln_device* device) {
  return c::guarded([&] {
    c::require(kernel, "kiln_kernel_load", "kernel");
    c::require(device, "kiln_kernel_load", "device");
    static_cast<void>(kernel->load(device->device));
  });
}

kiln_status kiln_kernel_bind(const kiln_kernel* kernel, const kiln_device* device, const kiln_argument* arguments, size_t count,
                             kiln_bound** bound) {
  return c::guarded([&] {
    c::require(kernel, "kiln_kernel_bind", "kernel");
    c::require(device, "kiln_kernel_bind", "device");
    c::require(bound, "kiln_kernel_bind", "bound");
    if (count != 0) c::require(arguments, "kiln_kernel_bind", "arguments");
    const std::vector<Argument> list = c::arguments_of(kernel->kernel.name(), {arguments, count});
    *bound = new kiln_bound{.bound = kernel->load(device->device).bind(list)};
  });
}

void kiln_bound_free(kiln_bound* bound) { delete bound; }

void kiln_bound_grid(const kiln_bound* bound, uint32_t* workgroups, uint32_t* threads) {
  if (bound == nullptr) return;
  if (workgroups != nullptr) *workgroups = bound->bound.blocks();
  if (threads != nullptr) *threads = bound->bound.threads();
}

kiln_status kiln_bound_launch(const kiln_bound* bound, void* stream) {
  return c::guarded([&] {
    c::require(bound, "kiln_bound_launch", "bound");
    bound->bound.launch(stream);
  });
}

} // extern "C"
