// The walk over a spec's nodes that evaluate and evaluate_bounds share; they differ in what a value is and how it is
// computed. Internal to gen/evaluate*.cpp.
#pragma once
#include "gen/reference/attention_walk.h"
#include "gen/reference/index_check.h"
#include "gen/reference/product_walk.h"
#include "gen/spec/graph.h"
#include "gen/spec/math.h"
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace kiln::detail {

// From the index of an element of `full` to that of the element of `narrow` that broadcasts to it; both row-major.
class BroadcastIndex {
public:
  BroadcastIndex(const Sizes& full, const Sizes& narrow);
  std::int64_t operator()(std::int64_t index) const;

private:
  bool same_;
  Sizes full_, strides_;
};

// Arithmetic has `using Value`, and
//   Value leaf(double) const;                                    a tensor element, a scalar or a constant
//   Value as_f32(const Value&) const;                            of an i32
//   Value pointwise(Op, const Value* operands, int arity) const;
//   Value cast(const Node& cast, const Value&) const;
//   Value either(const Value&, const Value&) const;              one of them, nobody knows which; of numbers the second
//   Value reduce(Op, std::span<const Value> elements) const;     the elements of one row or group
//   weights, weighted_sum, log_of_sum                          of attention: see attention_walk.h
//   std::vector<Value> top(std::span<const Value> elements, std::int64_t k) const;   the columns of the k largest
//   std::vector<Value> running_sums(std::span<const Value> elements) const;
//   Value picked(std::span<const Value> elements, const Value& column) const;
//   std::optional<double> certain(const Value&) const;   the number, if there is but one
//   Value between(double least, double most) const;      any number of these
//   Value product(const ProductRows&) const;
//   double middle(const Value&), half_width(const Value&) const; of what it may be; an infinite width if that is not known
template <typename Arithmetic> class Walk {
public:
  using Value = typename Arithmetic::Value;

  Walk(const KernelSpec& spec, const Inputs& inputs, Arithmetic arithmetic)
      : graph_(spec), inputs_(inputs), arithmetic_(arithmetic), sizes_(dim_sizes(spec, inputs)) {
    require_sound_indices(spec, inputs);
  }

  // The values of the outputs, by name, decoded from the output's type.
  std::map<std::string, Grid<Value>> run() {
    std::unordered_map<const Node*, int> uses;
    std::unordered_set<const Node*> matrices; // operands of products, which read them themselves
    std::vector<Expr> read;
    for (const Expr& node : graph_.nodes)
      for (const Expr& operand : node.operands()) {
        ++uses[&operand.node()];
        if (!reads_itself(node, operand)) continue;
        if (info(operand.op()).kind == OpKind::product) matrices.insert(&operand.node()); // of experts, which multiply themselves
        else read.push_back(operand);
      }
    for (const Expr& node : nodes_in_order(read))
      if (node.op() != Op::constant) matrices.insert(&node.node()); // others may use an equal number
    for (const Output& output : graph_.spec.outputs()) ++uses[&output.value.node()];
    for (const Expr& node : graph_.nodes) {
      if (matrices.contains(&node.node()) || node.dtype() == i64) continue; // an index
      grids_.emplace(&node.node(), compute(node));
      for (const Expr& operand : node.operands())
        if (--uses.at(&operand.node()) == 0) grids_.erase(&operand.node()), as_f32_.erase(&operand.node());
    }
    std::map<std::string, Grid<Value>> results;
    for (const Output& output : graph_.spec.outputs()) results.emplace(output.name, grids_.at(&output.value.node()));
    return results;
  }

private:
  // Operands that are read as tensors, and may have elements that nobody asks for.
  static bool reads_itself(const Expr& node, const Expr& operand) {
    const OpKind kind = info(node.op()).kind;
    if (reads_computed_rows(node) && operand.same_node(node.operands()[0])) return false;
    return kind == OpKind::product || kind == OpKind::experts || kind == OpKind::scores ||
           (node.op() == Op::attention && operand.same_node(node.operands()[1]));
  }

  // Rows that a product multiplies, if they are computed.
  ProductRows::Computed computed_rows(const Expr& product) const {
    ProductRows::Computed rows;
    if (!reads_computed_rows(product)) return rows;
    for (const Value& value : grids_.at(&product.operands()[0].node()).values) {
      rows.numbers.push_back(arithmetic_.middle(value));
      rows.spread.push_back(arithmetic_.half_width(value));
    }
    return rows;
  }

  // An operand's values, of i32 as f32 unless the node takes integers or hands them on.
  const Grid<Value>& operand_of(const Expr& node, std::size_t number) const {
    const Expr& operand = node.operands()[number];
    const Grid<Value>& grid = grids_.at(&operand.node());
    if (operand.dtype() != i32 || node.dtype() == i32 || takes_integers(node)) return grid;
    const auto [rounded, is_new] = as_f32_.try_emplace(&operand.node(), Grid<Value>{grid.shape, {}});
    if (is_new)
      for (const Value& value : grid.values) rounded->second.values.push_back(arithmetic_.as_f32(value));
    return rounded->second;
  }

  Grid<Value> compute(const Expr& node) const {
    Grid<Value> grid{concrete(node.shape(), sizes_), {}};
    grid.values.reserve(static_cast<std::size_t>(element_count(grid.shape)));
    switch (info(node.op()).kind) {
    case OpKind::leaf: leaf(node, grid); break;
    case OpKind::cast:
      for (const Value& value : operand_of(node, 0).values) grid.values.push_back(arithmetic_.cast(node.node(), value));
      break;
    case OpKind::row_reduce:
    case OpKind::group_reduce: reduce(node, grid); break;
    case OpKind::ungroup: ungroup(node, grid); break;
    case OpKind::product: grid.values = products_of(node, inputs_, grid.shape, arithmetic_, computed_rows(node)); break;
    case OpKind::experts:
      grid.values = products_by_expert(node, inputs_, grid.shape, arithmetic_, computed_rows(node.operands()[0]));
      break;
    case OpKind::sort: sort(node, grid); break;
    case OpKind::scores: grid.values = scores_of_keys(node, inputs_, grid.shape, arithmetic_); break;
    case OpKind::attention: grid.values = attend(node, inputs_, operand_of(node, 0), arithmetic_); break;
    case OpKind::columns: columns(node, grid); break;
    case OpKind::transpose: transpose(node, grid); break;
    case OpKind::position: position(node, grid); break;
    case OpKind::view:
      node.op() == Op::gather ? gather(node, grid) : node.op() == Op::unstack ? unstack(node, grid) : view(node, grid);
      break;
    case OpKind::stack: stack(node, grid); break;
    case OpKind::scatter: scatter(node, grid); break;
    case OpKind::scaled: pointwise(node, node.op() == Op::scale_up ? Op::mul : Op::div_exact, grid); break;
    case OpKind::rank: rank(node, grid); break;
    case OpKind::pick: pick(node, grid); break;
    case OpKind::scan: scan(node, grid); break;
    default: pointwise(node, node.op(), grid);
    }
    return grid;
  }

  void leaf(const Expr& node, Grid<Value>& grid) const {
    if (node.op() == Op::input) {
      const Tensor& tensor = inputs_.tensors.at(node->name);
      for (std::int64_t i = 0; i < tensor.size(); ++i)
        grid.values.push_back(
            arithmetic_.leaf(node.dtype() == i32 ? static_cast<double>(tensor.integer(i)) : static_cast<double>(tensor.at(i))));
      return;
    }
    const double given = node.op() == Op::scalar ? inputs_.scalars.at(node->name)
                         : node.dtype() == i32   ? static_cast<double>(static_cast<std::int32_t>(static_cast<std::uint32_t>(node->whole)))
                                                 : static_cast<double>(node->value);
    grid.values.push_back(arithmetic_.leaf(node.dtype() == i32 ? std::nearbyint(given) : static_cast<double>(static_cast<float>(given))));
  }

  void pointwise(const Expr& node, Op op, Grid<Value>& grid) const {
    std::vector<const Grid<Value>*> operands;
    std::vector<BroadcastIndex> indices;
    for (std::size_t k = 0; k < node.operands().size(); ++k) {
      operands.push_back(&operand_of(node, k));
      indices.emplace_back(grid.shape, operands.back()->shape);
    }
    std::vector<Value> values(operands.size());
    const std::int64_t count = element_count(grid.shape);
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < operands.size(); ++k) values[k] = operands[k]->values[static_cast<std::size_t>(indices[k](i))];
      grid.values.push_back(arithmetic_.pointwise(op, values.data(), static_cast<int>(values.size())));
    }
  }

  void reduce(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>& operand = operand_of(node, 0);
    const std::int64_t cols = operand.shape.back();
    const std::int64_t step = node->group == 0 ? cols : node->group;
    const auto rows = static_cast<std::int64_t>(operand.values.size()) / cols;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t first = 0; first < cols; first += step) {
        const auto count = static_cast<std::size_t>(std::min(step, cols - first));
        const std::span elements(operand.values.data() + row * cols + first, count);
        grid.values.push_back(arithmetic_.reduce(node.op(), elements));
      }
  }

  void rank(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>& operand = operand_of(node, 0);
    const std::int64_t cols = operand.shape.back();
    for (std::size_t first = 0; first < operand.values.size(); first += static_cast<std::size_t>(cols))
      for (const Value& column : arithmetic_.top(std::span(operand.values).subspan(first, static_cast<std::size_t>(cols)), node->step))
        grid.values.push_back(column);
  }

  // x and top may broadcast over outer dims.
  void pick(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>&x = operand_of(node, 0), &top = operand_of(node, 1);
    const std::int64_t ranks = grid.shape.back(), cols = x.shape.back(), rows = element_count(grid.shape) / ranks;
    const auto outer = [](Sizes shape) { return shape.pop_back(), shape; };
    const BroadcastIndex row_of_x(outer(grid.shape), outer(x.shape)), row_of_top(outer(grid.shape), outer(top.shape));
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t j = 0; j < ranks; ++j) {
        const std::span elements(x.values.data() + row_of_x(row) * cols, static_cast<std::size_t>(cols));
        grid.values.push_back(arithmetic_.picked(elements, top.values[static_cast<std::size_t>(row_of_top(row) * ranks + j)]));
      }
  }

  void scan(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>& operand = operand_of(node, 0);
    const auto cols = static_cast<std::size_t>(operand.shape.back());
    for (std::size_t first = 0; first < operand.values.size(); first += cols)
      for (const Value& sum : arithmetic_.running_sums(std::span(operand.values).subspan(first, cols))) grid.values.push_back(sum);
  }

  // Each element is the one of `from` at the index that `place` makes of its own; below 0: zero.
  template <typename Place> void take(const Grid<Value>& from, Grid<Value>& grid, Place place) const {
    const std::int64_t count = element_count(grid.shape);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = place(i);
      grid.values.push_back(at < 0 ? arithmetic_.leaf(0) : from.values[static_cast<std::size_t>(at)]);
    }
  }

  void ungroup(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>& operand = operand_of(node, 0);
    const std::int64_t cols = grid.shape.back(), groups = operand.shape.back();
    take(operand, grid, [&](std::int64_t i) { return i / cols * groups + i % cols / node->group; });
  }

  // Pairs in the order of their experts. Any pair may stand anywhere if an expert is not certain.
  void sort(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>& experts = operand_of(node, 0);
    std::vector<std::int64_t> certain;
    for (const Value& value : experts.values)
      if (const std::optional<double> expert = arithmetic_.certain(value)) certain.push_back(static_cast<std::int64_t>(*expert));
    if (certain.size() != experts.values.size()) {
      const bool orders = node.op() == Op::expert_order;
      const double most = static_cast<double>(experts.values.size()) - (orders ? 1 : 0);
      grid.values.resize(static_cast<std::size_t>(element_count(grid.shape)), arithmetic_.between(0, most));
      return;
    }
    const SortedPairs sorted = sort_pairs(certain, node->step);
    for (const std::int64_t number : node.op() == Op::expert_order ? sorted.order : sorted.offsets)
      grid.values.push_back(arithmetic_.leaf(static_cast<double>(number)));
  }

  void columns(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>& operand = operand_of(node, 0);
    const std::int64_t cols = grid.shape.back(), all = operand.shape.back();
    take(operand, grid, [&](std::int64_t i) { return i / cols * all + node->first + i % cols; });
  }

  // [..., heads, n] to [heads, ..., n].
  void transpose(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>& operand = operand_of(node, 0);
    if (node.op() == Op::transpose)
      return take(operand, grid, [&](std::int64_t i) { return i % grid.shape[1] * grid.shape[0] + i / grid.shape[1]; });
    const std::int64_t heads = grid.shape[0], cols = grid.shape.back(), rows = element_count(grid.shape) / std::max<std::int64_t>(1, cols);
    const std::int64_t before = rows / heads; // of one head
    take(operand, grid, [&](std::int64_t i) {
      const std::int64_t row = i / cols;
      return (row % before * heads + row / before) * cols + i % cols;
    });
  }

  // One dimension is not 1, so that the index along it is the index of the element.
  void position(const Expr& node, Grid<Value>& grid) const {
    const std::int64_t elements = element_count(grid.shape);
    for (std::int64_t i = 0; i < elements; ++i) {
      const double sign = node.op() == Op::pair_sign && i % (2 * node->step) < node->step ? -1 : 1;
      grid.values.push_back(arithmetic_.leaf(node.op() == Op::iota ? static_cast<double>(static_cast<float>(i)) : sign));
    }
  }

  // Rows of `table` that are named, as indices of their first elements; -1 for none. `count` rows lie in the table.
  std::int64_t named_element(const Expr& node, std::int64_t position, const Sizes& table) const {
    const Expr& index = node.operands()[1];
    const bool sliced = index.op() == Op::unstack;
    const Tensor& given = inputs_.tensors.at(sliced ? index.operands()[0]->name : index->name);
    if (sliced) {
      const std::int64_t rest = element_count(concrete(index.shape(), sizes_)) / std::max<std::int64_t>(1, given.shape()[0]);
      position = (position / rest * given.shape()[1] + index->first) * rest + position % rest;
    }
    std::int64_t row = given.integer(position);
    if (row < 0 || (row >= table[0] && node.op() == Op::scatter)) return -1;
    row = std::min(row, table[0] - 1); // checked: the last one
    return row * (element_count(table) / table[0]);
  }

  void gather(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>& table = operand_of(node, 0);
    const BroadcastIndex position(grid.shape, concrete(node.operands()[1].shape(), sizes_));
    const BroadcastIndex in_row(grid.shape, Sizes(table.shape.begin() + 1, table.shape.end()));
    take(table, grid, [&](std::int64_t i) {
      const std::int64_t first = named_element(node, position(i), table.shape);
      return first < 0 ? -1 : first + in_row(i);
    });
  }

  void unstack(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>& operand = grids_.at(&node.operands()[0].node());
    const std::int64_t rest = element_count(grid.shape) / std::max<std::int64_t>(1, grid.shape[0]);
    take(operand, grid, [&](std::int64_t i) { return (i / rest * operand.shape[1] + node->first) * rest + i % rest; });
  }
  void stack(const Expr& node, Grid<Value>& grid) const {
    const std::int64_t count = element_count(grid.shape), row = count / std::max<std::int64_t>(1, grid.shape[0]);
    const std::int64_t rest = row / std::max<std::int64_t>(1, grid.shape[1]);
    for (std::int64_t i = 0; i < count; ++i) {
      const Grid<Value>& from = grids_.at(&node.operands()[static_cast<std::size_t>(i % row / rest)].node());
      grid.values.push_back(from.values[static_cast<std::size_t>(i / row * rest + i % rest)]);
    }
  }

  // Later rows overwrite earlier ones; with declared duplicates an element may be of either.
  void scatter(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>&target = operand_of(node, 0), &value = operand_of(node, 2);
    const BroadcastIndex position(value.shape, concrete(node.operands()[1].shape(), sizes_));
    const BroadcastIndex in_row(value.shape, Sizes(target.shape.begin() + 1, target.shape.end()));
    grid.values = target.values;
    std::vector<bool> written(grid.values.size(), false);
    for (std::size_t i = 0; i < value.values.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t first = named_element(node, position(at), target.shape);
      if (first < 0) continue;
      const auto to = static_cast<std::size_t>(first + in_row(at));
      grid.values[to] = written[to] ? arithmetic_.either(grid.values[to], value.values[i]) : value.values[i];
      written[to] = true;
    }
  }

  // The same row at other columns.
  void view(const Expr& node, Grid<Value>& grid) const {
    const Grid<Value>& operand = operand_of(node, 0);
    const std::int64_t cols = grid.shape.back(), from = operand.shape.back(), step = node->step;
    take(operand, grid, [&](std::int64_t i) {
      std::int64_t column = i % cols;
      if (node.op() == Op::shift_columns) column -= step;
      else if (node.op() == Op::partner) column += column % (2 * step) < step ? step : -step;
      else column = node.op() == Op::tile ? column % from : column / step;
      return column < 0 || column >= from ? -1 : i / cols * from + column;
    });
  }

  SpecGraph graph_;
  const Inputs& inputs_;
  Arithmetic arithmetic_;
  std::map<std::string, std::int64_t> sizes_;
  std::unordered_map<const Node*, Grid<Value>> grids_;
  mutable std::unordered_map<const Node*, Grid<Value>> as_f32_; // of i32, where a node wants it so
};

} // namespace kiln::detail
