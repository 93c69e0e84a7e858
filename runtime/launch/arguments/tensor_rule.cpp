// TensorRule: types, shapes, strides, addresses.
#include "runtime/launch/arguments/tensor_rule.h"
#include "gen/error.h"
#include "isa_checks/target/target_table.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace kiln {
namespace {

constexpr auto reach_of_offsets = std::int64_t{1} << 32; // bytes: see KernelArgument::alignment

TensorRule rule_of(const KernelSpec& spec, const std::vector<Expr>& inputs, const KernelArgument& argument) {
  TensorRule rule{.name = argument.name, .partner = argument.tensor};
  rule.written = argument.kind != ArgumentKind::input;
  rule.alignment = std::max(argument.alignment, 1);
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

// The most rows of a workgroup whose waves have several; 0: there is none. More units than threads are the elements of a flat problem,
// whose tensors have no strides.
std::int64_t rows_that_share_waves(const Launch& launch) {
  const bool share = launch.units_per_block > 1 && launch.threads < wave_size * launch.units_per_block;
  std::int64_t most = share ? launch.units_per_block : 0;
  if (!launch.behind.empty() && most > launch.threads) most = 0;
  for (const Launch& other : launch.behind)
    if (const std::int64_t rows = rows_that_share_waves(other); rows <= other.threads) most = std::max(most, rows);
  return most;
}

} // namespace

std::vector<TensorRule> tensor_rules(const Kernel& kernel, const KernelSpec& spec) {
  const std::vector<Expr> inputs = spec.inputs();
  const auto arguments = kernel.arguments();
  const std::int64_t rows_in_waves = rows_that_share_waves(kernel.launch());
  std::vector<TensorRule> rules;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    using enum ArgumentKind;
    if (const ArgumentKind kind = arguments[i].kind; kind != input && kind != output && kind != in_place) continue;
    TensorRule& rule = rules.emplace_back(rule_of(spec, inputs, arguments[i]));
    rule.argument = static_cast<int>(i);
    for (std::size_t s = 0; s < arguments.size(); ++s) {
      if (arguments[s].kind != stride || arguments[s].tensor != rule.name) continue;
      rule.stride_argument = static_cast<int>(s);
      rule.stride_multiple = std::max(arguments[s].alignment, 1);
    }
    if (rows_in_waves == 0 || rule.stride_argument < 0) continue;
    rule.rows_reached = rows_in_waves;
    rule.reach = (reach_of_offsets + rule.rows_reached - 1) / rule.rows_reached;
  }
  return rules;
}

void RuntimeSizes::set(const ArgumentSubject& subject, const Dim& dim, std::size_t index, std::int64_t size) {
  const std::int64_t least = dim.min().value_or(0), most = dim.max().value_or(max_dim_size);
  if (size < least || size > most)
    throw UserError(subject.text(), fmt::format("dimension {} is {}, and {} is {} to {}", index, size, dim.name(), least, most),
                    "give a size within these bounds, or widen them in the spec");
  for (const auto& [known, value] : sizes_) {
    if (known != dim.name()) continue;
    if (value == size) return;
    throw UserError(subject.text(), fmt::format("dimension {} is {}, and {} is {} elsewhere", index, size, dim.name(), value),
                    "one run-time size has one value in a launch");
  }
  sizes_.emplace_back(dim.name(), size);
}

std::int64_t RuntimeSizes::of(const std::string& dim) const {
  for (const auto& [name, size] : sizes_)
    if (name == dim) return size;
  throw InternalError(fmt::format("a kernel launches over {}, which no tensor has", dim));
}

void check_meaning(const ArgumentSubject& subject, const TensorRule& rule, const DeviceTensor& tensor, RuntimeSizes& sizes) {
  if (tensor.dtype != rule.dtype)
    throw UserError(subject.text(), fmt::format("it is {}, and the kernel takes {}", to_string(tensor.dtype), to_string(rule.dtype)),
                    is_fp8(tensor.dtype) && is_fp8(rule.dtype)
                        ? "the fp8 flavours are different numbers: convert the tensor, or build the spec for its type"
                        : "give a tensor of that type, or build the spec for this one");
  if (tensor.shape.size() != rule.shape.size())
    throw UserError(subject.text(),
                    fmt::format("its shape is [{}], and the kernel takes {}", fmt::join(tensor.shape, ", "), to_text(rule.shape)),
                    "give it that many dimensions");
  for (std::size_t i = 0; i < rule.shape.size(); ++i) {
    const Dim& dim = rule.shape[i];
    const std::int64_t size = tensor.shape[i];
    if (dim.is_dynamic()) sizes.set(subject, dim, i, size);
    else if (size != dim.size())
      throw UserError(subject.text(), fmt::format("dimension {} is {}, and the kernel was compiled for {}", i, size, dim.size()),
                      fmt::format("compile the spec with {}, or make that dimension dynamic", size));
  }
}

