// bind: every check of a kernel's arguments, once, and the argument block that launches use again and again.
#include "gen/error.h"
#include "gen/spec/names.h"
#include "runtime/launch/arguments/argument_block.h"
#include "runtime/launch/kernel_on_device.h"
#include "runtime/launch/loaded_kernel.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {

class Binder {
public:
  Binder(std::shared_ptr<KernelOnDevice> on_device, std::span<const Argument> given)
      : on_device_(std::move(on_device)), kernel_(on_device_->kernel), given_(given), used_(given.size()), block_(kernel_.arguments()) {}

  BoundKernel bind() {
    auto launch = std::make_shared<BoundKernel::BoundLaunch>();
    launch->kernel = on_device_;
    launch->code = on_device_->code.get();
    regions_.reserve(on_device_->tensors.size() + 1);
    for (const TensorRule& rule : on_device_->tensors) add_tensor(rule);
    launch->given_workspace = add_given_workspace();
    check_overlaps();
    add_numbers();
    refuse_unknown();
    const auto blocks = workgroups(kernel_.name(), kernel_.launch(), [this](const std::string& dim) { return sizes_.of(dim); });
    if (needs_workspace()) { // last, since it may allocate
      launch->workspace = std::make_unique<TakenWorkspace>(on_device_->workspaces);
      block_.put(*workspace_argument(), reinterpret_cast<std::uintptr_t>(launch->workspace->address()));
    }
    launch->block = block_.take();
    launch->parameters.reserve(kernel_.arguments().size());
    for (const KernelArgument& argument : kernel_.arguments())
      launch->parameters.push_back(&launch->block[static_cast<std::size_t>(argument.offset)]);
    launch->packet = {.blocks = blocks,
                      .threads = static_cast<std::uint32_t>(kernel_.launch().workgroup_threads()),
                      .block = launch->block,
                      .parameters = launch->parameters.data()};
    return BoundKernel(std::move(launch));
  }

private:
  ArgumentSubject subject(const std::string& argument) const { return {kernel_.name(), argument}; }
  const KernelArgument& argument(int index) const { return kernel_.arguments()[static_cast<std::size_t>(index)]; }

