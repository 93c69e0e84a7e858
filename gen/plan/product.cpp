// Products: the split of a spec into products and epilogue, and what products a kernel computes.
#include "gen/plan/product.h"
#include "gen/error.h"
#include "gen/spec/graph.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace kiln {
namespace {

constexpr std::int64_t max_rows = 64;
constexpr std::int64_t max_size = 1 << 24;
constexpr std::size_t max_products = 2;

bool is_product(const Expr& e) { return info(e.op()).kind == OpKind::product; }
bool is_columns(const Expr& e) { return info(e.op()).kind == OpKind::columns; }

std::string operand_text(const Expr& e) { return fmt::format("{}{}", to_string(e.dtype()), to_text(e.shape())); }

// Bits of an element of an operand: b of a matmul_nt_w4 has two numbers a byte.
int element_bits(const Product& p, const Expr& e) { return p.op == Op::matmul_nt_w4 && e.same_node(p.b) ? 4 : 8 * size_bytes(e.dtype()); }

// Columns of a product begin where rows of b, and blocks that share a scale, do in memory.
void require_first_column(const Product& p) {
  const auto subject = fmt::format("operation 'columns' of a product with '{}'", p.b->name);
  const std::int64_t multiple = p.op == Op::matmul_nt_scaled ? scale_block : p.b->layout == Layout::preshuffled ? 16 : 1;
  if (p.first % multiple)
    throw UserError(subject, fmt::format("it begins at column {}, inside of {}", p.first, multiple == 16 ? "16 preshuffled rows" : "a block of 128 rows with one scale"),
                    fmt::format("begin at a multiple of {}", multiple));
}

} // namespace

const Product* SplitSpec::find(std::string_view placeholder) const {
  const auto found = std::ranges::find(products, placeholder, &Product::placeholder);
  return found == products.end() ? nullptr : &*found;
}

bool has_product(const KernelSpec& spec) { return std::ranges::any_of(nodes_in_order(spec), is_product); }

SplitSpec split_products(const KernelSpec& given) {
  const KernelSpec spec = merge_equal_nodes(given);
  const std::vector<Expr> nodes = nodes_in_order(spec);
  std::set<std::string> names;
  std::set<const Node*> operands, elsewhere, whole; // operands of products; of anything else; of all but columns
  for (const Expr& node : nodes) {
    if (!node->name.empty()) names.insert(node->name);
    for (const Expr& operand : node.operands()) {
      (is_product(node) ? operands : elsewhere).insert(&operand.node());
      if (!is_columns(node)) whole.insert(&operand.node());
    }
  }
  for (const Output& output : spec.outputs()) {
    names.insert(output.name);
    elsewhere.insert(&output.value.node());
    whole.insert(&output.value.node());
  }
  for (const Dim& dim : spec.dynamic_dims()) names.insert(dim.name());
  SplitSpec split{KernelSpec(spec.name()), {}};
  std::unordered_map<const Node*, Expr> rewritten;
  for (const Expr& node : nodes) {
    if (node.op() == Op::input && operands.contains(&node.node())) {
      if (elsewhere.contains(&node.node()))
        throw UserError(fmt::format("input '{}'", node->name), "a matrix product and another operation use it",
                        "give the other one an input of its own name; both may point to the same memory");
      continue;
    }
    if (is_product(node) && !whole.contains(&node.node())) continue; // only ranges of its columns are used
    if (is_product(node) || is_columns(node)) {
      const Expr& product = is_columns(node) ? node.operands()[0] : node;
      std::string placeholder = fmt::format("product{}", split.products.size());
      while (names.contains(placeholder)) placeholder = "kiln_" + placeholder;
      split.products.push_back({.op = product.op(),
                                .a = product.operands()[0],
                                .b = product.operands()[1],
                                .scales = {product.operands().begin() + 2, product.operands().end()},
                                .group = product.op() == Op::matmul_nt_scaled ? scale_block : product->group,
                                .first = is_columns(node) ? node->first : 0,
                                .n = node.shape()[1].size(),
                                .placeholder = placeholder});
      rewritten.emplace(&node.node(), input(placeholder, f32, node.shape()));
      continue;
    }
    Node copy = node.node();
    for (Expr& operand : copy.operands) operand = rewritten.at(&operand.node());
    rewritten.emplace(&node.node(), Expr(std::make_shared<const Node>(std::move(copy))));
  }
  for (const Output& output : spec.outputs()) {
    const auto found = rewritten.find(&output.value.node());
    if (found == rewritten.end()) throw InternalError("an output that is an operand of a product");
    split.epilogue.output(output.name, output.dtype, found->second,
                          {.in_place_of = output.in_place_of, .layout = output.layout});
  }
  return split;
}

