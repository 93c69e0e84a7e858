// Plan: the iteration space of a spec, and the extent and level of every value.
#include "gen/plan/plan.h"
#include "gen/error.h"
#include "gen/spec/graph.h"
#include "gen/plan/validate.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

bool is_one(const Dim& dim) { return same_size(dim, 1); }
bool is_row_reduction(Op op) { return info(op).kind == OpKind::row_reduce; }
bool is_group_reduction(Op op) { return info(op).kind == OpKind::group_reduce; }

// Every group size of the spec.
std::vector<std::int64_t> group_sizes(std::span<const Expr> nodes) {
  std::vector<std::int64_t> sizes;
  for (const Expr& node : nodes)
    if (node->group && std::ranges::find(sizes, node->group) == sizes.end()) sizes.push_back(node->group);
  return sizes;
}

class Planner {
public:
  Planner(const KernelSpec& spec, const Target& target, bool by_rows) : plan_{.spec = merge_equal_nodes(spec)}, by_rows_(by_rows) {
    validate(plan_.spec);
    require_native_types(plan_.spec, target);
    nodes_ = nodes_in_order(plan_.spec);
    groups_ = group_sizes(nodes_);
    space_ = iteration_space(plan_.spec);
    if (space_.empty()) space_ = {1};
  }

  Plan run() {
    for (const Expr& input : plan_.spec.inputs()) add_input(input);
    for (const Expr& node : nodes_) add_value(node);
    for (const Output& output : plan_.spec.outputs()) add_output(output);
    choose_family();
    merge_outer_dims();
    return std::move(plan_);
  }

private:
  const Dim& cols() const { return space_.back(); }

  // For each outer dim of the space, whether `shape` varies with it.
  std::vector<bool> outer_of(const Shape& shape) const {
    std::vector<bool> varies(space_.size() - 1, false);
    for (std::size_t i = 1; i < shape.size(); ++i) // from the right, behind the last
      varies[space_.size() - 1 - i] = !is_one(shape[shape.size() - 1 - i]);
    return varies;
  }
  std::int64_t group_of(const std::string& subject, const Dim& last) const {
    for (const std::int64_t group : groups_)
      if (!cols().is_dynamic() && same_size(last, group_count(cols().size(), group))) return group;
    throw UserError(subject, fmt::format("its last dimension is {}, the kernel's columns are {}", last.text(), cols().text()),
                    "give it the columns, 1, or the number of groups of an ungroup");
  }

  void add_input(const Expr& input) {
    TensorPlan tensor{.name = input->name,
                      .dtype = input.dtype(),
                      .outer = outer_of(input.shape()),
                      .layout = input->layout,
                      .in_place_of = {}};
    const Shape& shape = input.shape();
    const bool any_outer = std::ranges::find(tensor.outer, true) != tensor.outer.end();
    if (std::ranges::all_of(shape, is_one) && !(is_one(cols()) && any_outer)) {
      tensor.extent = Extent::scalar;
    } else if (same_size(shape.back(), cols())) {
      tensor.extent = Extent::element;
    } else if (is_one(shape.back())) {
      tensor.extent = Extent::row;
    } else {
      tensor.extent = Extent::group;
      tensor.group = group_of("input '" + input->name + "'", shape.back());
    }
    plan_.tensors.push_back(std::move(tensor));
  }

  void add_value(const Expr& node) {
    Value value{.expr = node};
    for (const Expr& operand : node.operands()) {
      Value& from = plan_.values[static_cast<std::size_t>(plan_.index.at(&operand.node()))];
      ++from.uses;
      value.extent = std::max(value.extent, from.extent);
      value.level = std::max(value.level, from.level);
      if (from.group) value.group = value.group ? std::min(value.group, from.group) : from.group;
    }
    if (node.op() == Op::input) {
      const TensorPlan& tensor = plan_.tensor(node->name);
      value.extent = tensor.extent;
      value.group = tensor.group;
    } else if (is_row_reduction(node.op())) {
      value.extent = Extent::row;
      value.group = 0;
      ++value.level;
    } else if (is_group_reduction(node.op())) {
      value.extent = Extent::group;
      value.group = node->group;
    }
    if (value.extent == Extent::element) value.group = 0;
    plan_.index[&node.node()] = static_cast<int>(plan_.values.size());
    plan_.values.push_back(std::move(value));
  }

  void add_output(const Output& output) {
    Value& value = plan_.values[static_cast<std::size_t>(plan_.index.at(&output.value.node()))];
    ++value.uses;
    const Shape& shape = output.value.shape();
    TensorPlan tensor{.name = output.name,
                      .dtype = output.dtype,
                      .outer = outer_of(shape),
                      .layout = output.layout,
                      .output = true,
                      .in_place_of = output.in_place_of};
    const bool has_cols = !shape.empty() && same_size(shape.back(), cols());
    if (value.extent == Extent::group && !has_cols) {
      tensor.extent = Extent::group;
      tensor.group = value.group;
    } else if (value.extent <= Extent::row && (!has_cols || is_one(cols()))) {
      tensor.extent = Extent::row;
    } else {
      tensor.extent = Extent::element;
    }
    plan_.tensors.push_back(std::move(tensor));
  }

