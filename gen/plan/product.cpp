// Products: the split of a spec into products and epilogue.
#include "gen/plan/product.h"
#include "gen/error.h"
#include "gen/spec/names.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <unordered_map>

namespace kiln {
namespace {

bool is_product(const Expr& e) { return info(e.op()).kind == OpKind::product; }
bool is_by_expert(const Expr& e) { return info(e.op()).kind == OpKind::experts; }
bool is_columns(const Expr& e) { return info(e.op()).kind == OpKind::columns; }

// A product with the matrices of all experts is only what by_expert and sum_of_experts take from it.
void require_by_expert(const Expr& product, const std::set<const Node*>& elsewhere) {
  if (elsewhere.contains(&product.node()))
    throw UserError(
        fmt::format("operation '{}'", info(product.op()).name),
        fmt::format("its b '{}' is {}, a matrix for each expert", product.operands()[1]->name, to_text(product.operands()[1].shape())),
        "take the products of each token's experts: by_expert(product, order, offsets), or sum_of_experts");
}

} // namespace

const Product* find_product(std::span<const Product> products, std::string_view placeholder) {
  const auto found = std::ranges::find(products, placeholder, &Product::placeholder);
  return found == products.end() ? nullptr : &*found;
}

SplitSpec split_products(const SpecGraph& graph) {
  const KernelSpec& spec = graph.spec;
  std::set<const Node*> operands, elsewhere, whole; // operands of products; of anything else; of all but columns
  for (const Expr& node : graph.nodes) {
    for (const Expr& operand : node.operands()) {
      (is_product(node) || is_by_expert(node) ? operands : elsewhere).insert(&operand.node());
      if (!is_columns(node)) whole.insert(&operand.node());
    }
  }
  for (const Output& output : spec.outputs()) {
    elsewhere.insert(&output.value.node());
    whole.insert(&output.value.node());
  }
  SplitSpec split{KernelSpec(spec.name()), {}};
  std::unordered_map<const Node*, Expr> rewritten;
  for (const Expr& node : graph.nodes) {
    if (node.op() == Op::input && operands.contains(&node.node())) {
      if (elsewhere.contains(&node.node()))
        throw UserError(fmt::format("input '{}'", node->name), "a matrix product and another operation use it",
                        "give the other one an input of its own name; both may point to the same memory");
      continue;
    }
    if ((is_product(node) || is_by_expert(node)) && !whole.contains(&node.node())) continue; // only ranges of its columns are used
    if (is_product(node) && node.operands()[1].shape().size() == 3) {
      require_by_expert(node, elsewhere);
      continue;
    }
    if (is_product(node) || is_columns(node) || is_by_expert(node)) {
      const Expr& whole_product = is_columns(node) ? node.operands()[0] : node;
      const bool by_expert = is_by_expert(whole_product);
      const Expr& product = by_expert ? whole_product.operands()[0] : whole_product;
      const std::string placeholder = unused_name(fmt::format("product{}", split.products.size()), graph.names);
      split.products.push_back({.op = product.op(),
                                .a = product.operands()[0],
                                .b = product.operands()[1],
                                .scales = {product.operands().begin() + 2, product.operands().end()},
                                .group = product.op() == Op::matmul_nt_scaled                                      ? scale_block
                                         : product.op() == Op::matmul_nt_mx || product.op() == Op::matmul_nt_mx_mx ? mx_block
                                                                                                                   : product->group,
                                .first = is_columns(node) ? node->first : 0,
                                .n = node.shape().back().size(),
                                .placeholder = placeholder,
                                .line = node->line});
      if (by_expert) split.products.back().sorted.assign(whole_product.operands().begin() + 1, whole_product.operands().end());
      Node stand_in = input(placeholder, f32, node.shape()).node();
      stand_in.line = node->line;
      rewritten.emplace(&node.node(), Expr(std::move(stand_in)));
      continue;
    }
    Node copy = node.node();
    for (Expr& operand : copy.operands) operand = rewritten.at(&operand.node());
    rewritten.emplace(&node.node(), Expr(std::move(copy)));
  }
  for (const Output& output : spec.outputs()) {
    const auto found = rewritten.find(&output.value.node());
    if (found == rewritten.end()) throw InternalError("an output that is an operand of a product");
    split.epilogue.output(output.name, output.dtype, found->second, {.in_place_of = output.in_place_of, .layout = output.layout});
  }
  return split;
}

} // namespace kiln
