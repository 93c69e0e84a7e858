// Products: construction, and the split of a spec into products and epilogue.
#include "gen/product.h"
#include "gen/error.h"
#include "gen/graph.h"
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

std::string operand_text(const Expr& e) { return fmt::format("{}{}", name(e.dtype()), text(e.shape())); }

void require_matrix(std::string_view which, const Expr& e) {
  const auto subject = fmt::format("operation 'matmul_nt', operand {}", which);
  if (e.op() != Op::input)
    throw UserError(subject, fmt::format("it is a '{}', not an input", info(e.op()).name),
                    "compute it in a kernel of its own: a product reads its operands from memory");
  if (e.shape().size() != 2)
    throw UserError(subject, fmt::format("its shape {} has {} dimensions", text(e.shape()), e.shape().size()),
                    "give it two: [m, k] or [n, k]");
  if (e->layout != Layout::contiguous)
    throw UserError(subject, "it is strided", "use Layout::contiguous");
  if (e.shape()[1].is_dynamic())
    throw UserError(subject, fmt::format("its last dimension '{}' is known only at launch", e.shape()[1].name()),
                    "give k a number: kernels are specialised for it");
}

bool is_16_bit(DType type) { return type == f16 || type == bf16; }

bool can_multiply(DType a, DType b) {
  if (is_16_bit(a)) return b == a || is_fp8(b) || b == i8;
  return (is_fp8(a) && is_fp8(b) && is_fnuz(a) == is_fnuz(b)) || (a == i8 && b == i8);
}

} // namespace

Expr matmul_nt(Expr a, Expr b) {
  require_matrix("a", a);
  require_matrix("b", b);
  const std::string subject = "operation 'matmul_nt'";
  if (!same_size(a.shape()[1], b.shape()[1]))
    throw UserError(subject, fmt::format("k is {} in a {} and {} in b {}", a.shape()[1].text(), text(a.shape()),
                                         b.shape()[1].text(), text(b.shape())),
                    "give both the same last dimension: b is [n, k], not [k, n]");
  if (b.shape()[0].is_dynamic())
    throw UserError(subject, fmt::format("the rows '{}' of b are known only at launch", b.shape()[0].name()),
                    "give n a number: kernels are specialised for it");
  if (!can_multiply(a.dtype(), b.dtype()))
    throw UserError(subject, fmt::format("there is no product of {} and {}", name(a.dtype()), name(b.dtype())),
                    "use f16 or bf16 with itself, an fp8 or i8; fp8 with fp8 of the same kind; i8 with i8");
  Shape shape = {a.shape()[0], b.shape()[0]};
  return Expr(std::make_shared<const Node>(
      Node{.op = Op::matmul_nt, .dtype = f32, .shape = std::move(shape), .operands = {std::move(a), std::move(b)}}));
}

Expr columns(Expr product, std::int64_t first, std::int64_t count) {
  const std::string subject = "operation 'columns'";
  if (!is_product(product))
    throw UserError(subject, fmt::format("its operand is a '{}'", info(product.op()).name),
                    "take columns of a matmul_nt: other values are computed where they are used");
  const std::int64_t n = product.shape()[1].size();
  if (first < 0 || count < 1 || first > n || count > n - first)
    throw UserError(subject, fmt::format("columns {} to {} do not lie in the product's {}", first, first + count, n),
                    fmt::format("use first from 0 and first + count up to {}", n));
  Shape shape = {product.shape()[0], count};
  return Expr(std::make_shared<const Node>(
      Node{.op = Op::columns, .dtype = f32, .shape = std::move(shape), .operands = {std::move(product)}, .first = first}));
}

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
      split.products.push_back({.a = product.operands()[0],
                                .b = product.operands()[1],
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
    const std::int64_t natural = 16 / size_bytes(e.dtype());
    if (k % natural)
      throw UserError(fmt::format("operand '{}' of matmul_nt", e->name),
                      fmt::format("k is {}, but rows of {} are read 16 bytes at a time", k, name(e.dtype())),
                      fmt::format("pad k to {}, a multiple of {}, with zeros", (k + natural - 1) / natural * natural, natural));
  }
}

} // namespace kiln
