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

class RegionBuilder {
public:
  RegionBuilder(GraphBuilder& graph, const Partition& partition, const ggml_tensor& root)
      : graph_(graph), partition_(partition), root_(root) {
    collect(root);
  }
  const std::vector<const ggml_tensor*>& nodes() const { return nodes_; } // users before what they use

  void launch() {
    KernelDraft draft = product_ != nullptr ? KernelDraft(graph_, size_of_product(*product_), product_space())
                                            : KernelDraft(graph_, space(), iteration());
    const kiln::Expr value = value_of(draft, root_);
    for (const ggml_tensor* node : nodes_)
      if (node != &root_ && partition_.find(node)->stored) draft.write(view_of(*node), values_.at(node));
    draft.write(view_of(root_), value);
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
      const bool seen = std::ranges::find(nodes_, source) != nodes_.end();
      if (source != nullptr && !seen && partition_.absorbs(source, node)) collect(*source);
    }
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
    const kiln::Expr value = draft.read(view);
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
  const ggml_tensor *product_ = nullptr, *row_ = nullptr;
  std::vector<const ggml_tensor*> nodes_;
  std::map<const ggml_tensor*, kiln::Expr> values_, reads_;
};

} // namespace

GraphPlan compile_graph(kiln::Jit& jit, const kiln::Device& device, const std::vector<const ggml_tensor*>& nodes,
                        const std::vector<int>& uses) {
  GraphPlan plan;
  const Partition parts = partition(nodes, uses);
  GraphBuilder graph(jit, device);
  for (const NodePlan& node : parts.nodes) {
    if (node.kind == Kind::view || node.absorbed) continue;
    const std::size_t before = graph.launches();
    RegionNote note{.nodes = {node.node}, .launches = 0, .ended = node.ended};
    if (node.kind == Kind::alone) {
      operation_of(*node.node).lower(graph, *node.node);
    } else {
      RegionBuilder region(graph, parts, *node.node);
      note.nodes = region.nodes();
      region.launch();
    }
    note.launches = graph.launches() - before;
    plan.regions.push_back(std::move(note));
  }
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
