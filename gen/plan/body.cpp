// Body: the extent and level of every value, and how outer dims of the space merge.
#include "gen/plan/body.h"
#include "gen/error.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

bool is_one(const Dim& dim) { return same_size(dim, 1); }
std::int64_t known(const Dim& dim) { return dim.is_dynamic() ? 0 : dim.size(); }

class BodyBuilder {
public:
  BodyBuilder(const SpecGraph& graph, Shape space)
      : graph_(graph), body_{.kernel = graph.spec.name(),
                             .outputs = graph.spec.outputs(),
                             .inputs = graph.inputs,
                             .scalars = graph.scalars,
                             .dynamic_dims = graph.dynamic_dims,
                             .group_sizes = graph.group_sizes,
                             .names = graph.names,
                             .space = std::move(space)} {
    if (body_.space.empty()) body_.space = {1};
  }

  Body run() {
    for (const Expr& input : body_.inputs) add_input(input);
    for (const Expr& node : graph_.nodes) add_value(node);
    for (Output& output : body_.outputs) add_output(output);
    for (const Value& value : body_.values) require_columns(value);
    for (const Value& value : body_.values) body_.passes = std::max(body_.passes, value.level + (is_of_pass(value) ? 1 : 0));
    return std::move(body_);
  }

private:
  const Dim& cols() const { return body_.space.back(); }
  static bool is_of_pass(const Value& value) { return value.extent != Extent::row && value.extent != Extent::ranked; }

  // For each outer dim of the space, whether `shape` varies with it.
  std::vector<bool> outer_of(const Shape& shape) const {
    std::vector<bool> varies(body_.space.size() - 1, false);
    for (std::size_t i = 1; i < shape.size(); ++i) // from the right, behind the last
      varies[body_.space.size() - 1 - i] = !is_one(shape[shape.size() - 1 - i]);
    return varies;
  }
  std::int64_t group_of(const std::string& subject, const Dim& last) const {
    for (const std::int64_t group : body_.group_sizes)
      if (!cols().is_dynamic() && same_size(last, group_count(cols().size(), group))) return group;
    throw UserError(subject, fmt::format("its last dimension is {}, the kernel's columns are {}", last.text(), cols().text()),
                    "give it the columns, 1, or the number of groups of an ungroup");
  }

  // A view takes one element for each column, or one for each row.
  Extent extent_of_view(const Expr& node) const {
    return same_size(node.shape().back(), cols()) || !is_one(node.shape().back()) ? Extent::element : Extent::row;
  }
  void require_columns(const Value& value) const {
    const Expr& node = value.expr;
    if (info(node.op()).kind != OpKind::view || value.uses == 0 || is_one(node.shape().back()) || same_size(node.shape().back(), cols()))
      return;
    throw UserError(fmt::format("operation '{}'", info(node.op()).name),
                    fmt::format("its last dimension is {}, the kernel's columns are {}", node.shape().back().text(), cols().text()),
                    "give it the columns, or 1");
  }

  void add_named_rows(const Expr& input) {
    const Shape& shape = input.shape();
    body_.tensors.push_back({.name = input->name,
                             .dtype = input.dtype(),
                             .extent = is_one(shape.back()) && !is_one(cols()) ? Extent::row : Extent::element,
                             .outer = outer_of(Shape(shape.begin() + 1, shape.end())),
                             .layout = input->layout,
                             .named_rows = true,
                             .rows = shape.front(),
                             .columns = known(shape.back())});
    require_elements("input", body_.tensors.back());
  }

  void add_input(const Expr& input) {
    if (is_table(graph_, input) || is_target(graph_, input)) return add_named_rows(input);
    TensorPlan tensor{
        .name = input->name, .dtype = input.dtype(), .outer = outer_of(input.shape()), .layout = input->layout, .in_place_of = {}};
    const Shape& shape = input.shape();
    const bool any_outer = std::ranges::find(tensor.outer, true) != tensor.outer.end();
    if (is_widened(input)) {
      tensor.extent = Extent::element;
      tensor.columns = known(shape.back());
    } else if (std::ranges::all_of(shape, is_one) && !(is_one(cols()) && any_outer)) {
      tensor.extent = Extent::scalar;
    } else if (same_size(shape.back(), cols())) {
      tensor.extent = Extent::element;
    } else if (is_one(shape.back())) {
      tensor.extent = Extent::row;
    } else {
      tensor.extent = Extent::group;
      tensor.group = group_of("input '" + input->name + "'", shape.back());
    }
    require_elements("input", tensor);
    body_.tensors.push_back(std::move(tensor));
  }