  const Argument* find(const std::string& name) {
    const Argument* found = nullptr;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (given_[i].name != name) continue;
      if (found != nullptr) throw UserError(subject(name).text(), "it is given twice", "give it once");
      found = &given_[i];
      used_[i] = true;
    }
    return found;
  }

  // ---- tensors

  const DeviceTensor* find_tensor(const std::string& name) {
    const Argument* argument = find(name);
    if (argument == nullptr) return nullptr;
    if (const auto* tensor = std::get_if<DeviceTensor>(&argument->value)) return tensor;
    throw UserError(subject(name).text(), fmt::format("it is a tensor, and the number {} is given", std::get<double>(argument->value)),
                    "give a DeviceTensor");
  }

  // Under either name of an in-place pair.
  const DeviceTensor& tensor_for(const TensorRule& rule) {
    const DeviceTensor* tensor = find_tensor(rule.name);
    const DeviceTensor* partner = rule.partner.empty() ? nullptr : find_tensor(rule.partner);
    if (tensor != nullptr && partner != nullptr && (tensor->data != partner->data || tensor->stride() != partner->stride()))
      throw UserError(subject(rule.partner).text(),
                      fmt::format("it is {} (stride {}), and it shares the memory of {}, which is {} (stride {})", to_text(*partner),
                                  partner->stride(), rule.name, to_text(*tensor), tensor->stride()),
                      fmt::format("give both the same, or {} alone", rule.name));
    if (partner != nullptr) check_meaning(subject(rule.partner), rule, *partner, sizes_);
    if (tensor == nullptr) tensor = partner;
    if (tensor == nullptr)
      throw UserError(subject(rule.name).text(), "it is missing",
                      fmt::format("give a DeviceTensor of {}{}", to_string(rule.dtype), to_text(rule.shape)));
    return *tensor;
  }

  void add_tensor(const TensorRule& rule) {
    const DeviceTensor& tensor = tensor_for(rule);
    const ArgumentSubject tensor_subject = subject(rule.name);
    check_meaning(tensor_subject, rule, tensor, sizes_);
    check_stride(tensor_subject, rule, tensor);
    if (tensor.bytes() != 0) {
      check_address(tensor_subject, rule.alignment, tensor, *on_device_->backend);
      regions_.push_back(region_of(rule, tensor));
    }
    block_.put(argument(rule.argument), reinterpret_cast<std::uintptr_t>(tensor.data));
    if (rule.stride_argument >= 0) block_.put(argument(rule.stride_argument), static_cast<std::uint64_t>(tensor.stride()));
  }

  void check_overlaps() const {
    const auto [written, other] = find_overlap(regions_);
    if (written == nullptr) return;
    throw UserError(subject(written->name).text(),
                    fmt::format("it is written, and its bytes {:#x} to {:#x} overlap {} ({:#x} to {:#x})", written->address, written->end(),
                                other->name, other->address, other->end()),
                    "give it memory of its own, or declare it in place of that input in the spec");
  }

  // ---- numbers

  double find_number(const KernelArgument& argument) {
    const Argument* given = find(argument.name);
    if (given != nullptr)
      if (const auto* number = std::get_if<double>(&given->value)) return *number;
    throw UserError(subject(argument.name).text(), given == nullptr ? "it is missing" : "it is a number, and a tensor is given",
                    fmt::format("give a number ({})", to_string(argument.dtype)));
  }

  std::uint64_t size_bits(const KernelArgument& argument) {
    const std::int64_t size = sizes_.of(argument.name);
    if (is_given(argument.name))
      if (const double number = find_number(argument); number != static_cast<double>(size))
        throw UserError(subject(argument.name).text(), fmt::format("{} is given, and the tensors have {}", number, size),
                        "leave it out: it is taken from the tensors");
    return static_cast<std::uint64_t>(size);
  }

  void add_numbers() {
    for (const KernelArgument& argument : kernel_.arguments()) {
      if (argument.kind == ArgumentKind::scalar) block_.put(argument, scalar_bits(kernel_.name(), argument, find_number(argument)));
      if (argument.kind == ArgumentKind::size) block_.put(argument, size_bits(argument));
    }
  }

  // ---- workspace

  bool is_given(const std::string& name) const {
    return std::ranges::any_of(given_, [&](const Argument& a) { return a.name == name; });
  }
  const KernelArgument* workspace_argument() const {
    const auto arguments = kernel_.arguments();
    const auto found = std::ranges::find(arguments, ArgumentKind::workspace, &KernelArgument::kind);
    return found == arguments.end() ? nullptr : &*found;
  }
  bool needs_workspace() const { return workspace_argument() != nullptr && !is_given(workspace_argument()->name); }

  // One that the caller owns; before overlaps are looked for.
  std::unique_ptr<const WorkspaceOwners::Held> add_given_workspace() {
    const KernelArgument* argument = workspace_argument();
    const DeviceTensor* given = argument == nullptr ? nullptr : find_tensor(argument->name);
    if (given == nullptr) return nullptr;
    if (given->bytes() < kernel_.workspace_bytes())
      throw UserError(subject(argument->name).text(),
                      fmt::format("it has {} bytes, and the kernel needs {}", given->bytes(), kernel_.workspace_bytes()),
                      "give that many, zeroed, or leave it out");
    check_address(subject(argument->name), argument->alignment, *given, *on_device_->backend);
    regions_.push_back(region_of({.name = argument->name, .dtype = given->dtype, .written = true}, *given));
    const auto address = reinterpret_cast<std::uintptr_t>(given->data);
    block_.put(*argument, address);
    return on_device_->backend->given_workspaces().hold(subject(argument->name).text(), address, static_cast<std::size_t>(given->bytes()),
                                                        kernel_.name(), kernel_.key());
  }

  void refuse_unknown() const {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (used_[i]) continue;
      std::vector<std::string_view> names;
      for (const KernelArgument& a : kernel_.arguments())
        if (a.kind != ArgumentKind::stride) names.push_back(a.name);
      throw UserError(subject(given_[i].name).text(), "the kernel has no such argument", did_you_mean(given_[i].name, names));
    }
  }

  std::shared_ptr<KernelOnDevice> on_device_;
  const Kernel& kernel_;
  std::span<const Argument> given_;
  std::vector<bool> used_;
  ArgumentBlock block_;
  RuntimeSizes sizes_;
  std::vector<MemoryRegion> regions_;
};

const Kernel& LoadedKernel::kernel() const { return on_device_->kernel; }

BoundKernel LoadedKernel::bind(std::span<const Argument> arguments) const { return Binder(on_device_, arguments).bind(); }

} // namespace kiln
