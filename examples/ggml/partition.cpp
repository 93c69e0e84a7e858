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
  const ggml_tensor* heads = nullptr;      // of a write: a tensor of the rows as [cols, heads, tokens]
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
    for (std::size_t i = 0; i < result_.nodes.size(); ++i) {
      const Kind kind = result_.nodes[i].kind;
      if (kind == Kind::write) visit_write(i);
      else if (kind == Kind::attention) visit_attention(i);
      else visit(i);
    }
    if (!uses_.empty())
      for (std::size_t i = 0; i < result_.nodes.size(); ++i) join_adjacent(i), merge_product(i);
    // Joined products write to memory of their own, so that what ggml let write over the queries' product may no longer do so.
    for (std::size_t i = 0; i < result_.nodes.size(); ++i)
      if (result_.nodes[i].kind == Kind::attention) join_queries(i);
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
      candidate.ended = fusion_blocker(at, user);
      if (candidate.ended.empty()) join(at, user);
      else region.sources.push_back(source);
    }
  }

  // The place of a node that only `user` needs, through views that nobody else uses; and which can be computed there.
  std::size_t only_source(const ggml_tensor* source, std::size_t user) const {
    const std::size_t none = result_.nodes.size();
    const ggml_tensor* const maker = behind_views(source);
    const std::size_t at = place(maker);
    if (uses_.empty() || at >= user || result_.nodes[at].absorbed || (maker->flags & GGML_TENSOR_FLAG_OUTPUT) != 0) return none;
    for (const ggml_tensor* t = source;; t = t->src[0]) {
      if (const std::size_t view = place(t); view == none || uses_[view] != 1) return none;
      if (t == maker) break;
    }
    return regions_[at].product == nullptr && hazard(at, user).empty() ? at : none;
  }

  void visit_write(std::size_t user) {
    const ggml_tensor& node = *result_.nodes[user].node;
    Region& region = regions_[user];
    region.nodes = 1;
    const ggml_tensor* const maker = is_float(node.type) ? maker_of_rows(node) : nullptr; // blocks are made by kernels of their own
    const std::size_t at = maker == nullptr ? result_.nodes.size() : only_source(node.src[0], user);
    if (at < user && result_.nodes[at].kind == Kind::row) {
      join(at, user);
      region.heads = maker;
    } else {
      region.sources.push_back(node.src[0]);
    }
    region.sources.push_back(node.src[1]);
    for (std::size_t i = user; i-- > 0;) {
      const NodePlan& before = result_.nodes[i];
      if (before.kind == Kind::view || before.absorbed) continue;
      if (before.kind == Kind::write && can_merge_writes(i, user)) merge(i, user);
      return;
    }
  }

  bool can_merge_writes(std::size_t at, std::size_t user) const {
    const Region &mine = regions_[at], &other = regions_[user];
    const ggml_tensor &a = *result_.nodes[at].node, &b = *result_.nodes[user].node;
    if (uses_.empty() || (mine.heads == nullptr && other.heads == nullptr) || !std::equal(a.src[0]->ne, a.src[0]->ne + 4, b.src[0]->ne))
      return false;
    if (mine.heads != nullptr && other.heads != nullptr && !std::equal(mine.heads->ne, mine.heads->ne + 4, other.heads->ne)) return false;
    return can_be_written(a) && can_be_written(b) && mine.nodes + other.nodes <= max_region_nodes && !meets(b, a) &&
           hazard(at, user).empty();
  }

  void visit_attention(std::size_t user) {
    for (const ggml_tensor* source : result_.nodes[user].node->src)
      if (source != nullptr) regions_[user].sources.push_back(source);
    join_queries(user);
  }

  // What makes the queries of attention `user`, heads and tokens exchanged, may round them as attention reads them.
  void join_queries(std::size_t user) {
    const ggml_tensor& node = *result_.nodes[user].node;
    const ggml_tensor &q = *node.src[0], &maker = *behind_views(&q);
    const bool permuted = type_of_queries(node) && maker.type == GGML_TYPE_F32 && ggml_is_contiguous(&maker) && q.data == maker.data &&
                          q.ne[3] == 1 && q.ne[0] == maker.ne[0] && q.ne[1] == maker.ne[2] && q.ne[2] == maker.ne[1] &&
                          q.nb[1] == maker.nb[2] && q.nb[2] == maker.nb[1];
    const std::size_t at = permuted ? only_source(&q, user) : result_.nodes.size();
    if (at == result_.nodes.size() || (result_.nodes[at].kind != Kind::row && result_.nodes[at].kind != Kind::pointwise)) return;
    std::erase(regions_[user].sources, &q);
    join(at, user);
  }

  // Products of one node each whose weights are neighbours in memory become one, at the place of the first.
  void join_adjacent(std::size_t at) {
    std::vector<const ggml_tensor*> row;
    for (std::size_t i = at; i < result_.nodes.size(); ++i) {
      const NodePlan& plan = result_.nodes[i];
      if (!is_lone_product(i) || (i == at && !only_rows_read(plan.node))) {
        if (i == at) return;
        continue;
      }
      const ggml_tensor &a = *result_.nodes[at].node, &b = *plan.node;
      if (a.src[1] == b.src[1] && a.src[0]->type == b.src[0]->type && (i == at || only_rows_read(&b))) row.push_back(&b);
    }
    std::ranges::sort(row, {}, [](const ggml_tensor* n) { return n->src[0]->data; });
    const auto behind = [](const ggml_tensor* a, const ggml_tensor* b) {
      return static_cast<const char*>(a->src[0]->data) + ggml_nbytes(a->src[0]) == static_cast<const char*>(b->src[0]->data);
    };
    auto first = std::ranges::find(row, result_.nodes[at].node), last = first + 1;
    while (first != row.begin() && behind(*(first - 1), *first)) --first;
    while (last != row.end() && behind(*(last - 1), *last)) ++last;
    if (last - first < 2) return;
    for (auto node = first; node != last; ++node)
      if (*node != result_.nodes[at].node) merge(place(*node), at);
    result_.nodes[at].row_of_products.assign(first, last);
  }

  bool is_lone_product(std::size_t i) const {
    const NodePlan& plan = result_.nodes[i];
    return plan.kind == Kind::product && !plan.absorbed && plan.row_of_products.empty() && regions_[i].nodes == 1 &&
           plan.node->data != nullptr && is_float(plan.node->src[0]->type) && multiplies_by_matrix(*plan.node) &&
           (plan.node->flags & GGML_TENSOR_FLAG_OUTPUT) == 0;
  }

  // Whether all that reads it are rows of other kernels of this graph, which can be told where it lies instead.
  bool only_rows_read(const ggml_tensor* product) const {
    int seen = 0;
    for (std::size_t i = 0; i < result_.nodes.size(); ++i) {
      const NodePlan& plan = result_.nodes[i];
      for (int s = 0; s < GGML_MAX_SRC; ++s) {
        const ggml_tensor* const source = plan.node->src[s];
        if (source == nullptr || behind_views(source) != product) continue;
        seen += source == product;
        const bool written = plan.kind == Kind::write && (plan.absorbed || regions_[i].nodes > 1);
        if (plan.kind != Kind::view && (s != 0 || (plan.kind != Kind::row && !written))) return false;
      }
    }
    return seen == uses_[place(product)];
  }

  // Two kernels of products that share their activations become one, at the place of the later.
  void merge_product(std::size_t at) {
    const auto single = [&](std::size_t i) {
      return !result_.nodes[i].absorbed && result_.nodes[i].kind != Kind::attention && regions_[i].products == 1;
    };
    if (!single(at)) return;
    const ggml_tensor &a = *regions_[at].product, &out = *result_.nodes[at].node;
    for (std::size_t i = at + 1; i < result_.nodes.size(); ++i) {
      const ggml_tensor& node = *result_.nodes[i].node;
      if (result_.nodes[i].kind == Kind::view) continue;
      for (const ggml_tensor* source : node.src)
        if (source != nullptr && meets(*source, out)) return; // needed before
      if (meets(node, out)) return;
      if (!single(i)) continue;
      const ggml_tensor& b = *regions_[i].product;
      if (a.src[1] != b.src[1] || a.src[0]->type != b.src[0]->type || size_of_product(a) != size_of_product(b)) continue;
      if (hazard(at, i).empty()) merge(at, i);
      return;
    }
  }

  void merge(std::size_t at, std::size_t user) {
    join(at, user);
    result_.nodes[at].beside = true;
    result_.nodes[at].stored = false;
    if (regions_[user].heads == nullptr) regions_[user].heads = regions_[at].heads;
  }

  static bool can_be_written(const ggml_tensor& write) {
    const ggml_tensor& rows = *write.src[0];
    return is_float(write.type) && rows.ne[2] * rows.ne[3] == 1 && ggml_is_contiguous(&rows) && write.ne[2] * write.ne[3] == 1 &&
           ggml_is_contiguous(write.src[1]) && write.src[1]->ne[0] == rows.ne[1] &&
           reinterpret_cast<std::uintptr_t>(write.data) % 16 == 0 && write.nb[1] % 16 == 0;
  }

  static bool meets(const ggml_tensor& a, const ggml_tensor& b) {
    const auto *const first = static_cast<const char*>(a.data), *const second = static_cast<const char*>(b.data);
    return first < second + ggml_nbytes(&b) && second < first + ggml_nbytes(&a);
  }

  std::string fusion_blocker(std::size_t at, std::size_t user) const {
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

  // Whether a kernel writes the node where ggml placed it; products that became one write to memory of their own.
  bool writes_its_place(const NodePlan& plan) const {
    if (plan.kind == Kind::view || !plan.row_of_products.empty()) return false;
    if (!plan.absorbed) return true;
    return plan.stored || (plan.beside && result_.nodes[place(plan.user)].row_of_products.empty());
  }

  // What is computed later reads its sources later: nothing may have written there.
  std::string hazard(std::size_t at, std::size_t user) const {
    for (std::size_t i = at + 1; i < user; ++i) {
      const NodePlan& between = result_.nodes[i];
      if (!writes_its_place(between)) continue;
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

const ggml_tensor* behind_views(const ggml_tensor* source) {
  while (source->src[0] != nullptr && (source->op == GGML_OP_RESHAPE || source->op == GGML_OP_VIEW || source->op == GGML_OP_PERMUTE))
    source = source->src[0];
  return source;
}

const ggml_tensor* maker_of_rows(const ggml_tensor& write) {
  const ggml_tensor& rows = *write.src[0];
  const ggml_tensor* const maker = behind_views(&rows);
  const bool heads = maker->ne[3] == 1 && rows.ne[0] == maker->ne[0] * maker->ne[1] && rows.ne[1] == maker->ne[2] &&
                     rows.ne[2] * rows.ne[3] == 1 && ggml_is_contiguous(maker) && rows.data == maker->data;
  return heads && write.ne[2] * write.ne[3] == 1 && write.src[1]->ne[0] == rows.ne[1] ? maker : nullptr;
}

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
