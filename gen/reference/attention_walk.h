// The walk over the keys of attention that evaluate and evaluate_bounds share. Internal to gen/reference.
#pragma once
#include "gen/reference/evaluate.h"
#include "gen/reference/range.h"
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
      : shape_(inputs.tensors.at(cache_operand(scores.operands()[1]).cache->name).shape()), heads_(shape[shape.size() - 2]),
        tokens_(shape.size() == 4 ? shape[1] : 1), keys_(shape.back()) {
    if (scores.operands().size() > 2) pages_ = &inputs.tensors.at(scores.operands()[2]->name);
  }
  std::int64_t keys() const { return keys_; } // that a sequence has room for
  std::int64_t d() const { return shape_[3]; }
  std::int64_t sequence_of(std::int64_t row) const { return row / (heads_ * tokens_); }
  // The place of the head of key `key` that row `row` of the scores reads, counted in [.., .., kv_heads]; -1 if it is in no page.
  std::int64_t place(std::int64_t row, std::int64_t key) const {
    const std::int64_t sequence = sequence_of(row), head = row % heads_ / (heads_ / shape_[2]);
    std::int64_t place = sequence * keys_ + key;
    if (pages_) {
      const std::int64_t page = pages_->integer(sequence * pages_->shape()[1] + key / shape_[1]);
      if (page < 0 || page >= shape_[0]) return -1;
      place = page * shape_[1] + key % shape_[1];
    }
    return place * shape_[2] + head;
  }
  // The place of that place's scale in a tensor of `shape`, which broadcasts to the cache's.
  std::int64_t scale_of(std::int64_t place, const Sizes& shape) const {
    const std::int64_t at[4] = {place / shape_[2] / shape_[1], place / shape_[2] % shape_[1], place % shape_[2], 0};
    std::int64_t index = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) index = index * shape[i] + (shape[i] == 1 ? 0 : at[4 - shape.size() + i]);
    return index;
  }

private:
  const Sizes& shape_; // of k and v
  std::int64_t heads_, tokens_, keys_;
  const Tensor* pages_ = nullptr;
};

template <typename Number> std::vector<Number> head_of(const Tensor& tensor, std::int64_t place, std::int64_t d) {
  std::vector<Number> head(static_cast<std::size_t>(d), 0);
  for (std::int64_t i = 0; place >= 0 && i < d; ++i) head[static_cast<std::size_t>(i)] = static_cast<Number>(tensor.at(place * d + i));
  return head;
}

// Keys or values, and their scales.
struct CacheTensors {
  const Tensor* cache;
  const Tensor* scale; // nullptr for none
  std::int64_t columns;
  CacheTensors(const Expr& operand, const Inputs& inputs) {
    const CacheOperand parts = cache_operand(operand);
    cache = &inputs.tensors.at(parts.cache->name);
    scale = parts.scale ? &inputs.tensors.at((*parts.scale)->name) : nullptr;
    columns = parts.columns ? parts.columns : cache->shape().back();
  }
  float scale_at(const KeyRows& rows, std::int64_t place) const { return scale->at(rows.scale_of(place, scale->shape())); }
};

// Roundings of the elements of v beside those of weights and sums: what their product with a scale adds.
struct ValueRounding {
  double relative = 0, absolute = 0, most = 0; // beyond `most` they are infinite
  static ValueRounding of(const CacheTensors& v, DType type) {
    if (!v.scale) return {};
    const Sizes& shape = v.scale->shape();
    const bool of_keys = shape.size() == 4 && (shape[0] != 1 || shape[1] != 1);
    if (!of_keys) return {.relative = 0x1p-23, .most = 0x1p127}; // the result is multiplied
    return type == f16 ? ValueRounding{.relative = 0x1.01p-11, .absolute = 0x1p-25, .most = 65504}
                       : ValueRounding{.relative = 0x1.01p-8, .absolute = 0x1p-126, .most = 0x1p127};
  }
};

// The products of q and k; 0 for keys that are in no page.
template <typename Arithmetic>
std::vector<typename Arithmetic::Value> scores_of_keys(const Expr& node, const Inputs& inputs, const Sizes& shape,
                                                       const Arithmetic& arithmetic) {
  const KeyRows rows(node, inputs, shape);
  const Tensor& q = inputs.tensors.at(node.operands()[0]->name);
  const CacheTensors k(node.operands()[1], inputs);
  std::vector<typename Arithmetic::Value> values;
  values.reserve(static_cast<std::size_t>(element_count(shape)));
  for (std::int64_t row = 0, count = rows.keys() ? element_count(shape) / rows.keys() : 0; row < count; ++row) {
    const auto query = head_of<double>(q, row, rows.d());
    for (std::int64_t key = 0; key < rows.keys(); ++key) {
      const std::int64_t place = rows.place(row, key);
      const auto of_key = head_of<double>(*k.cache, place, rows.d());
      typename Arithmetic::Value both[2] = {place < 0 ? arithmetic.leaf(0) : arithmetic.product({.a = query, .b = of_key}),
                                            arithmetic.leaf(1)};
      if (k.scale && place >= 0) {
        both[1] = arithmetic.leaf(static_cast<double>(k.scale_at(rows, place)));
        both[0] = arithmetic.pointwise(Op::mul, both, 2);
      }
      values.push_back(both[0]);
    }
  }
  return values;
}

// Attention, or its log-sum-exp, of the scores in `grid`. Arithmetic has, for the scores of one row:
//   Weights weights(std::span<const Value> scores, DType rounded_to) const;
//   Value weighted_sum(const Weights&, std::span<const float> values, const ValueRounding&) const;
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
    const CacheTensors v(node.operands()[1], inputs);
    const ValueRounding rounding = ValueRounding::of(v, scores.operands()[0].dtype());
    std::vector<std::vector<float>> heads;
    for (std::size_t key = 0; key < length; ++key) {
      const std::int64_t place = rows.place(row, static_cast<std::int64_t>(key));
      std::vector<float>& head = heads.emplace_back(head_of<float>(*v.cache, place, rows.d()));
      if (const float scale = v.scale && place >= 0 ? v.scale_at(rows, place) : 1; v.scale)
        for (float& x : head) x *= scale;
    }
    column.resize(length);
    for (std::size_t c = 0; c < static_cast<std::size_t>(v.columns); ++c) {
      for (std::size_t key = 0; key < length; ++key) column[key] = heads[key][c];
      values.push_back(arithmetic.weighted_sum(weights, column, rounding));
    }
  }
  return values;
}

} // namespace kiln::detail