  // Numbers that share a byte are loaded and stored by the chunk, in the rows of the kernel.
  void require_elements(std::string_view role, const TensorPlan& tensor) const {
    if (!is_packed(tensor.dtype)) return;
    const bool other_rows = tensor.named_rows || !tensor.row_index.empty() || tensor.columns != 0;
    if (tensor.extent == Extent::element && !other_rows) return;
    throw UserError(fmt::format("{} '{}'", role, tensor.name),
                    other_rows ? fmt::format("it is {}, and an index, tile or repeat takes parts of it", to_string(tensor.dtype))
                               : fmt::format("it is {}, but one value a {}", to_string(tensor.dtype), to_string(tensor.extent)),
                    fmt::format("give it one {} for each column of each row, in order", to_string(tensor.dtype)));
  }

  bool has_ranked_operand(const Expr& node) const {
    return std::ranges::any_of(node.operands(), [&](const Expr& o) { return body_.value(o).extent == Extent::ranked; });
  }

  // Whether it has one value a rank, or is that of a single rank; what a rank and columns give together has one a column.
  bool is_of_ranks(const Expr& node) const { return graph_.ranked.contains(&node.node()) && body_.value(node).extent <= Extent::ranked; }

  // Whether tile or repeat read it.
  bool is_widened(const Expr& input) const {
    return std::ranges::any_of(graph_.nodes, [&](const Expr& node) {
      return (node.op() == Op::tile || node.op() == Op::repeat) && node.operands()[0].same_node(input);
    });
  }

  void add_value(const Expr& node) {
    if (node.op() == Op::scatter) return; // what it writes is the output's value
    Value value{.expr = node};
    const bool is_view = view_of(node).has_value();
    for (const Expr& operand : node.operands()) {
      Value& from = body_.values[static_cast<std::size_t>(body_.index.at(&operand.node()))];
      if (info(node.op()).kind == OpKind::view && is_packed(from.expr.dtype()) && (!is_view || from.expr.op() != Op::input))
        throw UserError("operation 'partner'", fmt::format("its operand is {}", to_string(from.expr.dtype())),
                        "take the partner of its numbers in f32");
      if (is_view) continue;
      ++from.uses;
      value.extent = std::max(value.extent, from.extent);
      value.level = std::max(value.level, from.level);
      if (from.group) value.group = value.group ? std::min(value.group, from.group) : from.group;
    }
    const OpKind kind = info(node.op()).kind;
    if (is_view) {
      if (const auto view = *view_of(node); is_packed(body_.tensor(view.tensor).dtype))
        throw UserError(fmt::format("operation '{}'", info(node.op()).name),
                        fmt::format("'{}' is {}", view.tensor, to_string(node.dtype())),
                        "read its numbers in order: two of them share a byte");
      value.extent = extent_of_view(node);
    } else if (kind == OpKind::position) {
      const bool of_ranks = graph_.ranked.contains(&node.node());
      value.extent = is_one(node.shape().back()) ? Extent::row : of_ranks ? Extent::ranked : Extent::element;
      value.group = of_ranks ? node.shape().back().size() : 0;
    } else if (node.op() == Op::input) {
      const TensorPlan& tensor = body_.tensor(node->name);
      value.extent = tensor.extent;
      value.group = tensor.group;
    } else if (kind == OpKind::rank || kind == OpKind::pick) {
      value.level = body_.value(node.operands()[0]).level + 1;
      if (kind == OpKind::pick) value.level = std::max(value.level, body_.value(node.operands()[1]).level);
      value.extent = is_one(node.shape().back()) ? Extent::row : Extent::ranked;
      value.group = is_one(node.shape().back()) ? 0 : node.shape().back().size();
    } else if (kind == OpKind::scan) {
      if (!is_of_ranks(node.operands()[0])) value.extent = Extent::element;
      // By several waves: these leave the sum of each piece of the row, in a pass of its own.
      if (value.extent == Extent::element && !cols().is_dynamic() && cols().size() > max_wave_scan) ++value.level;
    } else if (kind == OpKind::row_reduce) {
      if (!is_of_ranks(node.operands()[0])) ++value.level; // of ranks: no pass over the row
      value.extent = Extent::row;
      value.group = 0;
    } else if (value.extent > Extent::ranked && has_ranked_operand(node)) {
      throw UserError(fmt::format("operation '{}'", info(node.op()).name), "it combines values of ranks with values of columns",
                      "pick the columns that the ranks name, or reduce one of the two");
    } else if (kind == OpKind::group_reduce) {
      value.extent = Extent::group;
      value.group = node->group;
    }
    if (value.extent == Extent::element) value.group = 0;
    body_.index[&node.node()] = static_cast<int>(body_.values.size());
    body_.values.push_back(std::move(value));
  }