void check_stride(const ArgumentSubject& subject, const TensorRule& rule, const DeviceTensor& tensor) {
  const std::int64_t row = tensor.row(), stride = tensor.stride();
  const bool one_row = tensor.shape.size() < 2 || tensor.shape.front() < 2;
  if (stride < row)
    throw UserError(subject.text(), fmt::format("its stride is {} elements, and a row has {}", stride, row),
                    "rows must not overlap: give at least the row's elements, or 0 for contiguous");
  if (!rule.strided && stride != row && !one_row)
    throw UserError(subject.text(), fmt::format("its stride is {} elements, and the kernel takes rows of {} without gaps", stride, row),
                    "declare it with Layout::strided in the spec");
  if (rule.stride_argument < 0) return;
  if (stride % rule.stride_multiple != 0)
    throw UserError(subject.text(), fmt::format("its stride is {} elements, no multiple of {}", stride, rule.stride_multiple),
                    "pad its rows; the kernel's vector accesses need it");
  if (stride > std::numeric_limits<std::uint32_t>::max())
    throw UserError(subject.text(), fmt::format("its stride is {} elements, and the kernel takes 32 bits", stride),
                    "choose one below 2^32");
  const std::int64_t pitch = storage_bytes(rule.dtype, stride);
  if (rule.reach != 0 && pitch >= rule.reach)
    throw UserError(subject.text(),
                    fmt::format("its stride is {} bytes, and the {} rows of a workgroup must lie within 4 GiB", pitch, rule.rows_reached),
                    fmt::format("choose a stride below {} bytes, or compile with the schedule field threads_per_row=64", rule.reach));
}

void check_address(const ArgumentSubject& subject, int alignment, const DeviceTensor& tensor, const DeviceBackend& backend) {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(tensor.data));
  if (address == 0) throw UserError(subject.text(), "its address is null", "allocate it");
  if (alignment > 1 && address % static_cast<std::uint64_t>(alignment) != 0)
    throw UserError(subject.text(), fmt::format("its address {:#x} is no multiple of {} bytes", address, alignment),
                    "align it; hipMalloc's addresses are multiples of 256");
  const std::string reason = backend.why_no_memory(tensor.data, static_cast<std::size_t>(tensor.bytes()));
  if (!reason.empty()) throw UserError(subject.text(), reason, "give the address of an allocation of this device that is large enough");
}

MemoryRegion region_of(const TensorRule& rule, const DeviceTensor& tensor) {
  return {.name = rule.name,
          .address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(tensor.data)),
          .row = static_cast<std::uint64_t>(storage_bytes(rule.dtype, tensor.row())),
          .rows = tensor.shape.size() > 1 ? static_cast<std::uint64_t>(tensor.shape.front()) : 1,
          .pitch = static_cast<std::uint64_t>(storage_bytes(rule.dtype, tensor.stride())),
          .written = rule.written};
}

bool overlap(const MemoryRegion& a, const MemoryRegion& b) {
  if (a.end() <= b.address || b.end() <= a.address) return false;
  if (a.pitch != b.pitch || a.rows < 2 || b.rows < 2) return true;
  const std::uint64_t column = (b.address >= a.address ? b.address - a.address : a.pitch - (a.address - b.address) % a.pitch) % a.pitch;
  return column < a.row || column + b.row > a.pitch;
}

Overlap find_overlap(std::span<const MemoryRegion> regions) {
  for (std::size_t i = 0; i < regions.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const MemoryRegion &a = regions[j], &b = regions[i];
      if ((!a.written && !b.written) || !overlap(a, b)) continue; // inputs may share memory
      return b.written ? Overlap{&b, &a} : Overlap{&a, &b};
    }
  return {};
}

} // namespace kiln