  void choose_family() {
    bool flat = groups_.empty() && !by_rows_;
    for (const Value& value : plan_.values) flat &= value.level == 0;
    for (const TensorPlan& tensor : plan_.tensors) {
      const bool full = tensor.extent == Extent::element && covers_outer(tensor);
      flat &= (full && tensor.layout == Layout::contiguous) || (tensor.extent == Extent::scalar && !tensor.output);
    }
    plan_.family = flat ? Family::elementwise : Family::rowwise;
    for (const Value& value : plan_.values)
      plan_.passes = std::max(plan_.passes, value.level + (value.extent == Extent::row ? 0 : 1));
    for (const std::int64_t group : groups_) plan_.group = plan_.group ? std::min(plan_.group, group) : group;
    for (const std::int64_t group : groups_)
      if (group > 64 * plan_.group)
        throw UserError(fmt::format("kernel '{}'", plan_.spec.name()),
                        fmt::format("it has groups of {} and of {}", plan_.group, group),
                        "use sizes whose ratio is at most 64, the lanes of a wave, or two kernels");
    if (flat) return;
    if (cols().is_dynamic())
      throw UserError(
          fmt::format("kernel '{}'", plan_.spec.name()),
          fmt::format("its columns '{}' are known only at launch, and it reduces or broadcasts over them", cols().name()),
          "give the last dimension a number: kernels are specialised for their columns");
    plan_.cols = cols().size();
  }
  bool covers_outer(const TensorPlan& tensor) const {
    for (std::size_t i = 0; i + 1 < space_.size(); ++i)
      if (!tensor.outer[i] && !is_one(space_[i])) return false;
    return true;
  }

  // The space's dim that a tensor's leading stride belongs to: its own first one.
  std::vector<std::size_t> leading_dims() const {
    std::vector<std::size_t> leading(plan_.tensors.size(), space_.size());
    const auto note = [&](const std::string& tensor_name, const Shape& shape) {
      for (std::size_t t = 0; t < plan_.tensors.size(); ++t)
        if (plan_.tensors[t].name == tensor_name && plan_.tensors[t].layout == Layout::strided)
          leading[t] = space_.size() - shape.size();
    };
    for (const Expr& input : plan_.spec.inputs()) note(input->name, input.shape());
    for (const Output& output : plan_.spec.outputs()) note(output.name, output.value.shape());
    return leading;
  }

  // Outer dims that every tensor treats alike become one; elementwise kernels have one dim, all of them. The dims that
  // strides belong to stay alone.
  void merge_outer_dims() {
    const bool flat = plan_.family == Family::elementwise;
    std::vector<std::vector<bool>> outer(plan_.tensors.size());
    const std::vector<std::size_t> leading = leading_dims();
    const auto alone = [&](std::size_t d) { return std::ranges::find(leading, d) != leading.end(); };
    const std::size_t dims = flat ? space_.size() : space_.size() - 1;
    std::size_t previous = 0;
    for (std::size_t d = 0; d < dims; ++d) {
      if (is_one(space_[d])) continue;
      const auto alike = [&](const TensorPlan& t) { return t.outer[previous] == t.outer[d]; };
      if (!plan_.outer_dims.empty() && (flat || (!alone(d) && !alone(previous) && std::ranges::all_of(plan_.tensors, alike)))) {
        plan_.outer_dims.back().push_back(space_[d]);
      } else {
        plan_.outer_dims.push_back({space_[d]});
        for (std::size_t t = 0; t < outer.size(); ++t) {
          outer[t].push_back(flat || plan_.tensors[t].outer[d]);
          if (leading[t] == d) plan_.tensors[t].stride_dim = static_cast<int>(plan_.outer_dims.size()) - 1;
        }
      }
      previous = d;
    }
    for (std::size_t t = 0; t < outer.size(); ++t) plan_.tensors[t].outer = std::move(outer[t]);
  }

  Plan plan_;
  bool by_rows_; // even what could be flat
  std::vector<Expr> nodes_;
  std::vector<std::int64_t> groups_;
  Shape space_;
};

std::string describe(const TensorPlan& tensor) {
  std::string text = fmt::format("{:<7} {:<16} {:<8} {}", tensor.output ? "output" : "input", tensor.name, to_string(tensor.dtype),
                                 to_string(tensor.extent));
  if (tensor.group) text += fmt::format(" of {}", tensor.group);
  if (tensor.extent == Extent::element && !tensor.covers_rows()) text += ", the same for some rows";
  if (tensor.layout == Layout::strided) text += ", strided";
  if (!tensor.in_place_of.empty()) text += fmt::format(", in place of {}", tensor.in_place_of);
  return text;
}

} // namespace

