// Parts of attention: the split of a spec into operands, score expression and epilogue.
#include "gen/plan/attention_parts.h"
#include "gen/error.h"
#include "gen/plan/output_order.h"
#include "gen/plan/validate.h"
#include "gen/spec/attention.h"
#include "gen/spec/names.h"
#include <fmt/format.h>
#include <set>
#include <unordered_map>

namespace kiln {
namespace {

std::string kernel_subject_of(const SpecGraph& graph) { return fmt::format("kernel '{}'", graph.spec.name()); }

// The one attention of a spec, and what else reduces its scores.
struct Found {
  std::optional<Expr> attention, log_sum_exp;
};

Found find_attention(const SpecGraph& graph) {
  Found found;
  for (const Expr& node : graph.nodes) {
    if (info(node.op()).kind != OpKind::attention) continue;
    std::optional<Expr>& place = node.op() == Op::attention ? found.attention : found.log_sum_exp;
    if (place) throw UserError(kernel_subject_of(graph), fmt::format("it has two of '{}'", info(node.op()).name), "use two kernels");
    place = node;
  }
  if (!found.attention)
    throw UserError(kernel_subject_of(graph), "it computes scores of attention, but no attention", "use attention(scores, v, lengths)");
  if (found.log_sum_exp && (!found.log_sum_exp->operands()[0].same_node(found.attention->operands()[0]) ||
                            !found.log_sum_exp->operands()[1].same_node(found.attention->operands()[2])))
    throw UserError(kernel_subject_of(graph), "attention and log_sum_exp are of different scores or lengths", "give both the same");
  return found;
}

bool reads_operand(const Expr& node, std::size_t i) {
  return info(node.op()).kind == OpKind::scores || (node.op() == Op::attention && i == 1);
}

// Queries, keys, values, scales and pages, and the nodes that put them together.
std::set<const Node*> operands_of_attention(const SpecGraph& graph) {
  std::vector<Expr> roots;
  for (const Expr& node : graph.nodes)
    for (std::size_t i = 0; i < node.operands().size(); ++i)
      if (reads_operand(node, i)) roots.push_back(node.operands()[i]);
  std::set<const Node*> operands;
  for (const Expr& node : nodes_in_order(roots)) operands.insert(&node.node());
  return operands;
}

// They are read as such only.
void require_operands_alone(const SpecGraph& graph) {
  const std::set<const Node*> operands = operands_of_attention(graph);
  for (const Expr& node : graph.nodes) {
    if (operands.contains(&node.node())) continue;
    if (node.op() == Op::columns)
      throw UserError("operation 'columns'", "it takes elements of a cache, and is no operand of attention",
                      "give them as an input of its own name");
    for (std::size_t i = 0; i < node.operands().size(); ++i)
      if (const Expr& operand = node.operands()[i]; operands.contains(&operand.node()) && !reads_operand(node, i))
        throw UserError(operand->name.empty() ? fmt::format("operation '{}'", info(operand.op()).name)
                                              : fmt::format("input '{}'", operand->name),
                        fmt::format("attention and operation '{}' use it", info(node.op()).name),
                        "give the other one an input of its own name; both may point to the same memory");
  }
  for (const Output& output : graph.spec.outputs())
    if (operands.contains(&output.value.node()))
      throw UserError(fmt::format("output '{}'", output.name), "it is an operand of attention", "copy it in a kernel of its own");
}

// A score depends on its own key and query.
void require_score_by_score(const SpecGraph& scores) {
  for (const Expr& node : scores.nodes) {
    const OpKind kind = info(node.op()).kind;
    const auto subject = fmt::format("operation '{}'", info(node.op()).name);
    if (is_reduction(node.op()) || kind == OpKind::ungroup || kind == OpKind::product)
      throw UserError(subject, "it stands in the score expression of attention",
                      "compute it in a kernel of its own: a score depends on its own key and query alone");
    if (kind == OpKind::view || kind == OpKind::scatter || node.op() == Op::pair_sign)
      throw UserError(subject, "it stands in the score expression of attention, which reads no other keys and rows than its own",
                      "give what it makes as an input that broadcasts to the scores");
    if (node.op() == Op::input && node->layout != Layout::contiguous)
      throw UserError(fmt::format("input '{}'", node->name),
                      fmt::format("the score expression reads it, and it is{}", suffix(node->layout)), "use Layout::contiguous");
  }
}

void require_no_placeholder(const SpecGraph& part, const std::string& name, const std::string& fact, const std::string& remedy) {
  if (!name.empty() && part.names.contains(name)) throw UserError(kernel_subject_of(part), fact, remedy);
}

class AttentionPart : public SpecPart {
public:
  explicit AttentionPart(AttentionParts parts) : a_(std::move(parts)) {}
  const AttentionParts& parts() const { return a_; }

