// bind: every check of a kernel's arguments, once, and the argument block that launches use again and again.
#include "gen/error.h"
#include "runtime/launch/kernel_on_device.h"
#include "runtime/launch/loaded_kernel.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace kiln {

class Binder {
public:
  Binder(std::shared_ptr<KernelOnDevice> on_device, std::span<const Argument> given)
      : on_device_(std::move(on_device)), kernel_(on_device_->kernel), given_(given), used_(given.size()) {}

  BoundKernel bind() {
    auto launch = std::make_shared<BoundKernel::BoundLaunch>();
    launch->block.resize(block_bytes());
    block_ = launch->block;
    for (const TensorRule& rule : on_device_->tensors) add_tensor(rule);
    check_given_workspace();
    check_overlaps();
    add_numbers();
    refuse_unknown();
    launch->packet.blocks = blocks();
    launch->packet.threads = static_cast<std::uint32_t>(kernel_.launch().threads);
    launch->workspace = add_workspace(); // last, since it may allocate
    for (const KernelArgument& argument : kernel_.arguments())
      launch->parameters.push_back(&launch->block[static_cast<std::size_t>(argument.offset)]);
    launch->packet.block = launch->block;
    launch->packet.parameters = launch->parameters.data();
    launch->code = on_device_->code.get();
    launch->kernel = on_device_;
    return BoundKernel(std::move(launch));
  }

private:
  struct Region { // of device memory: `rows` pieces of `row` bytes, `pitch` bytes apart
    std::string name;
    std::uint64_t address = 0, row = 0, rows = 1, pitch = 0;
    bool written = false;
    std::uint64_t end() const { return address + (rows - 1) * pitch + row; }
  };

  std::string subject(const std::string& argument) const {
    return fmt::format("kernel {}, argument {}", kernel_.name(), argument);
  }

  std::size_t block_bytes() const {
    std::size_t bytes = 0;
    for (const KernelArgument& a : kernel_.arguments()) bytes = std::max(bytes, static_cast<std::size_t>(a.offset + a.size));
    return bytes;
  }