std::string_view to_string(Family family) {
  switch (family) {
  case Family::elementwise:
    return "elementwise";
  case Family::rowwise:
    return "rowwise";
  case Family::skinny_gemm:
    return "skinny_gemm";
  }
  throw InternalError("unknown Family");
}

std::string_view to_string(Extent extent) {
  switch (extent) {
  case Extent::scalar:
    return "scalar";
  case Extent::row:
    return "row";
  case Extent::group:
    return "group";
  case Extent::element:
    return "element";
  }
  throw InternalError("unknown Extent");
}

bool TensorPlan::covers_rows() const { return std::ranges::find(outer, false) == outer.end(); }

const TensorPlan& Plan::tensor(std::string_view tensor_name) const {
  for (const TensorPlan& tensor : tensors)
    if (tensor.name == tensor_name) return tensor;
  throw InternalError(fmt::format("no tensor '{}' in the plan", tensor_name));
}

namespace {

Plan make_gemm_plan(const KernelSpec& spec, const Target& target) {
  require_native_types(spec, target);
  validate(spec);
  SplitSpec split = split_products(spec);
  require_products(split);
  for (const Expr& node : nodes_in_order(split.epilogue))
    if (is_reduction(node.op()) || node.op() == Op::ungroup)
      throw UserError(fmt::format("operation '{}'", info(node.op()).name), "it stands in the epilogue of a matrix product",
                      "reduce rows in a kernel of their own: a workgroup has a part of a row only");
  Plan plan = Planner(split.epilogue, target, true).run();
  const Product& first = split.products.front();
  const Expr a = first.a;
  const Dim m = a.shape()[0];
  if (plan.outer_dims.size() > 1 || plan.spec.outputs().front().value.shape().size() != 2)
    throw UserError(fmt::format("kernel '{}'", spec.name()), "its epilogue has more than two dimensions", "give every operand [m, n], [n], [m, 1] or []");
  plan.gemm = std::make_shared<const GemmPlan>(GemmPlan{.split = split,
                                                        .a = a,
                                                        .m = m,
                                                        .rows = m.is_dynamic() ? *m.max() : m.size(),
                                                        .n = first.n,
                                                        .k = a.shape()[1].size(),
                                                        .a_type = a.dtype(),
                                                        .b_type = first.b.dtype(),
                                                        .b_bits = first.op == Op::matmul_nt_w4 ? 4 : 8 * size_bytes(first.b.dtype()),
                                                        .group = first.group,
                                                        .preshuffled = first.b->layout == Layout::preshuffled});
  plan.family = Family::skinny_gemm;
  return plan;
}

} // namespace

Plan make_plan(const KernelSpec& spec, const Target& target) {
  return has_product(spec) ? make_gemm_plan(spec, target) : Planner(spec, target, false).run();
}

std::string to_text(const Plan& plan) {
  std::vector<std::string> outer;
  for (const Shape& dims : plan.outer_dims) {
    std::vector<std::string> factors;
    for (const Dim& dim : dims) factors.push_back(dim.text());
    outer.push_back(fmt::format("{}", fmt::join(factors, " * ")));
  }
  std::string text = fmt::format("plan {}: {} over [{}{}{}], {} pass{}\n", plan.spec.name(), to_string(plan.family),
                                 fmt::join(outer, ", "), outer.empty() || plan.cols == 0 ? "" : ", ",
                                 plan.cols ? fmt::format("{}", plan.cols) : "", plan.passes, plan.passes == 1 ? "" : "es");
  if (plan.gemm)
    for (const Product& p : plan.gemm->products())
      text += fmt::format("  product {:<15} {} {} x {} {}{}, {} from {}, k {}{}\n", p.placeholder, to_string(p.a.dtype()), p.a->name,
                          plan.gemm->b_bits == 4 ? "4-bit" : to_string(p.b.dtype()), p.b->name, plan.gemm->preshuffled ? " preshuffled" : "",
                          p.n, p.first, plan.gemm->k, p.group ? fmt::format(", scales of groups of {}", p.group) : "");
  for (const TensorPlan& tensor : plan.tensors)
    if (!plan.gemm || !plan.gemm->split.find(tensor.name)) text += "  " + describe(tensor) + "\n";
  for (std::size_t i = 0; i < plan.values.size(); ++i) {
    const Value& value = plan.values[i];
    std::vector<std::string> operands;
    for (const Expr& operand : value.expr.operands()) operands.push_back(fmt::format("%{}", plan.index.at(&operand.node())));
    std::string what{info(value.expr.op()).name};
    if (!value.expr->name.empty()) what += " " + value.expr->name;
    if (value.expr.op() == Op::constant) what += fmt::format(" {}", value.expr->value);
    text += fmt::format("  %{:<3} {:<8} {:<8} level {}  {}({})\n", i, to_string(value.extent), to_string(value.expr.dtype()), value.level,
                        what, fmt::join(operands, ", "));
  }
  return text;
}

} // namespace kiln
