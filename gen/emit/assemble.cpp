// Assembly of a kernel: its arguments, signature and launch around what a family emits.
#include "gen/emit/assemble.h"
#include "gen/emit/values.h"
#include "gen/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

constexpr int workspace_alignment = 256;

// What the products read: a, then the matrices b and their scales, each once.
std::vector<Expr> product_operands(const Plan& plan) {
  std::vector<Expr> operands;
  const auto add = [&](const Expr& e) {
    if (std::ranges::none_of(operands, [&](const Expr& known) { return known.same_node(e); })) operands.push_back(e);
  };
  for (const Product& p : plan.products) {
    add(p.a);
    add(p.b);
    for (const Expr& scale : p.scales) add(scale);
  }
  return operands;
}

bool is_scale(const Plan& plan, const Expr& operand) {
  return std::ranges::any_of(plan.products, [&](const Product& p) {
    return std::ranges::any_of(p.scales, [&](const Expr& s) { return s.same_node(operand); });
  });
}

std::vector<KernelArgument> pointers(const Plan& plan, const Access& access) {
  std::vector<KernelArgument> list;
  for (const Expr& operand : product_operands(plan))
    list.push_back({.name = operand->name,
                    .dtype = operand.dtype(),
                    .tensor = {},
                    .size = 8,
                    .alignment = is_scale(plan, operand) ? size_bytes(operand.dtype()) : 16});
  for (const TensorPlan& t : plan.body.tensors) {
    if (!t.in_place_of.empty() || find_product(plan.products, t.name)) continue;
    KernelArgument a{.name = t.name,
                     .kind = t.output ? ArgumentKind::output : ArgumentKind::input,
                     .dtype = t.dtype,
                     .tensor = {},
                     .size = 8,
                     .alignment = t.extent == Extent::element ? access.bytes(t.dtype) : size_bytes(t.dtype)};
    for (const TensorPlan& o : plan.body.tensors)
      if (o.in_place_of == t.name) a.kind = ArgumentKind::in_place, a.tensor = o.name;
    list.push_back(std::move(a));
  }
  return list;
}

// Pointers first: the operands of products, tensors in the order of the plan, the workspace of `workspace_bytes` if any; then
// scalars, run-time sizes and strides.
std::vector<KernelArgument> kernel_arguments(const Plan& plan, const Access& access, std::int64_t workspace_bytes) {
  std::vector<KernelArgument> list = pointers(plan, access);
  if (workspace_bytes > 0)
    list.push_back({.name = workspace_name(plan), .kind = ArgumentKind::workspace, .dtype = u8, .tensor = {}, .size = 8,
                    .alignment = workspace_alignment});
  for (const Expr& s : plan.body.scalars)
    list.push_back({.name = s->name, .kind = ArgumentKind::scalar, .dtype = s.dtype(), .tensor = {}, .size = 4});
  for (const Dim& dim : plan.body.dynamic_dims)
    list.push_back({.name = dim.name(), .kind = ArgumentKind::size, .dtype = i32, .tensor = {}, .size = 4});
  for (const TensorPlan& t : plan.body.tensors)
    if (t.layout == Layout::strided && t.in_place_of.empty())
      list.push_back({.name = t.name + "_stride",
                      .kind = ArgumentKind::stride,
                      .dtype = i32,
                      .tensor = t.name,
                      .size = 4,
                      .alignment = t.extent == Extent::element ? access.stride_multiple() : 1});
  int offset = 0;
  for (KernelArgument& a : list) {
    a.offset = offset;
    offset += a.size;
  }
  return list;
}

std::string parameter(const Plan& plan, const KernelArgument& a) {
  switch (a.kind) {
  case ArgumentKind::input: return fmt::format("const {}* __restrict__ {}", device_type(a.dtype), a.name);
  case ArgumentKind::output:
  case ArgumentKind::in_place: return fmt::format("{}* __restrict__ {}", device_type(a.dtype), a.name);
  case ArgumentKind::scalar: return fmt::format("{} {}", device_type(a.dtype), a.name);
  case ArgumentKind::size: return "u32 " + a.name;
  case ArgumentKind::stride: // never used when the first dimension has size 1
    return (plan.body.tensor(a.tensor).stride_dim < 0 ? "[[maybe_unused]] u32 " : "u32 ") + a.name;
  case ArgumentKind::workspace: return "void* __restrict__ " + a.name;
  }
  throw InternalError("unknown ArgumentKind");
}

std::string parameters(const Plan& plan, const std::vector<KernelArgument>& arguments) {
  std::vector<std::string> list;
  for (const KernelArgument& a : arguments) list.push_back(parameter(plan, a));
  return fmt::format("{}", fmt::join(list, ", "));
}

} // namespace

int Access::bytes(DType type) const { return ragged ? size_bytes(type) : std::min(16, vec * size_bytes(type)); }

std::string workspace_name(const Plan& plan) {
  std::string name = "workspace";
  const auto taken = [&](const std::string& n) {
    if (std::ranges::any_of(product_operands(plan), [&](const Expr& e) { return e->name == n; })) return true;
    return std::ranges::any_of(plan.body.inputs, [&](const Expr& e) { return e->name == n; }) ||
           std::ranges::any_of(plan.body.scalars, [&](const Expr& e) { return e->name == n; }) ||
           std::ranges::any_of(plan.body.dynamic_dims, [&](const Dim& d) { return d.name() == n; }) ||
           std::ranges::any_of(plan.body.outputs, [&](const Output& o) { return o.name == n; });
  };
  while (taken(name)) name = "kiln_" + name;
  return name;
}

KernelSource assemble(const Plan& plan, const Target& target, const KernelParts& parts) {
  KernelSource source{.name = plan.spec.name(),
                      .arch = target.arch(),
                      .text = {},
                      .arguments = kernel_arguments(plan, parts.access, parts.workspace_bytes),
                      .launch = {.threads = parts.threads_per_block,
                                 .dims = {},
                                 .units_per_block = parts.units_per_block,
                                 .blocks_per_unit = parts.blocks_per_unit},
                      .workspace_bytes = parts.workspace_bytes};
  for (const Shape& dims : plan.body.outer_dims)
    for (const Dim& dim : dims) {
      if (dim.is_dynamic())
        source.launch.dims.push_back(dim);
      else
        source.launch.units *= dim.size();
    }
  source.text = fmt::format("// {} for {}. Generated by Kiln: edit the spec, not this.\n#include \"{}.h\"\n\nnamespace kiln {{\n\n{}\n",
                            source.name, source.arch, parts.door, parts.config);
  source.text += fmt::format("KILN_KERNEL({}) {}void {}({}) {{\n{}}}\n\n}} // namespace kiln\n", parts.threads, parts.attributes,
                             source.name, parameters(plan, source.arguments), parts.body);
  return source;
}

} // namespace kiln