  const Argument* find(const std::string& name) {
    const Argument* found = nullptr;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (given_[i].name != name) continue;
      if (found != nullptr) throw UserError(subject(name), "it is given twice", "give it once");
      found = &given_[i];
      used_[i] = true;
    }
    return found;
  }

  const DeviceTensor* find_tensor(const std::string& name) {
    const Argument* argument = find(name);
    if (argument == nullptr) return nullptr;
    if (const auto* tensor = std::get_if<DeviceTensor>(&argument->value)) return tensor;
    throw UserError(subject(name), fmt::format("it is a tensor, and the number {} is given", std::get<double>(argument->value)),
                    "give a DeviceTensor");
  }

  void put(const KernelArgument& argument, std::uint64_t bits) {
    std::memcpy(&block_[static_cast<std::size_t>(argument.offset)], &bits, static_cast<std::size_t>(argument.size));
  }

  // ---- tensors

  void add_tensor(const TensorRule& rule) {
    const DeviceTensor* tensor = find_tensor(rule.name);
    if (!rule.partner.empty()) {
      const DeviceTensor* partner = find_tensor(rule.partner);
      if (tensor != nullptr && partner != nullptr && (tensor->data != partner->data || tensor->stride() != partner->stride()))
        throw UserError(subject(rule.partner),
                        fmt::format("it is {} (stride {}), and it shares the memory of {}, which is {} (stride {})",
                                    to_text(*partner), partner->stride(), rule.name, to_text(*tensor), tensor->stride()),
                        fmt::format("give both the same, or {} alone", rule.name));
      if (partner != nullptr) check_meaning(rule, rule.partner, *partner);
      if (tensor == nullptr) tensor = partner;
    }
    if (tensor == nullptr)
      throw UserError(subject(rule.name), "it is missing",
                      fmt::format("give a DeviceTensor of {}{}", to_string(rule.dtype), to_text(rule.shape)));
    check_meaning(rule, rule.name, *tensor);
    const KernelArgument& argument = kernel_.arguments()[static_cast<std::size_t>(rule.argument)];
    check_stride(rule, *tensor);
    check_address(rule, argument, *tensor);
    put(argument, reinterpret_cast<std::uintptr_t>(tensor->data));
    if (rule.stride_argument >= 0)
      put(kernel_.arguments()[static_cast<std::size_t>(rule.stride_argument)], static_cast<std::uint64_t>(tensor->stride()));
  }

  void check_meaning(const TensorRule& rule, const std::string& name, const DeviceTensor& tensor) {
    if (tensor.dtype != rule.dtype)
      throw UserError(subject(name),
                      fmt::format("it is {}, and the kernel takes {}", to_string(tensor.dtype), to_string(rule.dtype)),
                      is_fp8(tensor.dtype) && is_fp8(rule.dtype)
                          ? "the fp8 flavours are different numbers: convert the tensor, or build the spec for its type"
                          : "give a tensor of that type, or build the spec for this one");
    if (tensor.shape.size() != rule.shape.size())
      throw UserError(subject(name),
                      fmt::format("its shape is [{}], and the kernel takes {}", fmt::join(tensor.shape, ", "), to_text(rule.shape)),
                      "give it that many dimensions");
    for (std::size_t i = 0; i < rule.shape.size(); ++i) check_size(name, rule.shape[i], i, tensor.shape[i]);
  }

  void check_size(const std::string& name, const Dim& dim, std::size_t index, std::int64_t size) {
    if (!dim.is_dynamic()) {
      if (size == dim.size()) return;
      throw UserError(subject(name),
                      fmt::format("dimension {} is {}, and the kernel was compiled for {}", index, size, dim.size()),
                      fmt::format("compile the spec with {}, or make that dimension dynamic", size));
    }
    const std::int64_t least = dim.min().value_or(0), most = dim.max().value_or(max_dim_size);
    if (size < least || size > most)
      throw UserError(subject(name), fmt::format("dimension {} is {}, and {} is {} to {}", index, size, dim.name(), least, most),
                      "give a size within these bounds, or widen them in the spec");
    for (const auto& [known, value] : sizes_) {
      if (known != dim.name()) continue;
      if (value == size) return;
      throw UserError(subject(name), fmt::format("dimension {} is {}, and {} is {} elsewhere", index, size, dim.name(), value),
                      "one run-time size has one value in a launch");
    }
    sizes_.emplace_back(dim.name(), size);
  }

  void check_stride(const TensorRule& rule, const DeviceTensor& tensor) {
    const std::int64_t row = tensor.row(), stride = tensor.stride();
    const bool one_row = tensor.shape.size() < 2 || tensor.shape.front() < 2;
    if (stride < row)
      throw UserError(subject(rule.name), fmt::format("its stride is {} elements, and a row has {}", stride, row),
                      "rows must not overlap: give at least the row's elements, or 0 for contiguous");
    if (!rule.strided && stride != row && !one_row)
      throw UserError(subject(rule.name),
                      fmt::format("its stride is {} elements, and the kernel takes rows of {} without gaps", stride, row),
                      "declare it with Layout::strided in the spec");
    if (rule.stride_argument < 0) return;
    const KernelArgument& argument = kernel_.arguments()[static_cast<std::size_t>(rule.stride_argument)];
    if (stride % std::max(argument.alignment, 1) != 0)
      throw UserError(subject(rule.name), fmt::format("its stride is {} elements, no multiple of {}", stride, argument.alignment),
                      "pad its rows; the kernel's vector accesses need it");
    if (stride > std::numeric_limits<std::uint32_t>::max())
      throw UserError(subject(rule.name), fmt::format("its stride is {} elements, and the kernel takes 32 bits", stride),
                      "choose one below 2^32");
    check_reach(rule, stride);
  }

  void check_reach(const TensorRule& rule, std::int64_t stride) {
    if (!on_device_->rows_share_waves) return;
    constexpr auto reach = std::int64_t{1} << 32; // bytes
    const std::int64_t rows = kernel_.launch().units_per_block, pitch = stride * size_bytes(rule.dtype);
    if (pitch < (reach + rows - 1) / rows) return;
    throw UserError(subject(rule.name),
                    fmt::format("its stride is {} bytes, and the {} rows of a workgroup must lie within 4 GiB", pitch, rows),
                    fmt::format("choose a stride below {} bytes, or compile with the schedule field threads_per_row=64",
                                (reach + rows - 1) / rows));
  }

  void check_address(const TensorRule& rule, const KernelArgument& argument, const DeviceTensor& tensor) {
    const auto bytes = static_cast<std::uint64_t>(tensor.bytes());
    if (bytes == 0) return;
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(tensor.data));
    if (address == 0) throw UserError(subject(rule.name), "its address is null", "allocate it");
    if (argument.alignment > 1 && address % static_cast<std::uint64_t>(argument.alignment) != 0)
      throw UserError(subject(rule.name),
                      fmt::format("its address {:#x} is no multiple of {} bytes", address, argument.alignment),
                      "align it; hipMalloc's addresses are multiples of 256");
    if (const std::string reason = on_device_->backend->why_no_memory(tensor.data, bytes); !reason.empty())
      throw UserError(subject(rule.name), reason, "give the address of an allocation of this device that is large enough");
    const auto size = static_cast<std::uint64_t>(size_bytes(rule.dtype));
    Region region{
        .name = rule.name, .address = address, .row = static_cast<std::uint64_t>(tensor.row()) * size, .written = rule.written};
    region.rows = tensor.shape.size() > 1 ? static_cast<std::uint64_t>(tensor.shape.front()) : 1;
    region.pitch = static_cast<std::uint64_t>(tensor.stride()) * size;
    regions_.push_back(std::move(region));
  }

  // ---- aliasing

  // Rows of equal pitch lie side by side when their columns do (halves of one wide buffer); what has different pitches is taken
  // for its whole range.
  static bool overlap(const Region& a, const Region& b) {
    if (a.end() <= b.address || b.end() <= a.address) return false;
    if (a.pitch != b.pitch || a.rows < 2 || b.rows < 2) return true;
    const std::uint64_t column =
        (b.address >= a.address ? b.address - a.address : a.pitch - (a.address - b.address) % a.pitch) % a.pitch;
    return column < a.row || column + b.row > a.pitch;
  }

  void check_overlaps() const {
    for (std::size_t i = 0; i < regions_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const Region &a = regions_[j], &b = regions_[i];
        if ((!a.written && !b.written) || !overlap(a, b)) continue; // inputs may share memory
        const Region &output = b.written ? b : a, &other = b.written ? a : b;
        throw UserError(subject(output.name),
                        fmt::format("it is written, and its bytes {:#x} to {:#x} overlap {} ({:#x} to {:#x})", output.address,
                                    output.end(), other.name, other.address, other.end()),
                        "give it memory of its own, or declare it in place of that input in the spec");
      }
  }

  // ---- numbers

  double find_number(const KernelArgument& argument) {
    const Argument* given = find(argument.name);
    if (given == nullptr)
      throw UserError(subject(argument.name), "it is missing", fmt::format("give a number ({})", to_string(argument.dtype)));
    if (const auto* number = std::get_if<double>(&given->value)) return *number;
    throw UserError(subject(argument.name), "it is a number, and a tensor is given",
                    fmt::format("give a number ({})", to_string(argument.dtype)));
  }

  std::uint64_t scalar_bits(const KernelArgument& argument) {
    const double number = find_number(argument);
    if (argument.dtype == f32) {
      if (std::isfinite(number) && std::abs(number) > max_finite(f32))
        throw UserError(subject(argument.name), fmt::format("{} is beyond f32", number),
                        fmt::format("give at most {}", max_finite(f32)));
      return std::bit_cast<std::uint32_t>(static_cast<float>(number));
    }
    if (number != std::trunc(number) || number < -2147483648.0 || number > 2147483647.0) // NaN too
      throw UserError(subject(argument.name), fmt::format("{} is no i32", number), "give a whole number from -2^31 to 2^31 - 1");
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(number));
  }

  std::int64_t size_of(const std::string& dim) const {
    for (const auto& [name, size] : sizes_)
      if (name == dim) return size;
    throw InternalError(fmt::format("kernel {} launches over {}, which no tensor has", kernel_.name(), dim));
  }

  std::uint64_t size_bits(const KernelArgument& argument) {
    const std::int64_t size = size_of(argument.name);
    if (std::ranges::any_of(given_, [&](const Argument& a) { return a.name == argument.name; }))
      if (const double number = find_number(argument); number != static_cast<double>(size))
        throw UserError(subject(argument.name), fmt::format("{} is given, and the tensors have {}", number, size),
                        "leave it out: it is taken from the tensors");
    return static_cast<std::uint64_t>(size);
  }

  void add_numbers() {
    for (const KernelArgument& argument : kernel_.arguments()) {
      if (argument.kind == ArgumentKind::scalar) put(argument, scalar_bits(argument));
      if (argument.kind == ArgumentKind::size) put(argument, size_bits(argument));
    }
  }

  std::uint32_t blocks() const {
    const std::uint64_t blocks = kernel_.launch().blocks([this](const std::string& dim) { return size_of(dim); });
    const auto threads = static_cast<std::uint64_t>(kernel_.launch().threads);
    const std::uint64_t most = std::numeric_limits<std::uint32_t>::max() / threads; // HIP's grids have 32 bits of threads
    if (blocks <= most) return static_cast<std::uint32_t>(blocks);
    throw UserError("kernel " + kernel_.name(),
                    fmt::format("these sizes need {} workgroups of {} threads, and HIP takes {}", blocks, threads, most),
                    "split the tensors over several launches");
  }

  // ---- workspace

  const KernelArgument* workspace_argument() const {
    const auto arguments = kernel_.arguments();
    const auto found = std::ranges::find(arguments, ArgumentKind::workspace, &KernelArgument::kind);
    return found == arguments.end() ? nullptr : &*found;
  }

  // Null when there is none, or the caller gave it.
  std::shared_ptr<void> add_workspace() {
    const KernelArgument* argument = workspace_argument();
    if (argument == nullptr || std::ranges::any_of(given_, [&](const Argument& a) { return a.name == argument->name; }))
      return nullptr;
    void* workspace = on_device_->take_workspace();
    put(*argument, reinterpret_cast<std::uintptr_t>(workspace));
    return {workspace, [owner = on_device_](void* given) { owner->give_workspace(given); }};
  }

  // A workspace that the caller owns; before overlaps are looked for.
  void check_given_workspace() {
    const KernelArgument* argument = workspace_argument();
    const DeviceTensor* given = argument == nullptr ? nullptr : find_tensor(argument->name);
    if (given == nullptr) return;
    if (given->bytes() < kernel_.workspace_bytes())
      throw UserError(subject(argument->name),
                      fmt::format("it has {} bytes, and the kernel needs {}", given->bytes(), kernel_.workspace_bytes()),
                      "give that many, zeroed, or leave it out");
    check_address({.name = argument->name, .dtype = given->dtype, .written = true}, *argument, *given);
    put(*argument, reinterpret_cast<std::uintptr_t>(given->data));
  }

  void refuse_unknown() const {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (used_[i]) continue;
      std::vector<std::string> names;
      for (const KernelArgument& a : kernel_.arguments())
        if (a.kind != ArgumentKind::stride) names.push_back(a.name);
      throw UserError(subject(given_[i].name), "the kernel has no such argument",
                      fmt::format("it has {}", fmt::join(names, ", ")));
    }
  }

  std::shared_ptr<KernelOnDevice> on_device_;
  const Kernel& kernel_;
  std::span<const Argument> given_;
  std::vector<bool> used_;
  std::span<std::byte> block_;
  std::vector<std::pair<std::string, std::int64_t>> sizes_;
  std::vector<Region> regions_;
};

const Kernel& LoadedKernel::kernel() const { return on_device_->kernel; }

BoundKernel LoadedKernel::bind(std::span<const Argument> arguments) const { return Binder(on_device_, arguments).bind(); }

} // namespace kiln