  std::vector<PartRead> reads() const override {
    std::vector<PartRead> list = {{a_.q, 16}, {a_.k, 16}, {a_.v, 16}, {a_.lengths, size_bytes(i32)}};
    for (const std::optional<Expr>& each : {a_.k_scale, a_.v_scale, a_.pages})
      if (each) list.push_back({*each, size_bytes(each->dtype())});
    for (const Expr& e : a_.score_body.inputs)
      if (e->name != a_.product) list.push_back({e, size_bytes(e.dtype())});
    return list;
  }
  bool stands_for(std::string_view name) const override { return a_.is_placeholder(name); }
  std::string text() const override {
    return fmt::format("attention {}: {} heads and {} tokens of {} {}, d {}; {} heads of {} keys and values, {} of a sequence{}", a_.result,
                       a_.heads(), a_.tokens(), to_string(a_.q.dtype()), a_.q->name, a_.d(), a_.kv_heads(), to_string(a_.k.dtype()),
                       a_.keys().text(), a_.page() ? fmt::format(" in pages of {}", a_.page()) : "");
  }

private:
  AttentionParts a_;
};

} // namespace

PartSplit split_attention(const SpecGraph& given) {
  OrderedOutputs by_rows = in_order_of_rows(given.spec, Op::heads_first);
  const SpecGraph graph = SpecGraph::as_spelled(std::move(by_rows.spec));
  const Found found = find_attention(graph);
  require_operands_alone(graph);
  const Expr& x = found.attention->operands()[0];
  const Expr node = scores_node(x);
  const CacheOperand k = cache_operand(node.operands()[1]), v = cache_operand(found.attention->operands()[1]);
  KernelSpec rest(graph.spec.name());
  AttentionParts parts{.q = node.operands()[0],
                       .k = k.cache,
                       .v = v.cache,
                       .lengths = found.attention->operands()[2],
                       .k_scale = k.scale,
                       .v_scale = v.scale,
                       .value_d = found.attention->shape().back().size(),
                       .pages = {},
                       .scores = KernelSpec(graph.spec.name()),
                       .score_body = {},
                       .product = unused_name("product0", graph.names),
                       .result = unused_name("attention0", graph.names),
                       .log_sum_exp = found.log_sum_exp ? unused_name("log_sum_exp0", graph.names) : "",
                       .heads_first = std::move(by_rows.moved),
                       .line = (*found.attention)->line};
  if (node.operands().size() > 2) parts.pages = node.operands()[2];
  std::unordered_map<const Node*, Expr> rewritten;
  for (const Expr& each : graph.nodes) {
    std::string stands_for;
    if (info(each.op()).kind == OpKind::scores) stands_for = parts.product;
    if (info(each.op()).kind == OpKind::attention) stands_for = each.op() == Op::attention ? parts.result : parts.log_sum_exp;
    Node copy = each.node();
    if (!stands_for.empty()) copy = {.op = Op::input, .dtype = f32, .shape = each.shape(), .name = stands_for, .line = each->line};
    else
      for (Expr& operand : copy.operands) operand = rewritten.at(&operand.node());
    rewritten.emplace(&each.node(), Expr(std::move(copy)));
  }
  for (const Output& output : graph.spec.outputs())
    rest.output(output.name, output.dtype, rewritten.at(&output.value.node()),
                {.in_place_of = output.in_place_of, .layout = output.layout});
  parts.scores.output(unused_name("score", graph.names), f32, rewritten.at(&x.node()));
  const SpecGraph scores = SpecGraph::as_spelled(parts.scores), epilogue = SpecGraph::as_spelled(rest);
  require_score_by_score(scores);
  require_no_placeholder(epilogue, parts.product, "it uses scores outside of attention", "use them in attention and log_sum_exp only");
  require_no_placeholder(scores, parts.result, "its scores are computed from an attention", "use two kernels");
  require_no_placeholder(scores, parts.log_sum_exp, "its scores are computed from a log_sum_exp", "use two kernels");
  for (const Output& output : graph.spec.outputs())
    if (!output.in_place_of.empty() && scores.names.contains(output.in_place_of))
      throw UserError(fmt::format("output '{}' in place of '{}'", output.name, output.in_place_of), "the score expression reads that input",
                      "give the output memory of its own");
  parts.score_body = make_body(scores, require_sound_shapes(scores));
  lay_out_open_rows(parts.score_body);
  return {.rest = std::move(rest), .one_a_row = true, .part = std::make_shared<AttentionPart>(std::move(parts))};
}

bool has_attention(const AnalysedSpec& spec) { return dynamic_cast<const AttentionPart*>(spec.part.get()) != nullptr; }

const AttentionParts& attention_of(const AnalysedSpec& spec) { return dynamic_cast<const AttentionPart&>(*spec.part).parts(); }

bool has_part(const SpecGraph& graph) { return graph.has(OpKind::scores); }
PartSplit split_part(const SpecGraph& graph) { return split_attention(graph); } // the one kind that there is

} // namespace kiln
