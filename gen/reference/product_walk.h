// The walk over matrix products that evaluate and evaluate_bounds share, of one matrix and of those of experts. Internal to gen/reference.
#pragma once
#include "gen/reference/attention_walk.h"
#include "gen/reference/expert_check.h"
#include <algorithm>
#include <cmath>
#include <vector>

namespace kiln::detail {

// The operands of a product, row by row. Rows of b are counted through all experts.
class ProductOperands {
public:
  using Numbers = std::vector<double>;
  ProductOperands(const Expr& node, const Inputs& inputs)
      : node_(node), inputs_(inputs), a_(of(0)), b_(of(1)), k_(a_.shape().back()), n_(*(b_.shape().end() - 2)) {}
  std::int64_t n() const { return n_; } // of an expert
  bool is_of_mx() const { return node_.op() == Op::matmul_nt_mx_mx; }

  Numbers row_of_a(std::int64_t row) const {
    if (is_normed()) return normed(row, 0);
    Numbers numbers = is_of_mx() ? mx_row(0, row) : memory_row(a_, row);
    if (node_.op() != Op::matmul_nt_quantised) return numbers;
    const float factor = most() / absmax_of(row);
    for (double& number : numbers) number = rounded(b_.dtype(), static_cast<float>(number) * factor);
    return numbers;
  }
  // How far numbers of a normed row may lie from row_of_a: those near the middle of two numbers of b's type are rounded to either. Of
  // others nothing.
  Numbers spread_of_a(std::int64_t row) const {
    if (!is_normed()) return {};
    const double error = norm_error(row);
    Numbers low = normed(row, -error);
    const Numbers high = normed(row, error);
    for (std::size_t i = 0; i < low.size(); ++i) low[i] = std::fabs(high[i] - low[i]);
    return low;
  }
  Numbers row_of_b(std::int64_t row) const {
    if (node_.op() == Op::matmul_nt_w4) return unpacked(row);
    if (is_of_mx()) return mx_row(1, row);
    Numbers numbers = memory_row(b_, row);
    if (node_.op() != Op::matmul_nt_mx) return numbers;
    const std::int64_t blocks = of(2).shape().back();
    for (std::int64_t i = 0; i < k_; ++i) {
      double& weight = numbers[static_cast<std::size_t>(i)];
      weight = rounded(a_.dtype(), static_cast<float>(weight) * of(2).at(row * blocks + i * blocks / k_)); // the product is exact
    }
    return numbers;
  }
  // The f32 products of the scales of row `row` of a and of row `row_of_b` of b, one for scale_block elements each.
  std::vector<float> scales(std::int64_t row, std::int64_t row_of_b) const {
    const auto groups = static_cast<std::size_t>(group_count(k_, scale_block));
    if (is_normed()) return std::vector<float>(groups, of(4).at(0));
    if (node_.op() == Op::matmul_nt_quantised) return std::vector<float>(groups, absmax_of(row) / most());
    std::vector<float> scales;
    if (node_.op() != Op::matmul_nt_scaled) return scales;
    const std::int64_t block = row_of_b / n_ * group_count(n_, scale_block) + row_of_b % n_ / scale_block;
    for (std::int64_t g = 0; g < group_count(k_, scale_block); ++g) scales.push_back(scale(2, row, g) * scale(3, block, g));
    return scales;
  }

private:
  bool is_normed() const { return node_.op() == Op::matmul_nt_normed; }
  static double rounded(DType type, float number) { return static_cast<double>(round_to(type, number)); }
  Numbers memory_row(const Tensor& tensor, std::int64_t row) const {
    Numbers numbers;
    for (std::int64_t i = 0; i < k_; ++i) numbers.push_back(static_cast<double>(tensor.at(row * k_ + i)));
    return numbers;
  }
  // MX operands: row `row` of operand 0 or 1, each number times its block's scale.
  Numbers mx_row(std::size_t operand, std::int64_t row) const {
    Numbers numbers = memory_row(of(operand), row);
    for (std::int64_t i = 0; i < k_; ++i)
      numbers[static_cast<std::size_t>(i)] *= static_cast<double>(scale(operand + 2, row, i / mx_block));
    return numbers;
  }
  const Tensor& of(std::size_t operand) const { return inputs_.tensors.at(node_.operands()[operand]->name); }
  // The tensor is [rows, groups], or an input with the groups in front that is transposed.
  float scale(std::size_t operand, std::int64_t row, std::int64_t group) const {
    const Expr& e = node_.operands()[operand];
    const Tensor& tensor = inputs_.tensors.at(e.op() == Op::transpose ? e.operands()[0]->name : e->name);
    return tensor.at(e.op() == Op::transpose ? group * tensor.shape().back() + row : row * tensor.shape().back() + group);
  }
  float most() const { return static_cast<float>(max_finite(b_.dtype())); }
  float absmax_of(std::int64_t row) const { // NaN is passed over
    float absmax = 0x1p-100F;
    for (std::int64_t i = 0; i < k_; ++i) absmax = std::fmax(absmax, std::fabs(a_.at(row * k_ + i)));
    return absmax;
  }
  // The numbers of a row times what norms it, times 1 + error, rounded to b's type.
  Numbers normed(std::int64_t row, double error) const {
    Numbers numbers = memory_row(a_, row);
    const Tensor& squares = of(3);
    const std::int64_t parts = squares.shape().back();
    double sum = 0;
    for (std::int64_t i = 0; i < parts; ++i) sum += static_cast<double>(squares.at(row * parts + i));
    const double mean = sum / static_cast<double>(k_) + static_cast<double>(node_.operands()[5]->value);
    const auto factor = static_cast<float>(1 / std::sqrt(mean) / static_cast<double>(of(4).at(0)));
    for (std::int64_t i = 0; i < k_; ++i) {
      double& number = numbers[static_cast<std::size_t>(i)];
      number =
          rounded(b_.dtype(), static_cast<float>(static_cast<double>(static_cast<float>(number) * factor * of(2).at(i)) * (1 + error)));
    }
    return numbers;
  }
  // How far off the device's f32 numbers of a row are at most, relatively: sums in any order, of which the root takes half, two ulps of
  // the root, a quotient and two products.
  double norm_error(std::int64_t row) const {
    const Tensor& squares = of(3);
    const std::int64_t parts = squares.shape().back();
    double sum = 0, magnitudes = 0;
    for (std::int64_t i = 0; i < parts; ++i) {
      sum += static_cast<double>(squares.at(row * parts + i));
      magnitudes += std::fabs(static_cast<double>(squares.at(row * parts + i)));
    }
    const double mean = std::fabs(sum / static_cast<double>(k_) + static_cast<double>(node_.operands()[5]->value));
    return 0x1p-24 * (static_cast<double>(parts + 2) * (magnitudes / static_cast<double>(k_) + mean) / mean + 8);
  }
  float zero_point(std::int64_t row, std::int64_t group) const {
    const Tensor& zero = of(3);
    if (zero.dtype() != i32) return zero.at(row * group_count(k_, node_->group) + group);
    const std::int64_t in_expert = row % n_, first = row / n_ * group_count(k_, node_->group); // groups of the experts before
    return static_cast<float>(zero.bits((first + group) * (n_ / 8) + in_expert / 8) >> (4 * (in_expert % 8)) & 15);
  }
  Numbers unpacked(std::int64_t row) const {
    const Tensor& scale = of(2);
    Numbers numbers;
    for (std::int64_t k = 0; k < k_; ++k) {
      const std::int64_t group = row * scale.shape().back() + k / node_->group;
      const std::uint64_t byte = b_.bits(row * b_.shape().back() + k / 2), q = k % 2 ? byte >> 4 : byte & 15;
      numbers.push_back(
          rounded(scale.dtype(), (static_cast<float>(q) - zero_point(row, k / node_->group)) * scale.at(group))); // exact before
    }
    return numbers;
  }

