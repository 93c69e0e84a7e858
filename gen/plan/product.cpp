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

constexpr std::size_t max_products = 2; // of one A

bool is_product(const Expr& e) { return info(e.op()).kind == OpKind::product; }
bool is_by_expert(const Expr& e) { return info(e.op()).kind == OpKind::experts; }
bool is_columns(const Expr& e) { return info(e.op()).kind == OpKind::columns; }

// a_scale of a product as transpose(input): the input has the groups in front.
bool is_by_group(const Expr& scale) { return scale.op() == Op::transpose; }

// A product with the matrices of all experts is only what by_expert and sum_of_experts take from it.
void require_by_expert(const Expr& product, const std::set<const Node*>& elsewhere) {
  if (elsewhere.contains(&product.node()))
    throw UserError(
        fmt::format("operation '{}'", info(product.op()).name),
        fmt::format("its b '{}' is {}, a matrix for each expert", product.operands()[1]->name, to_text(product.operands()[1].shape())),
        "take the products of each token's experts: by_expert(product, order, offsets), or sum_of_experts");
}

// From a product, what experts take of it, or columns of either.
Product product_of(const Expr& node, const std::string& placeholder) {
  const Expr& whole = is_columns(node) ? node.operands()[0] : node;
  const Expr& product = is_by_expert(whole) ? whole.operands()[0] : whole;
  ProductOperands operands = operands_of(product);
  Product result{.name = info(product.op()).name,
                 .a = std::move(operands.a),
                 .b = std::move(operands.b),
                 .first = is_columns(node) ? node->first : 0,
                 .n = node.shape().back().size(),
                 .placeholder = placeholder,
                 .line = node->line};
  if (is_by_expert(whole)) result.sorted.assign(whole.operands().begin() + 1, whole.operands().end());
  return result;
}

} // namespace

const Product* find_product(std::span<const Product> products, std::string_view placeholder) {
  const auto found = std::ranges::find(products, placeholder, &Product::placeholder);
  return found == products.end() ? nullptr : &*found;
}

std::optional<Refusal> why_unlike(const std::string& kernel, std::span<const Product> products) {
  const auto subject = fmt::format("kernel '{}'", kernel);
  if (products.size() > max_products)
    return Refusal{subject, fmt::format("it has {} matrix products", products.size()),
                   fmt::format("use at most {}, which share their rows of a", max_products)};
  const Product& first = products.front();
  const auto same = [](const Expr& a, const Expr& b) { return a.same_node(b); };
  for (const Product& p : products) {
    if (!std::ranges::equal(p.sorted, first.sorted, same))
      return Refusal{subject, "its products take the matrices of other experts, or of none",
                     "give both the same order and offsets, or use two kernels"};
    if (!p.a.memory.same_node(first.a.memory))
      return Refusal{subject, fmt::format("its products read '{}' and '{}'", first.a.memory->name, p.a.memory->name),
                     "multiply one a by both, or use two kernels"};
    if (p.n != first.n)
      return Refusal{subject, fmt::format("its products have {} and {} columns", first.n, p.n), "give them the same, or use two kernels"};
    if (p.name != first.name || p.b.encoding != first.b.encoding || p.b.group != first.b.group ||
        p.b.preshuffled() != first.b.preshuffled())
      return Refusal{subject, fmt::format("its products are '{}' and '{}' of different groups or layouts", first.name, p.name),
                     "give both matrices one kind of weights"};
    if (!std::ranges::equal(p.a.scales, first.a.scales, same) || p.a.scales_by_group != first.a.scales_by_group)
      return Refusal{
          subject,
          fmt::format("its products scale '{}' by '{}' and by '{}'", first.a.memory->name, first.a.scales[0]->name, p.a.scales[0]->name),
          "use one a_scale for both, in one order"};
    if (!std::ranges::equal(p.a.norm, first.a.norm, same) || p.a.epsilon != first.a.epsilon)
      return Refusal{subject, "its products norm their rows of a by other weights, squares or scales", "norm a once, or use two kernels"};
    if (p.b.packed_zeros() != first.b.packed_zeros() || (p.b.packed_zeros() && p.rows_of_b() != first.rows_of_b()))
      return Refusal{subject, "the zero points of its products lie in different ways",
                     "give both u8[n, groups], or i32[groups, n / 8] of the same n"};
    if (p.b.memory.dtype() != first.b.memory.dtype())
      return Refusal{subject, fmt::format("its products multiply by {} and by {}", type_text(first.b.memory), type_text(p.b.memory)),
                     "give both matrices one type"};
  }
  return {};
}

SplitSpec split_products(const SpecGraph& graph) {
  const KernelSpec& spec = graph.spec;
  std::set<const Node*> operands, elsewhere, whole; // operands of products; of anything else; of all but columns
  for (const Expr& node : graph.nodes) {
    for (const Expr& operand : node.operands()) {
      (is_product(node) || is_by_expert(node) || is_by_group(node) ? operands : elsewhere).insert(&operand.node());
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
    if (is_by_group(node)) continue;
    if ((is_product(node) || is_by_expert(node)) && !whole.contains(&node.node())) continue; // only ranges of its columns are used
    if (is_product(node) && node.operands()[1].shape().size() == 3) {
      require_by_expert(node, elsewhere);
      continue;
    }
    if (is_product(node) || is_columns(node) || is_by_expert(node)) {
      const std::string placeholder = unused_name(fmt::format("product{}", split.products.size()), graph.names);
      split.products.push_back(product_of(node, placeholder));
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
