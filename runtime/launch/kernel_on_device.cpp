// KernelOnDevice: what the spec says about each tensor, and the pool of workspaces.
#include "runtime/launch/kernel_on_device.h"
#include "gen/error.h"
#include "runtime/launch/layout.h"
#include "templates/common/config.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

TensorRule rule(const KernelSpec& spec, const std::vector<Expr>& inputs, const KernelArgument& argument) {
  TensorRule rule{.name = argument.name, .partner = argument.tensor};
  rule.written = argument.kind != ArgumentKind::input;
  const auto output = std::ranges::find(spec.outputs(), argument.name, &Output::name);
  const auto input = std::ranges::find_if(inputs, [&](const Expr& e) { return e->name == argument.name; });
  if (argument.kind == ArgumentKind::output && output != spec.outputs().end()) {
    rule.dtype = output->dtype, rule.shape = output->value.shape(), rule.strided = output->layout == Layout::strided;
  } else if (argument.kind != ArgumentKind::output && input != inputs.end()) {
    rule.dtype = input->dtype(), rule.shape = input->shape(), rule.strided = (*input)->layout == Layout::strided;
  } else {
    throw InternalError(fmt::format("kernel {} takes a tensor {} that its spec does not have", spec.name(), argument.name));
  }
  return rule;
}

std::vector<TensorRule> rules(const Kernel& kernel) {
  const KernelSpec spec = parse_spec(kernel.spec_text());
  const std::vector<Expr> inputs = spec.inputs();
  const auto arguments = kernel.arguments();
  std::vector<TensorRule> list;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    using enum ArgumentKind;
    if (const ArgumentKind kind = arguments[i].kind; kind != input && kind != output && kind != in_place) continue;
    TensorRule& added = list.emplace_back(rule(spec, inputs, arguments[i]));
    added.argument = static_cast<int>(i);
    for (std::size_t s = 0; s < arguments.size(); ++s)
      if (arguments[s].kind == stride && arguments[s].tensor == added.name) added.stride_argument = static_cast<int>(s);
  }
  return list;
}

} // namespace

KernelOnDevice::KernelOnDevice(std::shared_ptr<DeviceBackend> backend_, Kernel kernel_)
    : backend(std::move(backend_)), kernel(std::move(kernel_)) {
  if (kernel.arch() != backend->arch())
    throw UserError("kernel " + kernel.name(),
                    fmt::format("it was compiled for {}, the device is {}", kernel.arch(), backend->description()),
                    fmt::format("compile it with a Jit for {}", backend->arch()));
  check_layout(kernel);
  tensors = rules(kernel);
  const Launch& launch = kernel.launch();
  rows_share_waves = launch.units_per_block > 1 && launch.threads < wave_size * launch.units_per_block;
  code = backend->load(kernel);
}

KernelOnDevice::~KernelOnDevice() {
  for (void* workspace : all_) backend->release(workspace);
}

void* KernelOnDevice::take_workspace() {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    void* workspace = free_.back();
    free_.pop_back();
    return workspace;
  }
  const auto bytes = static_cast<std::size_t>(kernel.workspace_bytes());
  all_.reserve(all_.size() + 1);
  free_.reserve(all_.size() + 1); // so that giving back never allocates
  void* workspace = backend->allocate(bytes, kernel.name() + " workspace");
  try {
    backend->zero(workspace, bytes, nullptr);
  } catch (...) {
    backend->release(workspace);
    throw;
  }
  all_.push_back(workspace);
  return workspace;
}

void KernelOnDevice::give_workspace(void* workspace) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(workspace);
}

} // namespace kiln
