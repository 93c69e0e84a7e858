// From a graph of ggml to launches: the expression of each region.
#include "examples/ggml/compile_graph.h"
#include "examples/ggml/operations/pointwise_ops.h"
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace kiln_ggml {
namespace {

Extents extents(const ggml_tensor& tensor) { return {tensor.ne[0], tensor.ne[1], tensor.ne[2], tensor.ne[3]}; }

// The places of nodes that do not lie in ggml's memory: columns of a wider product.
using MovedNodes = std::map<const ggml_tensor*, TensorView>;

// `view` of `tensor`, where that has gone.
TensorView relocated(const MovedNodes& moved, TensorView view, const ggml_tensor& tensor) {
  const ggml_tensor& product = *behind_views(&tensor);
  const auto found = moved.find(&product);
  if (found == moved.end()) return view;
  const std::int64_t width = product.ne[0], wide = found->second.stride[1];
  const std::int64_t first = (static_cast<std::byte*>(view.data) - static_cast<std::byte*>(product.data)) / 4;
  view.data = static_cast<float*>(found->second.data) + first / width * wide + first % width;
  for (std::size_t d = 0; d < 4; ++d)
    if (view.ne[d] > 1 && view.stride[d] >= width) view.stride[d] = view.stride[d] / width * wide;
  return view;
}

class RegionBuilder {
public:
  RegionBuilder(GraphBuilder& graph, const Partition& partition, const ggml_tensor& root, MovedNodes& moved)
      : graph_(graph), partition_(partition), root_(root), moved_(moved) {
    collect(root);
    if (product_ == nullptr && operation_of(root).kind != Kind::write) return;
    for (const NodePlan& plan : partition.nodes) // only ends of regions are merged
      if (plan.beside && plan.user == &root) collect(*plan.node);
  }
  const std::vector<const ggml_tensor*>& nodes() const { return nodes_; } // users before what they use

  // The last node's values go to `to`, where it is given, and not to their place in ggml's memory.
  void launch(const TensorView* to = nullptr) {
    if (operation_of(root_).kind == Kind::write) return launch_writes();
    if (!partition_.find(&root_)->row_of_products.empty()) return launch_row_of_products();
    KernelDraft draft =
        product_ != nullptr ? KernelDraft(graph_, size_of_product(*product_), product_space()) : KernelDraft(graph_, space(), iteration());
    const kiln::Expr value = value_of(draft, root_);
    for (const ggml_tensor* node : nodes_)
      if (const NodePlan& plan = *partition_.find(node); node != &root_ && (plan.stored || plan.beside))
        draft.write(view_of(*node), value_of(draft, *node));
    draft.write(to != nullptr ? *to : view_of(root_), value);
    draft.launch(name());
  }

private:
  void collect(const ggml_tensor& node) {
    nodes_.push_back(&node);
    const Kind kind = operation_of(node).kind;
    if (kind == Kind::product) product_ = &node;
    if (kind == Kind::row) row_ = &node;
    if (kind == Kind::product) return;
    for (const ggml_tensor* source : node.src) {
      if (source == nullptr) continue;
      const ggml_tensor& maker = kind == Kind::write ? *behind_views(source) : *source;
      const bool seen = std::ranges::find(nodes_, &maker) != nodes_.end();
      if (!seen && partition_.absorbs(&maker, node)) collect(maker);
    }
  }

  void launch_row_of_products() {
    const std::vector<const ggml_tensor*>& row = partition_.find(&root_)->row_of_products;
    ProductSize size = size_of_product(root_);
    size.n = 0;
    for (const ggml_tensor* node : row) size.n += node->ne[0];
    TensorView weights = view_of(*row.front()->src[0]);
    weights.ne[1] = size.n;
    KernelDraft draft(graph_, size, Space::matrix);
    const TensorView to = dense_view(graph_.scratch(static_cast<std::size_t>(size.n * size.m) * 4), kiln::f32, draft.ne());
    draft.write(to, draft.product_of(view_of(*root_.src[1]), weights));
    draft.launch(name());
    auto* columns = static_cast<float*>(to.data);
    for (const ggml_tensor* node : row) {
      TensorView part = to;
      part.data = columns;
      part.ne[0] = node->ne[0];
      moved_.emplace(node, part);
      columns += node->ne[0];
    }
  }

  // Rows of one shape that go to tables: tokens of heads.
  void launch_writes() {
    KernelDraft draft(graph_, Space::rows, extents(*row_));
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      if (operation_of(**node).kind != Kind::write) continue;
      const ggml_tensor& maker = *behind_views((*node)->src[0]);
      const TensorView written = view_of(*(*node)->src[0]);
      const TensorView rows = relocated(moved_, dense_view(written.data, written.dtype, extents(*row_)), *(*node)->src[0]);
      const kiln::Expr value = partition_.absorbs(&maker, **node) ? value_of(draft, maker) : draft.read(rows);
      draft.write_rows(view_of(**node), view_of(*(*node)->src[1]), value);
    }
    draft.launch(name());
  }

  Extents iteration() const { return row_ != nullptr ? extents(*row_->src[0]) : extents(root_); }

  // Matrix instructions, unless one of the products has no form for them.
  Space product_space() const {
    const auto by_rows = [](const ggml_tensor* n) { return operation_of(*n).kind == Kind::product && !multiplies_by_matrix(*n); };
    return std::ranges::any_of(nodes_, by_rows) ? Space::product : Space::matrix;
  }

  // Rows where a reduction asks for them, or where sources are repeated over whole rows that are worth vector accesses.
  Space space() const {
    if (row_ != nullptr) return Space::rows;
    bool repeats = false;
    for (const ggml_tensor* node : nodes_)
      for (const TensorView& v : operation_of(*node).kind == Kind::pointwise ? pointwise_sources(*node) : std::vector<TensorView>{}) {
        const bool whole = v.ne == extents(root_);
        if (!v.has_dense_rows() || (v.ne[0] != root_.ne[0] && v.ne[0] != 1) || !v.is_aligned()) return Space::flat;
        repeats |= !whole || !v.is_dense();
      }
    return repeats && root_.ne[0] >= 64 && root_.ne[0] % 8 == 0 ? Space::rows : Space::flat;
  }

  kiln::Expr value_of(KernelDraft& draft, const ggml_tensor& node) {
    if (const auto known = values_.find(&node); known != values_.end()) return known->second;
    kiln::Expr value = computed(draft, node);
    if (&node != &root_ && node.type != GGML_TYPE_F32) value = kiln::cast(*dtype_of(node.type), value);
    values_.emplace(&node, value);
    return value;
  }

  kiln::Expr computed(KernelDraft& draft, const ggml_tensor& node) {
    const Operation operation = operation_of(node);
    if (operation.kind == Kind::product) return build_product(draft, graph_, node);
    if (operation.kind == Kind::row) return operation.build(draft, node, source(draft, node, 0, view_of(*node.src[0])));
    const std::vector<TensorView> views = pointwise_sources(node);
    std::vector<kiln::Expr> operands;
    for (std::size_t i = 0; i < views.size(); ++i)
      operands.push_back(source(draft, node, std::min<std::size_t>(i, node.src[1] ? i : 0), views[i]));
    return find_pointwise(node)(draft, node, operands);
  }

  kiln::Expr source(KernelDraft& draft, const ggml_tensor& node, std::size_t s, const TensorView& view) {
    if (partition_.absorbs(node.src[s], node)) return value_of(draft, *node.src[s]);
    if (const auto read = reads_.find(node.src[s]);
        read != reads_.end() && view.data == node.src[s]->data && view.ne == extents(*node.src[s]))
      return read->second;
    const kiln::Expr value = draft.read(relocated(moved_, view, *node.src[s]));
    if (view.ne == extents(*node.src[s])) reads_.emplace(node.src[s], value);
    return value;
  }

  std::string name() const {
    std::string text = "g";
    for (auto node = nodes_.rbegin(); node != nodes_.rend() && text.size() < 40; ++node) text += std::string("_") + ggml_op_desc(*node);
    std::ranges::transform(text, text.begin(), [](char c) {
      return c == '_' ? c : std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '_';
    });
    text.erase(std::unique(text.begin(), text.end(), [](char a, char b) { return a == '_' && b == '_'; }), text.end());
    if (text.back() == '_') text.pop_back();
    return text;
  }

  GraphBuilder& graph_;
  const Partition& partition_;
  const ggml_tensor& root_;
  MovedNodes& moved_;
  const ggml_tensor *product_ = nullptr, *row_ = nullptr;
  std::vector<const ggml_tensor*> nodes_;
  std::map<const ggml_tensor*, kiln::Expr> values_, reads_;
};

} // namespace

