// KernelSpec: a named set of outputs, and what can be read off them.
#include "gen/spec/spec.h"
#include "gen/spec/graph.h"
#include "gen/spec/names.h"
#include <algorithm>
#include <utility>

namespace kiln {
namespace {

// Leaves are one when they say the same; two different leaves of one name both stay, for validate to find.
bool same_leaf(const Node& a, const Node& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.layout == b.layout;
}

std::vector<Expr> leaves(const KernelSpec& spec, Op op) {
  std::vector<Expr> result;
  for (const Expr& expr : nodes_in_order(spec)) {
    if (expr.op() != op) continue;
    if (std::ranges::none_of(result, [&](const Expr& known) { return same_leaf(known.node(), expr.node()); }))
      result.push_back(expr);
  }
  return result;
}

} // namespace

KernelSpec::KernelSpec(std::string name) : name_(std::move(name)) { require_name("kernel", name_); }

KernelSpec& KernelSpec::output(std::string name, DType dtype, Expr value, OutputOptions options) {
  require_name("output", name);
  outputs_.push_back({.name = std::move(name),
                      .dtype = dtype,
                      .value = cast(dtype, std::move(value)),
                      .in_place_of = std::move(options.in_place_of),
                      .layout = options.layout});
  return *this;
}

std::vector<Expr> KernelSpec::inputs() const { return leaves(*this, Op::input); }
std::vector<Expr> KernelSpec::scalars() const { return leaves(*this, Op::scalar); }

std::vector<Dim> KernelSpec::dynamic_dims() const {
  std::vector<Dim> result;
  for (const Expr& input : inputs())
    for (const Dim& dim : input.shape())
      if (dim.is_dynamic() && std::ranges::none_of(result, [&](const Dim& known) { return known == dim; }))
        result.push_back(dim);
  return result;
}

bool operator==(const KernelSpec& a, const KernelSpec& b) { return to_text(a) == to_text(b); }

} // namespace kiln