  void add_output(Output& output) {
    const Expr given = output.value; // a scatter stands for the rows that it writes
    if (given.op() == Op::scatter) output.value = given.operands()[2];
    Value& value = body_.values[static_cast<std::size_t>(body_.index.at(&output.value.node()))];
    ++value.uses;
    const Shape& shape = output.value.shape();
    TensorPlan tensor{.name = output.name,
                      .dtype = output.dtype,
                      .outer = outer_of(shape),
                      .layout = output.layout,
                      .output = true,
                      .in_place_of = output.in_place_of};
    const bool has_cols = !shape.empty() && same_size(shape.back(), cols());
    if (value.extent == Extent::ranked) {
      tensor.extent = Extent::ranked;
      tensor.group = value.group;
    } else if (value.extent == Extent::group && !has_cols) {
      tensor.extent = Extent::group;
      tensor.group = value.group;
    } else if (value.extent <= Extent::row && (!has_cols || is_one(cols()))) {
      tensor.extent = Extent::row;
    } else {
      tensor.extent = Extent::element;
    }
    if (given.op() == Op::scatter) {
      const TensorPlan& target = body_.tensor(output.in_place_of);
      tensor.outer = target.outer;
      tensor.row_index = given.operands()[1]->name;
      tensor.checked = given->checked;
    }
    require_elements("output", tensor);
    body_.tensors.push_back(std::move(tensor));
  }

  const SpecGraph& graph_;
  Body body_;
};

bool covers_outer(const Body& body, const TensorPlan& tensor) {
  for (std::size_t i = 0; i + 1 < body.space.size(); ++i)
    if (!tensor.outer[i] && !is_one(body.space[i])) return false;
  return true;
}

// The space's dim that each tensor's leading stride belongs to, which is the tensor's first one; the space's rank without a stride.
std::vector<std::size_t> leading_dims(const Body& body) {
  std::vector<std::size_t> leading(body.tensors.size(), body.space.size());
  const auto note = [&](const std::string& tensor_name, const Shape& shape) {
    for (std::size_t t = 0; t < body.tensors.size(); ++t)
      if (body.tensors[t].name == tensor_name && body.tensors[t].layout == Layout::strided && !body.tensors[t].named_rows &&
          body.tensors[t].row_index.empty())
        leading[t] = body.space.size() - shape.size();
  };
  for (const Expr& input : body.inputs) note(input->name, input.shape());
  for (const Output& output : body.outputs) note(output.name, output.value.shape());
  return leading;
}

// The space's dim that an iota counts along.
std::size_t counted_dim(const Body& body, const Expr& iota) {
  const auto dim = std::ranges::find_if_not(iota.shape(), is_one);
  return body.space.size() - static_cast<std::size_t>(iota.shape().end() - dim);
}