namespace {

// Adds the launches of a region that ends with `root`; its nodes, users before what they use.
std::vector<const ggml_tensor*> lower_region(GraphBuilder& graph, const Partition& parts, const ggml_tensor& root, MovedNodes& moved) {
  const Operation operation = operation_of(root);
  if (operation.kind == Kind::attention) {
    const ggml_tensor& maker = *behind_views(root.src[0]);
    std::vector<const ggml_tensor*> nodes = {&root};
    void* queries = nullptr;
    if (parts.absorbs(&maker, root)) { // rounded as they are made
      RegionBuilder region(graph, parts, maker, moved);
      queries = graph.scratch(static_cast<std::size_t>(ggml_nelements(&maker)) * 2);
      const TensorView to = dense_view(queries, *type_of_queries(root), extents(maker));
      region.launch(&to);
      nodes.insert(nodes.end(), region.nodes().begin(), region.nodes().end());
    }
    lower_attention(graph, root, queries);
    return nodes;
  }
  RegionBuilder region(graph, parts, root, moved);
  if (operation.kind == Kind::alone || (operation.kind == Kind::write && region.nodes().size() == 1)) operation.lower(graph, root);
  else region.launch();
  return region.nodes();
}

} // namespace

std::vector<RegionNote> lower_graph(GraphBuilder& graph, const Partition& parts) {
  std::vector<RegionNote> regions;
  MovedNodes moved;
  for (const NodePlan& node : parts.nodes) {
    if (node.kind == Kind::view || node.absorbed) continue;
    const std::size_t before = graph.launches();
    RegionNote note{.nodes = lower_region(graph, parts, *node.node, moved), .launches = 0, .ended = node.ended};
    note.launches = graph.launches() - before;
    regions.push_back(std::move(note));
  }
  return regions;
}

GraphPlan compile_graph(kiln::Jit& jit, const kiln::Device& device, const std::vector<const ggml_tensor*>& nodes,
                        const std::vector<int>& uses) {
  GraphBuilder graph(jit, device);
  GraphPlan plan{.compiled = {}, .regions = lower_graph(graph, partition(nodes, uses))};
  plan.compiled = graph.finish();
  return plan;
}

std::string explain(const GraphPlan& plan) {
  std::string text;
  for (const RegionNote& region : plan.regions) {
    std::vector<std::string> names;
    for (auto node = region.nodes.rbegin(); node != region.nodes.rend(); ++node)
      names.push_back(fmt::format("{} {}", ggml_op_desc(*node), (*node)->name));
    text += fmt::format("  {} node{}, {} launch{}: {}; ended: {}\n", names.size(), names.size() == 1 ? "" : "s", region.launches,
                        region.launches == 1 ? "" : "es", fmt::join(names, ", "),
                        region.ended.empty() ? "no user that could take it" : region.ended);
  }
  return text;
}

} // namespace kiln_ggml
