// check_layout: descriptions of one argument block must agree, since a launch that follows a wrong one writes anywhere.
#include "runtime/launch/arguments/layout.h"
#include "gen/error.h"
#include "isa_checks/error.h"
#include "isa_checks/object/code_object.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <vector>

namespace kiln {
namespace {

using enum ArgumentKind;

constexpr int max_alignment = 4096;                           // bytes or elements; what Kiln emits is at most 256
constexpr std::int64_t max_workspace = std::int64_t{1} << 34; // bytes; what Kiln plans is at most some MiB

[[noreturn]] void disagree(const Kernel& kernel, const std::string& fact) {
  throw EnvironmentError("kernel " + kernel.name(), fact,
                         fmt::format("remove its entry from the cache (key {}) and compile it again", kernel.key()));
}

bool is_pointer(ArgumentKind kind) { return kind == input || kind == output || kind == in_place || kind == workspace; }

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

KernelSpec spec_of(const Kernel& kernel) {
  try {
    return parse_spec(kernel.spec_text());
  } catch (const UserError& error) {
    disagree(kernel, fmt::format("its spec cannot be read ({})", error.what()));
  }
}

bool names_one_of(const std::vector<Expr>& nodes, const std::string& name) {
  return std::ranges::any_of(nodes, [&](const Expr& e) { return e->name == name; });
}

bool is_size(const KernelSpec& spec, const std::string& name) {
  return std::ranges::any_of(spec.dynamic_dims(), [&](const Dim& dim) { return dim.name() == name; });
}

// True when the spec has the thing that the argument stands for.
bool is_of(const KernelSpec& spec, std::span<const KernelArgument> arguments, const KernelArgument& a) {
  const auto outputs = [&](const std::string& name) {
    return std::ranges::find(spec.outputs(), name, &Output::name) != spec.outputs().end();
  };
  switch (a.kind) {
  case input: return names_one_of(spec.inputs(), a.name);
  case in_place: return names_one_of(spec.inputs(), a.name) && outputs(a.tensor);
  case output: return outputs(a.name);
  case scalar: return names_one_of(spec.scalars(), a.name);
  case size: return is_size(spec, a.name);
  case stride: return std::ranges::any_of(arguments, [&](const KernelArgument& t) { return t.name == a.tensor && is_pointer(t.kind); });
  case workspace: return true;
  }
  return false;
}

void check_block(const Kernel& kernel, const KernelSpec& spec, std::uint32_t segment_bytes) {
  const auto arguments = kernel.arguments();
  int end = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgument& a = arguments[i];
    const auto refuse = [&](const std::string& fact) { disagree(kernel, fmt::format("argument {} is {}: {}", i, a.name, fact)); };
    if (!is_of(spec, arguments, a)) refuse(fmt::format("its spec has no such {}", to_string(a.kind)));
    if (std::ranges::count(arguments, a.name, &KernelArgument::name) != 1) refuse("another one has that name");
    const int bytes = is_pointer(a.kind) ? 8 : 4;
    if (a.size != bytes) refuse(fmt::format("it has {} bytes instead of {}", a.size, bytes));
    if (a.offset < end) refuse(fmt::format("it lies at {}, before the end of those before it at {}", a.offset, end));
    if (a.offset % bytes != 0) refuse(fmt::format("it lies at {}, no multiple of {}", a.offset, bytes));
    if (static_cast<std::int64_t>(a.offset) + bytes > segment_bytes)
      refuse(fmt::format("it lies at {}, and the kernarg segment has {} bytes", a.offset, segment_bytes));
    if (a.alignment < 0 || a.alignment > max_alignment) refuse(fmt::format("it has an alignment of {}", a.alignment));
    end = a.offset + bytes;
  }
  const auto workspaces = std::ranges::count(arguments, workspace, &KernelArgument::kind);
  const std::int64_t bytes = kernel.workspace_bytes();
  if (workspaces > 1 || bytes < 0 || bytes > max_workspace || (bytes > 0) != (workspaces == 1))
    disagree(kernel, fmt::format("it has a workspace of {} bytes and {} arguments for it", bytes, workspaces));
}

void check_launch(const Kernel& kernel, const Launch& launch, const KernelSpec& spec, const isa::TargetFacts& target) {
  const auto within = [](std::int64_t value) { return value >= 1 && value <= max_dim_size; };
  if (launch.threads < 1 || launch.threads > max_workgroup_size)
    disagree(kernel,
             fmt::format("it launches workgroups of {} threads, and {} takes 1 to {}", launch.threads, target.name, max_workgroup_size));
  if (!within(launch.units_per_block) || !within(launch.blocks_per_unit) || !within(launch.units))
    disagree(kernel, fmt::format("its grid has {} units, {} units a workgroup and {} workgroups a unit", launch.units,
                                 launch.units_per_block, launch.blocks_per_unit));
  for (const Dim& dim : launch.dims)
    if (dim.is_dynamic() && !is_size(spec, dim.name()))
      disagree(kernel, fmt::format("its grid is over {}, which its spec does not have", dim.name()));
  for (const Launch& other : launch.behind) check_launch(kernel, other, spec, target);
}

void check_argument(const Kernel& kernel, std::size_t index, const KernelArgument& ours, const isa::KernelArgument& theirs) {
  const char* expected = is_pointer(ours.kind) ? "global_buffer" : "by_value";
  // Names are not compared: hipRTC's code objects have none.
  if (theirs.offset == static_cast<std::uint32_t>(ours.offset) && theirs.size == static_cast<std::uint32_t>(ours.size) &&
      theirs.value_kind == expected)
    return;
  disagree(kernel, fmt::format("argument {} is {} ({}, {} bytes at {}) in the spec and {}, {} bytes at {} in the code object", index,
                               ours.name, expected, ours.size, ours.offset, theirs.value_kind, theirs.size, theirs.offset));
}

void check_code(const Kernel& kernel, const isa::Kernel& code) {
  std::vector<const isa::KernelArgument*> declared;
  for (const isa::KernelArgument& argument : code.metadata->arguments)
    if (!argument.hidden()) declared.push_back(&argument);
  const auto ours = kernel.arguments();
  if (declared.size() != ours.size())
    disagree(kernel, fmt::format("it has {} arguments in the spec and {} in the code object", ours.size(), declared.size()));
  for (std::size_t i = 0; i < ours.size(); ++i) check_argument(kernel, i, ours[i], *declared[i]);
  const auto most = code.metadata->max_flat_workgroup_size;
  if (most && static_cast<std::int64_t>(*most) < kernel.launch().workgroup_threads())
    disagree(kernel, fmt::format("its code object takes workgroups of at most {} threads, the launch has {}", *most,
                                 kernel.launch().workgroup_threads()));
}

} // namespace

KernelSpec check_layout(const Kernel& kernel) {
  const isa::CodeObject object = parse(kernel);
  if (object.target().name != kernel.arch())
    disagree(kernel, fmt::format("its code object is for {}, not for {}", object.target().name, kernel.arch()));
  const isa::Kernel* code = object.find(kernel.name());
  if (code == nullptr) disagree(kernel, "its code object has no kernel of that name");
  if (!code->metadata) disagree(kernel, "its code object says nothing about the arguments");
  const KernelSpec spec = spec_of(kernel);
  check_code(kernel, *code);
  const std::uint32_t segment = code->descriptor.kernarg_bytes;
  check_block(kernel, spec, std::min(segment, code->metadata->kernarg_bytes.value_or(segment)));
  check_launch(kernel, kernel.launch(), spec, object.target());
  return spec;
}

} // namespace kiln