  const Expr& node_;
  const Inputs& inputs_;
  const Tensor &a_, &b_;
  std::int64_t k_, n_;
};

// Calls put(i, column, product) for row rows_of_a[i] of a times each row of b from first_of_b on.
template <typename Arithmetic, typename Put>
void multiply_rows(const ProductOperands& operands, const std::vector<std::int64_t>& rows_of_a, std::int64_t first_of_b,
                   const Arithmetic& arithmetic, const Put& put) {
  std::vector<ProductOperands::Numbers> rows, spreads;
  for (const std::int64_t row : rows_of_a) {
    rows.push_back(operands.row_of_a(row));
    spreads.push_back(operands.spread_of_a(row));
  }
  for (std::int64_t c = 0; c < operands.n() && !rows.empty(); ++c) {
    const ProductOperands::Numbers column = operands.row_of_b(first_of_b + c);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::vector<float> scales = operands.scales(rows_of_a[r], first_of_b + c);
      double spread = 0;
      for (std::size_t i = 0; i < spreads[r].size(); ++i)
        if (spreads[r][i] > 0) spread += spreads[r][i] * std::fabs(column[i] * static_cast<double>(scales[0]));
      put(r, c,
          arithmetic.product(
              {.a = rows[r], .b = column, .scales = scales, .group = scale_block, .holds_scales = operands.is_of_mx(), .spread = spread}));
    }
  }
}

