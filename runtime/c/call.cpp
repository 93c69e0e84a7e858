// Calls of the C ABI: a kernel with the shapes of its arguments, bound and launched with other addresses each time.
#include "runtime/c/handles.h"
#include <algorithm>

struct kiln_call {
  kiln::LoadedKernel kernel;
  std::size_t tensors = 0;
  mutable std::mutex mutex; // of the arguments, which are those of the launch that is being bound
  mutable std::vector<kiln::Argument> arguments;

  kiln::BoundKernel bind(void* const* addresses, const double* numbers) const {
    const std::lock_guard lock(mutex);
    for (kiln::Argument& argument : arguments)
      if (auto* const tensor = std::get_if<kiln::DeviceTensor>(&argument.value)) tensor->data = *addresses++;
      else argument.value = *numbers++;
    return kernel.bind(arguments);
  }
};

using namespace kiln;

extern "C" {

kiln_status kiln_call_create(const kiln_kernel* kernel, const kiln_device* device, const kiln_argument* arguments, size_t count,
                             kiln_call** call) {
  return c::guarded([&] {
    c::require(kernel, "kiln_call_create", "kernel");
    c::require(device, "kiln_call_create", "device");
    c::require(call, "kiln_call_create", "call");
    if (count != 0) c::require(arguments, "kiln_call_create", "arguments");
    std::vector<Argument> list = c::arguments_of(kernel->kernel.name(), {arguments, count});
    const auto tensors = static_cast<std::size_t>(
        std::ranges::count_if(list, [](const Argument& each) { return std::holds_alternative<DeviceTensor>(each.value); }));
    *call = new kiln_call{.kernel = kernel->load(device->device), .tensors = tensors, .mutex = {}, .arguments = std::move(list)};
  });
}

void kiln_call_free(kiln_call* call) { delete call; }

kiln_status kiln_call_launch(const kiln_call* call, void* const* addresses, const double* numbers, void* stream) {
  return c::guarded([&] {
    c::require(call, "kiln_call_launch", "call");
    if (call->tensors != 0) c::require(addresses, "kiln_call_launch", "addresses");
    if (call->tensors != call->arguments.size()) c::require(numbers, "kiln_call_launch", "numbers");
    call->bind(addresses, numbers).launch(stream);
  });
}

} // extern "C"