void require_products(const SplitSpec& split) {
  const auto subject = fmt::format("kernel '{}'", split.epilogue.name());
  if (split.products.size() > max_products)
    throw UserError(subject, fmt::format("it has {} matrix products", split.products.size()),
                    fmt::format("use at most {}, which share their rows of a", max_products));
  const Product& first = split.products.front();
  for (const Product& p : split.products) {
    if (!p.a.same_node(first.a))
      throw UserError(subject, fmt::format("its products read '{}' and '{}'", first.a->name, p.a->name),
                      "multiply one a by both, or use two kernels");
    if (p.n != first.n)
      throw UserError(subject, fmt::format("its products have {} and {} columns", first.n, p.n), "give them the same, or use two kernels");
    if (p.op != first.op || p.group != first.group || p.b->layout != first.b->layout)
      throw UserError(subject, fmt::format("its products are '{}' and '{}' of different groups or layouts", info(first.op).name, info(p.op).name),
                      "give both matrices one kind of weights");
    if (p.op == Op::matmul_nt_scaled && !p.scales[0].same_node(first.scales[0]))
      throw UserError(subject, fmt::format("its products scale '{}' by '{}' and by '{}'", first.a->name, first.scales[0]->name, p.scales[0]->name),
                      "use one a_scale for both");
    if (p.b.dtype() != first.b.dtype())
      throw UserError(subject, fmt::format("its products multiply by {} and by {}", operand_text(first.b), operand_text(p.b)),
                      "give both matrices one type");
  }
  const Dim& m = first.a.shape()[0];
  const std::string rows = fmt::format("rows of '{}'", first.a->name);
  if (m.is_dynamic() && !m.max())
    throw UserError(rows, fmt::format("'{}' has no upper bound", m.name()),
                    fmt::format("declare it as dynamic(\"{0}\", 1, 16), or dim {0}[1..16]; at most {1}", m.name(), max_rows));
  const std::int64_t most = m.is_dynamic() ? *m.max() : m.size();
  if (most < 1 || most > max_rows)
    throw UserError(rows, fmt::format("there may be {}", most),
                    fmt::format("use 1 to {}: a skinny product; larger ones are another kernel's work", max_rows));
  const std::int64_t k = first.a.shape()[1].size();
  for (const auto& [what, size] : {std::pair{"n", first.n}, std::pair{"k", k}})
    if (size > max_size) throw UserError(subject, fmt::format("{} is {}", what, size), fmt::format("use at most {}", max_size));
  for (const Expr& e : {first.a, first.b}) {
    const std::int64_t natural = 128 / element_bits(first, e);
    if (k % natural)
      throw UserError(fmt::format("operand '{}' of {}", e->name, info(first.op).name),
                      fmt::format("k is {}, but rows of {} are read 16 bytes at a time", k, element_bits(first, e) == 4 ? "4-bit numbers" : to_string(e.dtype())),
                      fmt::format("pad k to {}, a multiple of {}, with zeros", (k + natural - 1) / natural * natural, natural));
  }
  for (const Product& p : split.products) require_first_column(p);
}

} // namespace kiln