template <typename Arithmetic>
std::vector<typename Arithmetic::Value> products_of(const Expr& node, const Inputs& inputs, const Sizes& shape,
                                                    const Arithmetic& arithmetic) {
  using Value = typename Arithmetic::Value;
  const ProductOperands operands(node, inputs);
  std::vector<std::int64_t> rows;
  for (std::int64_t r = 0; r < shape[0]; ++r) rows.push_back(r);
  std::vector<Value> values(static_cast<std::size_t>(element_count(shape)), arithmetic.leaf(0));
  multiply_rows(operands, rows, 0, arithmetic, [&](std::size_t r, std::int64_t c, Value product) {
    values[r * static_cast<std::size_t>(operands.n()) + static_cast<std::size_t>(c)] = product;
  });
  return values;
}

// by_expert: [tokens, top, n]; sum_of_experts: [tokens, n].
template <typename Arithmetic>
std::vector<typename Arithmetic::Value> products_by_expert(const Expr& node, const Inputs& inputs, const Sizes& shape,
                                                           const Arithmetic& arithmetic) {
  using Value = typename Arithmetic::Value;
  const Expr& product = node.operands()[0];
  const ProductOperands operands(product, inputs);
  const Tensor &order = inputs.tensors.at(node.operands()[1]->name), &offsets = inputs.tensors.at(node.operands()[2]->name);
  const std::int64_t top = order.shape()[1], n = operands.n();
  const bool of_pairs = product.operands()[0].shape().size() == 3;
  std::vector<Value> values(static_cast<std::size_t>(order.size() * n), arithmetic.leaf(0));
  for (std::int64_t e = 0; e + 1 < offsets.size(); ++e) {
    std::vector<std::int64_t> pairs, rows;
    for (std::int64_t at = offsets.integer(e); at < offsets.integer(e + 1); ++at) {
      pairs.push_back(order.integer(at));
      rows.push_back(of_pairs ? pairs.back() : pairs.back() / top);
    }
    multiply_rows(operands, rows, e * n, arithmetic,
                  [&](std::size_t r, std::int64_t c, Value value) { values[static_cast<std::size_t>(pairs[r] * n + c)] = value; });
  }
  if (node.op() == Op::by_expert) return values;
  const Tensor& weights = inputs.tensors.at(node.operands()[3]->name);
  std::vector<Value> sums, terms;
  for (std::int64_t i = 0; i < element_count(shape); ++i) {
    terms.clear();
    for (std::int64_t pair = i / n * top; pair < (i / n + 1) * top; ++pair) {
      const Value factors[] = {values[static_cast<std::size_t>(pair * n + i % n)], arithmetic.leaf(weights.at(pair))};
      terms.push_back(arithmetic.pointwise(Op::mul, factors, 2));
    }
    sums.push_back(arithmetic.reduce(Op::row_sum, terms));
  }
  return sums;
}

} // namespace kiln::detail
