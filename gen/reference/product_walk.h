// The walk over matrix products that evaluate and evaluate_bounds share, of one matrix and of those of experts. Internal to gen/reference.
#pragma once
#include "gen/reference/attention_walk.h"
#include "gen/reference/index_check.h"
#include "gen/spec/product.h"
#include <algorithm>
#include <cmath>
#include <vector>

namespace kiln::detail {

// The operands of a product, row by row. Rows of b are counted through all experts.
class ProductRows {
public:
  using Numbers = std::vector<double>;
  // Rows of a that are computed: their numbers, and how far each may lie off; no bound for those of which nothing is known.
  struct Computed {
    Numbers numbers, spread;
  };
  ProductRows(const Expr& product, const Inputs& inputs, Computed computed)
      : of_(operands_of(product)), inputs_(inputs), computed_(std::move(computed)), b_(tensor(of_.b.memory)),
        k_(of_.a.memory.shape().back().size()), n_(*(b_.shape().end() - 2)) {}
  std::int64_t n() const { return n_; } // of an expert
  // Whether numbers come with their scales, in place of scales().
  bool holds_scales() const { return of_.a.encoding == Encoding::mx; }

  Numbers row_of_a(std::int64_t row) const {
    if (is_computed()) return part(computed_.numbers, row);
    if (of_.a.prologue == Prologue::norm) return normed(row, 0);
    Numbers numbers = decoded(of_.a, row);
    if (of_.a.prologue == Prologue::none) return numbers;
    const float factor = max_of_b() / absmax_of(row);
    for (double& number : numbers) number = rounded(of_.a.rounded, static_cast<float>(number) * factor);
    return numbers;
  }
  // How far numbers of a normed row may lie from row_of_a: those near the middle of two numbers of b's type are rounded to either. Of
  // others nothing.
  Numbers spread_of_a(std::int64_t row) const {
    if (is_computed()) return part(computed_.spread, row);
    if (of_.a.prologue != Prologue::norm) return {};
    const double error = norm_error(row);
    Numbers low = normed(row, -error);
    const Numbers high = normed(row, error);
    for (std::size_t i = 0; i < low.size(); ++i) low[i] = std::fabs(high[i] - low[i]);
    return low;
  }
  Numbers row_of_b(std::int64_t row) const { return decoded(of_.b, row); }
  // The f32 products of the scales of row `row` of a and of row `row_of_b` of b, one for scale_block elements each.
  std::vector<float> scales(std::int64_t row, std::int64_t row_of_b) const {
    const auto groups = static_cast<std::size_t>(group_count(k_, scale_block));
    if (of_.a.prologue == Prologue::norm) return std::vector<float>(groups, tensor(of_.a.norm[2]).at(0));
    if (of_.a.prologue == Prologue::quantise) return std::vector<float>(groups, absmax_of(row) / max_of_b());
    std::vector<float> scales;
    if (of_.a.encoding != Encoding::block_scaled) return scales;
    const std::int64_t block = row_of_b / n_ * group_count(n_, scale_block) + row_of_b % n_ / scale_block;
    for (std::int64_t g = 0; g < group_count(k_, scale_block); ++g) scales.push_back(scale(of_.a, row, g) * scale(of_.b, block, g));
    return scales;
  }

private:
  bool is_computed() const { return of_.a.memory.op() != Op::input; }
  Numbers part(const Numbers& all, std::int64_t row) const { return {all.begin() + row * k_, all.begin() + (row + 1) * k_}; }
  static double rounded(DType type, float number) { return static_cast<double>(round_to(type, number)); }
  const Tensor& tensor(const Expr& input) const { return inputs_.tensors.at(input->name); }
  // The scales of an operand are [rows, groups], or have the groups in front.
  float scale(const Operand& operand, std::int64_t row, std::int64_t group) const {
    const Tensor& scales = tensor(operand.scales[0]);
    return scales.at(operand.scales_by_group ? group * scales.shape().back() + row : row * scales.shape().back() + group);
  }
  // The numbers of a row; those of MX formats times the scale of their block, those of int4 less their zero point too.
  Numbers decoded(const Operand& operand, std::int64_t row) const {
    const Tensor& memory = tensor(operand.memory);
    Numbers numbers;
    for (std::int64_t i = 0; i < k_; ++i) {
      if (operand.encoding == Encoding::int4) {
        const std::uint64_t byte = memory.bits(row * memory.shape().back() + i / 2), q = i % 2 ? byte >> 4 : byte & 15;
        numbers.push_back(static_cast<double>((static_cast<float>(q) - zero_point(row, i / operand.group)) *
                                              scale(operand, row, i / operand.group))); // exact
        continue;
      }
      const double number = memory.at(row * k_ + i);
      const bool has_scale = operand.encoding == Encoding::mx || operand.encoding == Encoding::nvfp4;
      numbers.push_back(has_scale ? number * static_cast<double>(scale(operand, row, i / operand.group)) : number);
    }
    if (operand.prologue == Prologue::none && operand.rounded != f32)
      for (double& number : numbers) number = rounded(operand.rounded, static_cast<float>(number));
    return numbers;
  }
  float max_of_b() const { return static_cast<float>(max_finite(of_.b.memory.dtype())); }
  float absmax_of(std::int64_t row) const { // NaN is passed over
    float absmax = min_quantised_absmax;
    for (std::int64_t i = 0; i < k_; ++i) absmax = std::fmax(absmax, std::fabs(tensor(of_.a.memory).at(row * k_ + i)));
    return absmax;
  }
  // The numbers of a row times what norms it, times 1 + error, rounded to b's type.
  Numbers normed(std::int64_t row, double error) const {
    Numbers numbers = decoded(of_.a, row);
    const Tensor &weight = tensor(of_.a.norm[0]), &squares = tensor(of_.a.norm[1]), &scale = tensor(of_.a.norm[2]);
    const std::int64_t parts = squares.shape().back();
    double sum = 0;
    for (std::int64_t i = 0; i < parts; ++i) sum += static_cast<double>(squares.at(row * parts + i));
    const double mean = sum / static_cast<double>(k_) + static_cast<double>(of_.a.epsilon);
    const auto factor = static_cast<float>(1 / std::sqrt(mean) / static_cast<double>(scale.at(0)));
    for (std::int64_t i = 0; i < k_; ++i) {
      double& number = numbers[static_cast<std::size_t>(i)];
      number =
          rounded(of_.a.rounded, static_cast<float>(static_cast<double>(static_cast<float>(number) * factor * weight.at(i)) * (1 + error)));
    }
    return numbers;
  }
  // How far off the device's f32 numbers of a row are at most, relatively: sums in any order, of which the root takes half, two ulps of
  // the root, a quotient and two products.
  double norm_error(std::int64_t row) const {
    const Tensor& squares = tensor(of_.a.norm[1]);
    const std::int64_t parts = squares.shape().back();
    double sum = 0, magnitudes = 0;
    for (std::int64_t i = 0; i < parts; ++i) {
      sum += static_cast<double>(squares.at(row * parts + i));
      magnitudes += std::fabs(static_cast<double>(squares.at(row * parts + i)));
    }
    const double mean = std::fabs(sum / static_cast<double>(k_) + static_cast<double>(of_.a.epsilon));
    return 0x1p-24 * (static_cast<double>(parts + 2) * (magnitudes / static_cast<double>(k_) + mean) / mean + 8);
  }
  float zero_point(std::int64_t row, std::int64_t group) const {
    const Tensor& zero = tensor(of_.b.scales[1]);
    const std::int64_t groups = group_count(k_, of_.b.group);
    if (!of_.b.packed_zeros()) return zero.at(row * groups + group);
    const std::int64_t in_expert = row % n_, first = row / n_ * groups; // groups of the experts before
    return static_cast<float>(zero.bits((first + group) * (n_ / 8) + in_expert / 8) >> (4 * (in_expert % 8)) & 15);
  }

