// check_layout: two descriptions of one argument block must agree, since a launch that follows the wrong one writes anywhere.
#include "runtime/launch/layout.h"
#include "gen/error.h"
#include "isa_checks/object/code_object.h"
#include "isa_checks/error.h"
#include <cstring>
#include <fmt/format.h>
#include <vector>

namespace kiln {
namespace {

[[noreturn]] void disagree(const Kernel& kernel, const std::string& fact) {
  throw EnvironmentError("kernel " + kernel.name(), fact,
                         fmt::format("remove its entry from the cache (key {}) and compile it again", kernel.key()));
}

bool is_pointer(ArgumentKind kind) {
  using enum ArgumentKind;
  return kind == input || kind == output || kind == in_place || kind == workspace;
}

isa::CodeObject parse(const Kernel& kernel) {
  const auto image = kernel.code_object();
  isa::Bytes bytes(image.size());
  std::memcpy(bytes.data(), image.data(), image.size());
  try {
    return isa::load_code_object(std::move(bytes), kernel.name());
  } catch (const isa::Error& error) {
    disagree(kernel, fmt::format("its code object cannot be read ({})", error.what()));
  }
}

void check_argument(const Kernel& kernel, std::size_t index, const KernelArgument& ours, const isa::KernelArgument& theirs) {
  const char* expected = is_pointer(ours.kind) ? "global_buffer" : "by_value";
  // Names are not compared: hipRTC's code objects have none.
  if (theirs.offset == static_cast<std::uint32_t>(ours.offset) && theirs.size == static_cast<std::uint32_t>(ours.size) &&
      theirs.value_kind == expected)
    return;
  disagree(kernel,
           fmt::format("argument {} is {} ({}, {} bytes at {}) in the spec and {}, {} bytes at {} in the code object", index,
                       ours.name, expected, ours.size, ours.offset, theirs.value_kind, theirs.size, theirs.offset));
}

} // namespace

void check_layout(const Kernel& kernel) {
  const isa::CodeObject object = parse(kernel);
  if (object.target().arch != kernel.arch())
    disagree(kernel, fmt::format("its code object is for {}, not for {}", object.target().arch, kernel.arch()));
  const isa::Kernel* code = object.find(kernel.name());
  if (code == nullptr) disagree(kernel, "its code object has no kernel of that name");
  if (!code->metadata) disagree(kernel, "its code object says nothing about the arguments");
  std::vector<const isa::KernelArgument*> declared;
  for (const isa::KernelArgument& argument : code->metadata->arguments)
    if (!argument.hidden()) declared.push_back(&argument);
  const auto ours = kernel.arguments();
  if (declared.size() != ours.size())
    disagree(kernel, fmt::format("it has {} arguments in the spec and {} in the code object", ours.size(), declared.size()));
  for (std::size_t i = 0; i < ours.size(); ++i) check_argument(kernel, i, ours[i], *declared[i]);
  if (!ours.empty() && code->descriptor.kernarg_bytes < static_cast<std::uint32_t>(ours.back().offset + ours.back().size))
    disagree(kernel, fmt::format("its arguments end at {} bytes, and its code object takes {}", ours.back().offset + ours.back().size,
                                 code->descriptor.kernarg_bytes));
  const auto most = code->metadata->max_flat_workgroup_size;
  if (most && *most < static_cast<std::uint32_t>(kernel.launch().threads))
    disagree(kernel, fmt::format("its code object takes workgroups of at most {} threads, the launch has {}", *most,
                                 kernel.launch().threads));
}

} // namespace kiln
