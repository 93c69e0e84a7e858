// Partition: greedy, from the last user back. A node joins the kernel of its only user, if that kernel's space can express it and
// nothing writes over its sources in between.
#include "examples/ggml/partition.h"
#include <algorithm>

namespace kiln_ggml {
namespace {

constexpr int max_region_nodes = 24; // of a kernel: what was needed of registers stays far below a spill

constexpr int max_products = 2; // that a kernel of matrix instructions takes

struct Region { // what a node's kernel would consist of, if it ended there
  bool row = false;
  int products = 0;
  const ggml_tensor* product = nullptr; // one of them
  int nodes = 0;
  std::vector<const ggml_tensor*> sources; // tensors in memory
};

class Partitioner {
public:
  Partitioner(const std::vector<const ggml_tensor*>& nodes, const std::vector<int>& uses) : uses_(uses), regions_(nodes.size()) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      // Nodes without the flag belong to an inactive branch of the graph: nothing sets their inputs.
      const bool computed = (nodes[i]->flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
      result_.nodes.push_back({.node = nodes[i], .kind = computed ? operation_of(*nodes[i]).kind : Kind::view});
      result_.places.emplace_back(nodes[i], i);
    }
    std::ranges::sort(result_.places);
  }

  Partition run() {
    for (std::size_t i = 0; i < result_.nodes.size(); ++i) visit(i);
    return std::move(result_);
  }

private:
  std::size_t place(const ggml_tensor* node) const {
    const auto found = std::ranges::lower_bound(result_.places, std::pair(node, std::size_t{0}));
    return found != result_.places.end() && found->first == node ? found->second : result_.nodes.size();
  }

  void visit(std::size_t user) {
    const ggml_tensor& node = *result_.nodes[user].node;
    const Kind kind = result_.nodes[user].kind;
    Region& region = regions_[user];
    region.row = kind == Kind::row;
    region.product = kind == Kind::product ? &node : nullptr;
    region.products = region.product != nullptr ? 1 : 0;
    region.nodes = 1;
    for (int s = 0; s < GGML_MAX_SRC && node.src[s] != nullptr; ++s) {
      const ggml_tensor* const source = node.src[s];
      const std::size_t at = place(source);
      const bool fusable = kind == Kind::pointwise || (kind == Kind::row && s == 0);
      if (!fusable || at >= user || result_.nodes[at].absorbed) {
        region.sources.push_back(source);
        continue;
      }
      NodePlan& candidate = result_.nodes[at];
      candidate.ended = why_apart(at, user);
      if (candidate.ended.empty()) join(at, user);
      else region.sources.push_back(source);
    }
  }

  std::string why_apart(std::size_t at, std::size_t user) const {
    const NodePlan& plan = result_.nodes[at];
    const ggml_tensor &node = *plan.node, &by = *result_.nodes[user].node;
    const Region &mine = regions_[at], &other = regions_[user];
    if (plan.kind != Kind::pointwise && plan.kind != Kind::row && plan.kind != Kind::product) return "it is a kernel of its own";
    if (uses_.empty()) return "the graph does not say how often a node is used";
    if (plan.kind == Kind::row && !std::equal(node.ne, node.ne + 4, node.src[0]->ne)) return "it reduces its rows";
    if (result_.nodes[user].kind == Kind::pointwise && !std::equal(node.ne, node.ne + 4, by.ne)) return "its user has another shape";
    if ((node.flags & GGML_TENSOR_FLAG_OUTPUT) != 0) return "it is an output of the graph";
    if (mine.nodes + other.nodes > max_region_nodes) return "the kernel would have too many operations";
    if ((mine.row || other.row) && (mine.product != nullptr || other.product != nullptr)) return "rows and products have unlike spaces";
    if (mine.product != nullptr && other.product != nullptr &&
        (mine.product->src[1] != other.product->src[1] || mine.product->src[0]->type != other.product->src[0]->type ||
         size_of_product(*mine.product) != size_of_product(*other.product)))
      return "the products have unlike operands";
    if (mine.products + other.products > max_products) return "a kernel has two products at most";
    if (used_twice_by(at, user) || uses_[at] != 1) {
      if (!can_store(at, user)) return "it has " + std::to_string(uses_[at]) + " users";
    }
    return hazard(at, user);
  }

  bool used_twice_by(std::size_t at, std::size_t user) const {
    const ggml_tensor& by = *result_.nodes[user].node;
    return std::count(by.src, by.src + GGML_MAX_SRC, result_.nodes[at].node) > 1;
  }

  // A sum that a norm takes and that is needed again later: the kernel of the norm writes both.
  bool can_store(std::size_t at, std::size_t user) const {
    if (result_.nodes[user].kind != Kind::row || result_.nodes[user].node->op == GGML_OP_ROPE || regions_[at].product != nullptr)
      return false;
    if (result_.nodes[at].kind != Kind::pointwise || regions_[at].row || used_twice_by(at, user)) return false;
    for (std::size_t i = at + 1; i < user; ++i)
      for (const ggml_tensor* source : result_.nodes[i].node->src)
        if (source == result_.nodes[at].node) return false;
    return true;
  }

  // What is computed later reads its sources later: nothing may have written there.
  std::string hazard(std::size_t at, std::size_t user) const {
    for (std::size_t i = at + 1; i < user; ++i) {
      const NodePlan& between = result_.nodes[i];
      if (between.kind == Kind::view || between.absorbed) continue;
      const auto* const first = static_cast<const char*>(between.node->data);
      const auto* const last = first + ggml_nbytes(between.node);
      for (const ggml_tensor* source : regions_[at].sources) {
        const auto* const data = static_cast<const char*>(source->data);
        if (data < last && first < data + ggml_nbytes(source))
          return std::string("a source of it is written over by ") + ggml_op_desc(between.node);
      }
    }
    return {};
  }

  void join(std::size_t at, std::size_t user) {
    Region &mine = regions_[at], &other = regions_[user];
    result_.nodes[at].absorbed = true;
    result_.nodes[at].user = result_.nodes[user].node;
    result_.nodes[at].stored = uses_[at] != 1;
    other.row |= mine.row;
    if (other.product == nullptr) other.product = mine.product;
    other.products += mine.products;
    other.nodes += mine.nodes;
    other.sources.insert(other.sources.end(), mine.sources.begin(), mine.sources.end());
  }

  const std::vector<int>& uses_;
  std::vector<Region> regions_;
  Partition result_;
};

} // namespace

const NodePlan* Partition::find(const ggml_tensor* node) const {
  const auto found = std::ranges::lower_bound(places, std::pair(node, std::size_t{0}));
  return found != places.end() && found->first == node ? &nodes[found->second] : nullptr;
}

bool Partition::absorbs(const ggml_tensor* node, const ggml_tensor& user) const {
  const NodePlan* const plan = find(node);
  return plan != nullptr && plan->absorbed && plan->user == &user;
}

Partition partition(const std::vector<const ggml_tensor*>& nodes, const std::vector<int>& uses) { return Partitioner(nodes, uses).run(); }

} // namespace kiln_ggml