  const ProductOperands of_;
  const Inputs& inputs_;
  const Computed computed_;
  const Tensor& b_;
  std::int64_t k_, n_;
};

// Calls put(i, column, product) for row rows_of_a[i] of a times each row of b from first_of_b on.
template <typename Arithmetic, typename Put>
void multiply_rows(const ProductRows& operands, const std::vector<std::int64_t>& rows_of_a, std::int64_t first_of_b,
                   const Arithmetic& arithmetic, const Put& put) {
  std::vector<ProductRows::Numbers> rows, spreads;
  for (const std::int64_t row : rows_of_a) {
    rows.push_back(operands.row_of_a(row));
    spreads.push_back(operands.spread_of_a(row));
  }
  for (std::int64_t c = 0; c < operands.n() && !rows.empty(); ++c) {
    const ProductRows::Numbers column = operands.row_of_b(first_of_b + c);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::vector<float> scales = operands.scales(rows_of_a[r], first_of_b + c);
      double spread = 0;
      for (std::size_t i = 0; i < spreads[r].size(); ++i)
        if (std::isinf(spreads[r][i])) spread = spreads[r][i];
        else if (spreads[r][i] > 0)
          spread += spreads[r][i] * std::fabs(scales.empty() ? column[i] : column[i] * static_cast<double>(scales[0]));
      put(r, c,
          arithmetic.product({.a = rows[r],
                              .b = column,
                              .scales = scales,
                              .group = scale_block,
                              .holds_scales = operands.holds_scales(),
                              .spread = spread}));
    }
  }
}

template <typename Arithmetic>
std::vector<typename Arithmetic::Value> products_of(const Expr& node, const Inputs& inputs, const Sizes& shape,
                                                    const Arithmetic& arithmetic, ProductRows::Computed computed) {
  using Value = typename Arithmetic::Value;
  const ProductRows operands(node, inputs, std::move(computed));
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
                                                           const Arithmetic& arithmetic, ProductRows::Computed computed) {
  using Value = typename Arithmetic::Value;
  const Expr& product = node.operands()[0];
  const ProductRows operands(product, inputs, std::move(computed));
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
      const Value factors[] = {values[static_cast<std::size_t>(pair * n + i % n)], arithmetic.leaf(static_cast<double>(weights.at(pair)))};
      terms.push_back(arithmetic.pointwise(Op::mul, factors, 2));
    }
    sums.push_back(arithmetic.reduce(Op::row_sum, terms));
  }
  return sums;
}

} // namespace kiln::detail
