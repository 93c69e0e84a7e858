// The walk over the keys of attention that evaluate and evaluate_bounds share. Internal to gen/reference.
#pragma once
#include "gen/reference/evaluate.h"
#include "gen/spec/attention.h"
#include <algorithm>
#include <cmath>
#include <vector>

namespace kiln::detail {

using Sizes = std::vector<std::int64_t>;

Sizes concrete(const Shape& shape, const std::map<std::string, std::int64_t>& sizes);
std::int64_t element_count(const Sizes& sizes);

template <typename Value> struct Grid {
  Sizes shape;
  std::vector<Value> values;
};

// Says where the heads of keys and values lie.
class KeyRows {
public:
  // `scores`: the node of attention_scores.
  KeyRows(const Expr& scores, const Inputs& inputs, const Sizes& shape)
      : shape_(inputs.tensors.at(scores.operands()[1]->name).shape()), heads_(shape[shape.size() - 2]),
        tokens_(shape.size() == 4 ? shape[1] : 1), keys_(shape.back()) {
    if (scores.operands().size() > 2) pages_ = &inputs.tensors.at(scores.operands()[2]->name);
  }
  std::int64_t keys() const { return keys_; } // that a sequence has room for
  std::int64_t d() const { return shape_[3]; }
  std::int64_t sequence_of(std::int64_t row) const { return row / (heads_ * tokens_); }
  // The first element of the head of key `key` that row `row` of the scores reads; -1 if it is in no page.
  std::int64_t first_element(std::int64_t row, std::int64_t key) const {
    const std::int64_t sequence = sequence_of(row), head = row % heads_ / (heads_ / shape_[2]);
    std::int64_t place = sequence * keys_ + key;
    if (pages_) {
      const std::int64_t page = pages_->integer(sequence * pages_->shape()[1] + key / shape_[1]);
      if (page < 0 || page >= shape_[0]) return -1;
      place = page * shape_[1] + key % shape_[1];
    }
    return (place * shape_[2] + head) * shape_[3];
  }

private:
  const Sizes& shape_; // of k and v
  std::int64_t heads_, tokens_, keys_;
  const Tensor* pages_ = nullptr;
};

inline std::vector<float> head_of(const Tensor& tensor, std::int64_t first, std::int64_t d) {
  std::vector<float> head(static_cast<std::size_t>(d), 0.0f);
  for (std::int64_t i = 0; first >= 0 && i < d; ++i) head[static_cast<std::size_t>(i)] = tensor.at(first + i);
  return head;
}

// The products of q and k; 0 for keys that are in no page.
template <typename Arithmetic>
std::vector<typename Arithmetic::Value> scores_of_keys(const Expr& node, const Inputs& inputs, const Sizes& shape,
                                                       const Arithmetic& arithmetic) {
  const KeyRows rows(node, inputs, shape);
  const Tensor &q = inputs.tensors.at(node.operands()[0]->name), &k = inputs.tensors.at(node.operands()[1]->name);
  std::vector<typename Arithmetic::Value> values;
  values.reserve(static_cast<std::size_t>(element_count(shape)));
  for (std::int64_t row = 0, count = rows.keys() ? element_count(shape) / rows.keys() : 0; row < count; ++row) {
    const std::vector<float> query = head_of(q, row * rows.d(), rows.d());
    for (std::int64_t key = 0; key < rows.keys(); ++key) {
      const std::int64_t first = rows.first_element(row, key);
      values.push_back(first < 0 ? arithmetic.leaf(0) : arithmetic.product(query, head_of(k, first, rows.d())));
    }
  }
  return values;
}

// Attention, or its log-sum-exp, of the scores in `grid`. Arithmetic has, for the scores of one row:
//   Weights weights(std::span<const Value> scores, DType rounded_to) const;
//   Value weighted_sum(const Weights&, std::span<const float> values) const;
//   Value log_of_sum(const Weights&) const;
template <typename Arithmetic>
std::vector<typename Arithmetic::Value> attend(const Expr& node, const Inputs& inputs, const Grid<typename Arithmetic::Value>& grid,
                                               const Arithmetic& arithmetic) {
  const Expr scores = scores_node(node.operands()[0]);
  const KeyRows rows(scores, inputs, grid.shape);
  const Tensor& lengths = inputs.tensors.at(node.operands().back()->name);
  std::vector<typename Arithmetic::Value> values;
  std::vector<float> column;
  for (std::int64_t row = 0; row * rows.keys() < std::ssize(grid.values); ++row) {
    const auto length = static_cast<std::size_t>(std::clamp<std::int64_t>(lengths.integer(rows.sequence_of(row)), 0, rows.keys()));
    const auto weights = arithmetic.weights({grid.values.data() + row * rows.keys(), length}, scores.operands()[0].dtype());
    if (node.op() == Op::log_sum_exp) {
      values.push_back(arithmetic.log_of_sum(weights));
      continue;
    }
    const Tensor& v = inputs.tensors.at(node.operands()[1]->name);
    std::vector<std::vector<float>> heads;
    for (std::size_t key = 0; key < length; ++key)
      heads.push_back(head_of(v, rows.first_element(row, static_cast<std::int64_t>(key)), rows.d()));
    column.resize(length);
    for (std::size_t c = 0; c < static_cast<std::size_t>(rows.d()); ++c) {
      for (std::size_t key = 0; key < length; ++key) column[key] = heads[key][c];
      values.push_back(arithmetic.weighted_sum(weights, column));
    }
  }
  return values;
}

} // namespace kiln::detail
