// KernelBuffers: where each tensor lies, its bytes, and a launch bound to each set.
#include "runtime/launch/kernel_buffers.h"
#include "gen/error.h"
#include "gen/spec/preshuffle.h"
#include <algorithm>

namespace kiln {
namespace {

constexpr std::int64_t max_sets = 16384;

std::int64_t rounded(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

// The elements of `tensor` as they lie in memory with the strides of `as`.
std::vector<std::byte> packed(const Tensor& tensor, const DeviceTensor& as) {
  std::vector<std::byte> data(static_cast<std::size_t>(as.bytes()));
  if (as.stride() == as.row() && tensor.data().size() == data.size()) return tensor.data();
  const std::int64_t rows = as.row() > 0 ? tensor.size() / as.row() : 0;
  for (std::int64_t r = 0; r < rows; ++r) std::ranges::copy(tensor.row(r), data.begin() + storage_bytes(as.dtype, r * as.stride()));
  return data;
}

std::vector<std::int64_t> sizes_of(const Shape& dims, const std::map<std::string, std::int64_t>& sizes) {
  std::vector<std::int64_t> result;
  for (const Dim& dim : dims) result.push_back(dim.is_dynamic() ? sizes.at(dim.name()) : dim.size());
  return result;
}

} // namespace

KernelBuffers::KernelBuffers(const Device& device, const Kernel& kernel, const KernelSpec& spec, const Inputs& inputs, std::int64_t bytes,
                             std::int64_t least)
    : device_(device), loaded_(device.load(kernel)), spec_(spec), inputs_(inputs) {
  for (const Expr& e : spec_.inputs()) place(e->name, inputs.tensors.at(e->name).shape(), e.dtype(), &e);
  const std::map<std::string, std::int64_t> sizes = dim_sizes(spec_, inputs);
  for (const Output& o : spec_.outputs())
    if (o.in_place_of.empty()) place(o.name, sizes_of(o.value.shape(), sizes), o.dtype, nullptr);
  count_ = std::clamp<std::int64_t>((bytes + bytes_ - 1) / std::max<std::int64_t>(bytes_, 1) + (bytes > 0 ? 1 : 0), least, max_sets);
  memory_.emplace(device.allocate(static_cast<std::size_t>(count_ * bytes_), "buffers"));
  if (kernel.workspace_bytes() > 0) {
    workspace_.emplace(device.allocate(static_cast<std::size_t>(kernel.workspace_bytes()), "workspace"));
    device.zero(workspace_->data(), workspace_->bytes());
  }
  for (std::int64_t i = 0; i < count_; ++i) bind(i);
}

void KernelBuffers::place(const std::string& name, std::vector<std::int64_t> shape, DType dtype, const Expr* input) {
  Placement p{.name = name, .tensor = {.dtype = dtype, .shape = std::move(shape)}, .offset = bytes_, .data = {}};
  for (const KernelArgument& a : loaded_.kernel().arguments())
    if (a.kind == ArgumentKind::stride && a.tensor == name)
      p.tensor.row_stride = (p.tensor.row() + a.alignment - 1) / a.alignment * a.alignment;
  if (input != nullptr) {
    const Tensor& tensor = inputs_.tensors.at(name);
    p.data = (*input)->layout == Layout::preshuffled ? preshuffle(tensor.data(), tensor.shape()[0], storage_bytes(dtype, tensor.shape()[1]))
                                                     : packed(tensor, p.tensor);
  }
  bytes_ += rounded(std::max(p.tensor.bytes(), static_cast<std::int64_t>(p.data.size())));
  placements_.push_back(std::move(p));
}

DeviceTensor KernelBuffers::tensor_of(const Placement& placement, std::int64_t set) const {
  DeviceTensor tensor = placement.tensor;
  tensor.data = static_cast<std::byte*>(memory_->data()) + set * bytes_ + placement.offset;
  return tensor;
}

void KernelBuffers::bind(std::int64_t set) {
  std::vector<Argument> arguments;
  for (const Placement& p : placements_) {
    const DeviceTensor tensor = tensor_of(p, set);
    if (!p.data.empty()) device_.copy_to_device(tensor.data, p.data);
    arguments.emplace_back(p.name, tensor);
  }
  for (const auto& [name, value] : inputs_.scalars) arguments.emplace_back(name, value);
  for (const KernelArgument& a : loaded_.kernel().arguments())
    if (a.kind == ArgumentKind::workspace)
      arguments.emplace_back(a.name, workspace_->tensor(u8, {static_cast<std::int64_t>(workspace_->bytes())}));
  bound_.push_back(loaded_.bind(arguments));
}

void KernelBuffers::launch() {
  bound_[next_].launch();
  next_ = (next_ + 1) % bound_.size();
}

Outputs KernelBuffers::outputs() const {
  Outputs outputs;
  device_.synchronize();
  for (const Output& o : spec_.outputs()) {
    const auto placed = std::ranges::find(placements_, o.in_place_of.empty() ? o.name : o.in_place_of, &Placement::name);
    outputs.emplace(o.name, device_.download(tensor_of(*placed, 0)));
  }
  return outputs;
}

Outputs run_on(const Device& device, const Kernel& kernel, const KernelSpec& spec, const Inputs& inputs) {
  KernelBuffers buffers(device, kernel, spec, inputs);
  buffers.launch();
  return buffers.outputs();
}

} // namespace kiln