// Merges outer dims that every tensor treats alike; of a flat body all dims. The dims that strides belong to, and those along which
// something counts, stay alone.
void merge_outer_dims(Body& body, bool flat) {
  std::vector<std::vector<bool>> outer(body.tensors.size());
  const std::vector<std::size_t> leading = leading_dims(body);
  const auto counts = [&](const Value& v, std::size_t d) { return v.expr.op() == Op::iota && counted_dim(body, v.expr) == d; };
  const auto counted = [&](std::size_t d) { return std::ranges::any_of(body.values, [&](const Value& v) { return counts(v, d); }); };
  const auto alone = [&](std::size_t d) { return std::ranges::find(leading, d) != leading.end() || counted(d); };
  const std::size_t dims = flat ? body.space.size() : body.space.size() - 1;
  std::size_t previous = 0;
  for (std::size_t d = 0; d < dims; ++d) {
    if (is_one(body.space[d])) continue;
    const auto alike = [&](const TensorPlan& t) { return t.outer[previous] == t.outer[d]; };
    const bool merges = flat || (!alone(d) && !alone(previous) && std::ranges::all_of(body.tensors, alike));
    if (!body.outer_dims.empty() && merges) {
      body.outer_dims.back().push_back(body.space[d]);
    } else {
      body.outer_dims.push_back({body.space[d]});
      for (Value& v : body.values)
        if (counts(v, d)) v.counts = static_cast<int>(body.outer_dims.size()) - 1;
      for (std::size_t t = 0; t < outer.size(); ++t) {
        outer[t].push_back(flat || body.tensors[t].outer[d]);
        if (leading[t] == d) body.tensors[t].stride_dim = static_cast<int>(body.outer_dims.size()) - 1;
      }
    }
    previous = d;
  }
  for (std::size_t t = 0; t < outer.size(); ++t) body.tensors[t].outer = std::move(outer[t]);
}

} // namespace

std::string_view to_string(Extent extent) {
  constexpr std::string_view names[] = {"scalar", "row", "ranked", "group", "element"}; // in the enum's order
  return names[static_cast<std::size_t>(extent)];
}

bool needs_one_wave(OpKind kind) { return kind == OpKind::rank || kind == OpKind::pick || kind == OpKind::scan; }

bool TensorPlan::covers_rows() const { return std::ranges::find(outer, false) == outer.end(); }

const TensorPlan& Body::tensor(std::string_view tensor_name) const {
  for (const TensorPlan& tensor : tensors)
    if (tensor.name == tensor_name) return tensor;
  throw InternalError(fmt::format("no tensor '{}' in the plan", tensor_name));
}

std::int64_t Body::smallest_group() const { return group_sizes.empty() ? 0 : std::ranges::min(group_sizes); }

Body make_body(const SpecGraph& graph, Shape space) { return BodyBuilder(graph, std::move(space)).run(); }

bool can_be_flat(const Body& body) {
  if (!body.group_sizes.empty()) return false;
  const auto is_pointwise = [](const Value& v) {
    const OpKind kind = info(v.expr.op()).kind;
    return v.level == 0 && kind != OpKind::view && kind != OpKind::position && kind != OpKind::scan;
  };
  const auto is_flat = [&](const TensorPlan& t) {
    const bool full = t.extent == Extent::element && covers_outer(body, t);
    return (full && t.layout == Layout::contiguous && t.row_index.empty() && !t.named_rows && !is_packed(t.dtype)) ||
           (t.extent == Extent::scalar && !t.output);
  };
  return std::ranges::all_of(body.values, is_pointwise) && std::ranges::all_of(body.tensors, is_flat);
}

void lay_out_flat(Body& body) { merge_outer_dims(body, true); }

void lay_out_rows(Body& body) {
  const Dim& cols = body.space.back();
  if (cols.is_dynamic())
    throw UserError(fmt::format("kernel '{}'", body.kernel),
                    fmt::format("its columns '{}' are known only at launch, and it reduces or broadcasts over them", cols.name()),
                    "give the last dimension a number: kernels are specialised for their columns");
  lay_out_open_rows(body);
}

void lay_out_open_rows(Body& body) {
  body.cols = known(body.space.back());
  merge_outer_dims(body, false);
}

} // namespace kiln
