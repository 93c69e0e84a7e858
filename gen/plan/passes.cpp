// Passes: which values are kept between passes, which are computed again.
#include "gen/plan/passes.h"
#include <algorithm>
#include <unordered_set>

namespace kiln {
namespace {

// From memory, at its own place or another.
bool is_read(const Expr& expr) { return expr.op() == Op::input || view_of(expr); }

constexpr int worth_keeping = 4; // vector instructions per element: from one transcendental on

void add_once(std::vector<int>& list, int index) {
  if (std::ranges::find(list, index) == list.end()) list.push_back(index);
}

class Splitter {
public:
  Splitter(const Body& body, BetweenPasses between, StoresIn stores)
      : body_(body), between_(between), stores_(stores), passes_(count(body, stores)), first_pass_(body.values.size(), -1) {}

  std::vector<Pass> run() {
    for (int p = 0; p < static_cast<int>(passes_.size()); ++p) {
      collect_roots(p);
      seen_.clear();
      for (const int root : passes_[static_cast<std::size_t>(p)].roots) visit(root, p);
    }
    return std::move(passes_);
  }

private:
  // What is stored in a last pass comes behind the reductions whose results are one a row, too.
  static std::size_t count(const Body& body, StoresIn stores) {
    int passes = body.passes;
    const auto of_pass = [&](const Output& o) { return body.tensor(o.name).extent > Extent::ranked; };
    if (stores == StoresIn::last_pass && std::ranges::any_of(body.outputs, of_pass))
      for (const Value& v : body.values) passes = std::max(passes, v.level + 1);
    return static_cast<std::size_t>(passes);
  }
  const Value& value(int index) const { return body_.value(index); }
  int index_of(const Expr& expr) const { return body_.index_of(expr); }

  void collect_roots(int p) {
    std::vector<int>& roots = passes_[static_cast<std::size_t>(p)].roots;
    for (const Value& v : body_.values)
      if (const OpKind kind = info(v.expr.op()).kind;
          v.level == p + 1 && (kind == OpKind::row_reduce || kind == OpKind::rank || kind == OpKind::pick || kind == OpKind::scan))
        if (body_.value(v.expr.operands()[0]).level <= p) // of ranks: no pass
          add_once(roots, index_of(v.expr.operands()[0]));
    for (std::size_t i = 0; i < body_.outputs.size(); ++i) {
      const Output& output = body_.outputs[i];
      const Extent extent = body_.tensor(output.name).extent;
      const int in_pass = stores_ == StoresIn::last_pass ? static_cast<int>(passes_.size()) - 1 : body_.value(output.value).level;
      if (extent == Extent::row || extent == Extent::ranked || in_pass != p) continue;
      add_once(roots, index_of(output.value));
      passes_[static_cast<std::size_t>(p)].stores.push_back(static_cast<int>(i));
    }
  }

  void visit(int index, int p) {
    if (!seen_.insert(index).second) return;
    const Value& v = value(index);
    if (v.extent <= Extent::ranked) return;
    Pass& pass = passes_[static_cast<std::size_t>(p)];
    int& first = first_pass_[static_cast<std::size_t>(index)];
    const bool earlier = first >= 0 && first < p && v.extent == Extent::element && between_ == BetweenPasses::keep;
    if (earlier && (is_read(v.expr) || should_keep(index))) {
      add_once(pass.takes, index);
      add_once(passes_[static_cast<std::size_t>(first)].keeps, index);
      return;
    }
    if (first < 0) first = p;
    if (is_read(v.expr)) {
      if (v.extent == Extent::element) add_once(pass.streams, index);
      return;
    }
    for (const Expr& operand : v.expr.operands()) visit(index_of(operand), p);
  }

  // Kept when it costs too much to compute again, or takes fewer registers than the inputs that it comes from.
  bool should_keep(int index) const {
    const Value& v = value(index);
    if (v.expr.dtype() == boolean) return false;
    int cost = 0, leaves = 0, leaf_bits = 0;
    std::unordered_set<int> seen;
    measure(index, seen, cost, leaves, leaf_bits);
    const int bits = size_bits(v.expr.dtype());
    return cost >= worth_keeping || bits < leaf_bits || (bits == leaf_bits && leaves > 1);
  }
  void measure(int index, std::unordered_set<int>& seen, int& cost, int& leaves, int& leaf_bits) const {
    if (!seen.insert(index).second) return;
    const Value& v = value(index);
    if (v.extent <= Extent::ranked) return;
    if (is_read(v.expr)) {
      const bool kept = std::ranges::any_of(passes_, [&](const Pass& p) { return std::ranges::find(p.keeps, index) != p.keeps.end(); });
      if (v.extent == Extent::element && !kept) ++leaves, leaf_bits += size_bits(v.expr.dtype());
      return;
    }
    cost += std::max(1, info(v.expr.op()).cost);
    for (const Expr& operand : v.expr.operands()) measure(index_of(operand), seen, cost, leaves, leaf_bits);
  }

  const Body& body_;
  BetweenPasses between_;
  StoresIn stores_;
  std::vector<Pass> passes_;
  std::vector<int> first_pass_; // of each value: the pass that has it first, -1 before
  std::unordered_set<int> seen_;
};

} // namespace

std::vector<Pass> split_passes(const Body& body, BetweenPasses between, StoresIn stores) { return Splitter(body, between, stores).run(); }

int chunk_registers(const Value& value, int vec) { return (vec * size_bits(value.expr.dtype()) + 31) / 32; }

} // namespace kiln
