// Views: partners brought down to memory or kept in registers, and the rules of indices.
#include "gen/plan/view.h"
#include "gen/error.h"
#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace kiln {
namespace {

bool is_view(const Expr& e) { return info(e.op()).kind == OpKind::view; }
bool is_position(const Expr& e) { return info(e.op()).kind == OpKind::position; }
bool widens(Op op) { return op == Op::tile || op == Op::repeat; }
bool one_a_row(const Expr& e) { return e.shape().empty() || same_size(e.shape().back(), 1); }

Expr with_operands(const Expr& expr, std::vector<Expr> operands) {
  Node copy = expr.node();
  copy.operands = std::move(operands);
  return Expr(std::move(copy));
}

// What the memory cannot give of a partner.
struct Refusal {
  std::string fact, remedy;
};

// The value of every column's partner at one distance. Recursion ends: a valid spec has at most 4096 nodes.
class Pairing {
public:
  explicit Pairing(std::int64_t distance) : distance_(distance) {}

  // Meaningless once something is refused.
  Expr of(const Expr& expr) {
    const auto [known, is_new] = done_.try_emplace(&expr.node(), expr);
    if (!is_new || one_a_row(expr)) return known->second;
    const Expr result = paired(expr);
    done_.insert_or_assign(&expr.node(), result);
    done_.insert_or_assign(&result.node(), expr); // the way back, or chains of partners would double with every step
    kept_.push_back(result);
    return result;
  }
  const std::optional<Refusal>& refusal() const { return refusal_; }

private:
  Expr paired(const Expr& expr) {
    const bool in_memory = expr.op() == Op::input || expr.op() == Op::gather || widens(expr.op());
    if (in_memory && (expr.dtype() == boolean || is_packed(expr.dtype())))
      return refused(expr, fmt::format("it moves to what is read from memory, which is {}", to_string(expr.dtype())),
                     expr.dtype() == boolean ? "give that input as i8, and compare behind the partner"
                                             : "read its numbers in order: two share a byte");
    if (in_memory || is_position(expr)) return partner(expr, distance_);
    if (expr.op() == Op::partner && expr->step == distance_) return expr.operands()[0];
    const bool turns_with = expr.op() == Op::partner && (pairs_in_lane(expr) || pairs_in_wave(expr)) && distance_ % (2 * expr->step) == 0;
    if (expr.op() == Op::partner && !turns_with)
      return refused(expr, fmt::format("it takes the partner at {} of partners at {}", distance_, expr->step), "use one distance for both");
    if (expr.op() == Op::ungroup) {
      if (expr->group % (2 * distance_) == 0) return expr; // both are of one group
      return refused(expr, fmt::format("columns {} apart are of different groups of {}", distance_, expr->group),
                     "use groups of whole pairs, or compute the partner before what is one a group");
    }
    if (const OpKind kind = info(expr.op()).kind; kind == OpKind::scan || kind == OpKind::group_reduce || expr.op() == Op::shift_columns)
      return refused(expr,
                     fmt::format("it takes the partner at {} of what '{}' computes from other columns", distance_, info(expr.op()).name),
                     "compute the partner in a kernel of its own");
    std::vector<Expr> operands;
    for (const Expr& operand : expr.operands()) operands.push_back(of(operand));
    return with_operands(expr, std::move(operands));
  }
  Expr refused(const Expr& expr, std::string fact, std::string remedy) {
    if (!refusal_) refusal_ = {std::move(fact), std::move(remedy)};
    return expr;
  }

  std::int64_t distance_;
  std::unordered_map<const Node*, Expr> done_;
  std::vector<Expr> kept_; // whose nodes done_ points to
  std::optional<Refusal> refusal_;
};

bool fits_wave(const Expr& partner) {
  return std::has_single_bit(static_cast<std::uint64_t>(partner->step)) && 2 * partner->step <= max_paired_columns;
}

// Columns of a chunk that a view reads at a time divide this.
std::int64_t chunks_of_view(const Expr& view) {
  if (view.op() == Op::tile) return view.operands()[0].shape().back().size();
  if (view.op() == Op::shift_columns) return 1; // unless a lane has the whole row
  return view.op() == Op::partner && !pairs_in_lane(view) && !fits_wave(view) ? view->step : 0;
}

// A lane holds a part of one group, so the smallest one has to hold whole pairs; a chunk of each view, too.
std::optional<Refusal> why_not_in_lane(const SpecGraph& graph, const Expr& partner) {
  for (const std::int64_t group : graph.group_sizes)
    if (group % (2 * partner->step) != 0)
      return Refusal{fmt::format("columns {} apart are of different groups of {}", partner->step, group),
                     "use groups of whole pairs, or compute the partner in another kernel than what is one a group"};
  for (const Expr& node : graph.nodes)
    if (const std::int64_t columns = chunks_of_view(node); columns % (2 * partner->step) != 0)
      return Refusal{fmt::format("columns {} apart do not lie in a lane beside {} columns that '{}' repeats or moves", partner->step,
                                 columns, info(node.op()).name),
                     "use a multiple of two partners' distance there, or compute the partner in another kernel"};
  return {};
}

struct LoweredPartners {
  KernelSpec spec;
  std::optional<Refusal> refusal = {}; // the first; then `spec` has no meaning
};

// `in_wave`: partners that fit a wave stay where they are, in registers.
LoweredPartners with_lowered_partners(const SpecGraph& graph, bool in_wave) {
  std::map<std::int64_t, Pairing> pairings; // by distance
  std::unordered_map<const Node*, Expr> lowered;
  std::optional<Refusal> refusal;
  for (const Expr& node : graph.nodes) {
    if (refusal) return {graph.spec, std::move(refusal)};
    std::vector<Expr> operands;
    for (const Expr& operand : node.operands()) operands.push_back(lowered.at(&operand.node()));
    const bool is_same = std::ranges::equal(operands, node.operands(), [](const Expr& a, const Expr& b) { return a.same_node(b); });
    if (node.op() == Op::partner && in_wave && fits_wave(node)) {
      Node copy = node.node();
      copy.in_registers = true;
      copy.operands = std::move(operands);
      lowered.emplace(&node.node(), Expr(std::move(copy)));
    } else if (node.op() == Op::partner && !pairs_in_lane(node)) {
      Pairing& pairing = pairings.try_emplace(node->step, node->step).first->second;
      lowered.emplace(&node.node(), pairing.of(operands[0]));
      refusal = pairing.refusal();
    } else {
      if (node.op() == Op::partner) refusal = why_not_in_lane(graph, node);
      lowered.emplace(&node.node(), is_same ? node : with_operands(node, std::move(operands)));
    }
  }
  if (refusal) return {graph.spec, std::move(refusal)};
  KernelSpec spec(graph.spec.name());
  for (const Output& o : graph.spec.outputs())
    spec.output(o.name, o.dtype, lowered.at(&o.value.node()), {.in_place_of = o.in_place_of, .layout = o.layout});
  return {merge_equal_nodes(spec)};
}

// What uses each node, outputs not among it.
std::vector<Expr> users_of(const SpecGraph& graph, const Expr& expr) {
  std::vector<Expr> users;
  for (const Expr& node : graph.nodes)
    if (std::ranges::any_of(node.operands(), [&](const Expr& o) { return o.same_node(expr); })) users.push_back(node);
  return users;
}

bool is_output(const SpecGraph& graph, const Expr& expr) {
  return std::ranges::any_of(graph.spec.outputs(), [&](const Output& o) { return o.value.same_node(expr); });
}

// Whether a gather or scatter takes rows of the input, and nothing else of it.
bool names_rows_of(const Expr& user, const Expr& input) {
  const bool by_index = user.op() == Op::gather || user.op() == Op::scatter;
  return by_index && std::ranges::count_if(user.operands(), [&](const Expr& o) { return o.same_node(input); }) == 1 &&
         user.operands()[0].same_node(input);
}

// Whether each index of the first dimension has one, or several along the second.
bool is_one_an_owner(const Expr& index) {
  return std::all_of(index.shape().begin() + std::min<std::ptrdiff_t>(2, std::ssize(index.shape())), index.shape().end(),
                     [](const Dim& dim) { return same_size(dim, 1); });
}

// Each row of the kernel reads and writes rows of its own, so that what it reads is what was there before the launch.
void require_own_rows(const Expr& gather, const Expr& scatter) {
  const auto subject = fmt::format("input '{}'", gather.operands()[0]->name);
  if (scatter->duplicates)
    throw UserError(subject, "a gather reads its rows, and a scatter with duplicates writes them",
                    "leave duplicates out, and give each row of a launch a row of its own");
  if (gather->checked)
    throw UserError(subject, "a checked gather may read its last row, and a scatter writes its rows",
                    "leave checked out: a negative index reads zeros");
  const Expr &read = gather.operands()[1], &written = scatter.operands()[1];
  if (!read.same_node(written) && !(is_one_an_owner(read) && is_one_an_owner(written) && same_size(read.shape()[0], written.shape()[0])))
    throw UserError(subject,
                    fmt::format("a gather reads its rows by an index {}, and a scatter writes them by another one, {}",
                                to_text(read.shape()), to_text(written.shape())),
                    "use one index for both; or [rows, 1, 1] and [rows, n, 1], of which each row has its own");
}

void require_table_alone(const SpecGraph& graph, const Expr& input) {
  const auto users = users_of(graph, input);
  const auto elsewhere = [&](const Expr& user) { return !names_rows_of(user, input); };
  if (std::ranges::any_of(users, elsewhere) || is_output(graph, input))
    throw UserError(fmt::format("input '{}'", input->name), "a gather takes rows of it, and another operation uses it",
                    "give the other one an input of its own name; both may point to the same memory if nothing writes it");
}

void require_target_alone(const SpecGraph& graph, const Expr& scatter) {
  const Expr& target = scatter.operands()[0];
  const auto subject = fmt::format("operation 'scatter' to '{}'", target->name);
  const std::vector<Expr> users = users_of(graph, target);
  const auto scatters = std::ranges::count_if(users, [](const Expr& user) { return user.op() == Op::scatter; });
  if (scatters != 1 || !std::ranges::all_of(users, [&](const Expr& user) { return names_rows_of(user, target); }) ||
      is_output(graph, target))
    throw UserError(subject, fmt::format("'{}' is used by another operation too", target->name),
                    "read rows of it by a gather with the same index, or in a kernel of its own: rows are written at unknown times");
  for (const Expr& user : users)
    if (user.op() == Op::gather) require_own_rows(user, scatter);
  const auto& outputs = graph.spec.outputs();
  const auto output = std::ranges::find_if(outputs, [&](const Output& o) { return o.value.same_node(scatter); });
  if (output == outputs.end() || !users_of(graph, scatter).empty())
    throw UserError(subject, "its result is used by an operation", "make it an output, and nothing else");
  if (output->in_place_of != target->name)
    throw UserError(subject, fmt::format("output '{}' is not in place of '{}'", output->name, target->name),
                    fmt::format("say so: {{.in_place_of = \"{0}\"}}, or in_place_of {0}: only the named rows are written", target->name));
}

bool indexes(const Expr& node, std::size_t operand) { return (node.op() == Op::gather || node.op() == Op::scatter) && operand == 1; }

void require_i64_for_indices(const Expr& node) {
  for (std::size_t i = 0; i < node.operands().size(); ++i)
    if (const Expr& operand = node.operands()[i]; operand.dtype() == i64 && !indexes(node, i) && node.op() != Op::unstack)
      throw UserError(fmt::format("input '{}'", operand.op() == Op::unstack ? operand.operands()[0]->name : operand->name),
                      fmt::format("operation '{}' computes with its i64", info(node.op()).name), "use i32: i64 is for indices");
}

void require_known_size(const SpecGraph& graph, const Expr& iota) {
  for (const Dim& dim : iota.shape())
    if (dim.is_dynamic() && std::ranges::none_of(graph.dynamic_dims, [&](const Dim& d) { return same_size(d, dim); }))
      throw UserError("operation 'iota'", fmt::format("no input has the dimension '{}'", dim.name()),
                      "count along a dimension of an input");
}

} // namespace

bool pairs_in_lane(const Expr& expr) { return expr.op() == Op::partner && !expr->in_registers && expr->step <= distance_in_lane; }
bool pairs_in_wave(const Expr& expr) { return expr.op() == Op::partner && expr->in_registers; }
bool pairs_positions(const Expr& expr) { return expr.op() == Op::partner && !expr->in_registers && is_position(expr.operands()[0]); }

std::optional<View> view_of(const Expr& expr) {
  if (!is_view(expr) || pairs_in_lane(expr) || pairs_in_wave(expr) || pairs_positions(expr)) return {};
  View view;
  Expr at = expr;
  for (; at.op() != Op::input; at = at.operands()[0]) {
    if (at.op() == Op::partner) view.partner = at->step;
    if (at.op() == Op::shift_columns) view.shift = at->step;
    if (at.op() == Op::tile) view.tile = at.operands()[0].shape().back().size();
    if (at.op() == Op::repeat) view.repeat = at->step;
    if (at.op() == Op::gather) view.index = at.operands()[1]->name, view.checked = at->checked;
    if (!is_view(at)) throw InternalError(fmt::format("a view of '{}'", info(at.op()).name));
  }
  view.tensor = at->name;
  return view;
}

KernelSpec lower_partners(const SpecGraph& graph) {
  if (std::ranges::none_of(graph.nodes, [](const Expr& n) { return n.op() == Op::partner; })) return graph.spec;
  LoweredPartners lowered = with_lowered_partners(graph, false);
  if (lowered.refusal) lowered = with_lowered_partners(graph, true);
  if (!lowered.refusal) return std::move(lowered.spec);
  throw UserError(
      "operation 'partner'", lowered.refusal->fact,
      fmt::format("{}; partners at powers of two up to {} may be of anything", lowered.refusal->remedy, max_paired_columns / 2));
}

bool is_table(const SpecGraph& graph, const Expr& input) {
  return std::ranges::any_of(graph.nodes, [&](const Expr& n) { return n.op() == Op::gather && n.operands()[0].same_node(input); });
}
bool is_target(const SpecGraph& graph, const Expr& input) {
  return std::ranges::any_of(graph.nodes, [&](const Expr& n) { return n.op() == Op::scatter && n.operands()[0].same_node(input); });
}

std::vector<Expr> nodes_of_space(const SpecGraph& graph) {
  std::unordered_set<const Node*> elsewhere, here; // used as a table, a target or what is widened; in any other way
  for (const Expr& node : graph.nodes)
    for (std::size_t i = 0; i < node.operands().size(); ++i) {
      const bool in_memory = i == 0 && (node.op() == Op::gather || node.op() == Op::scatter || widens(node.op()));
      (in_memory ? elsewhere : here).insert(&node.operands()[i].node());
    }
  std::vector<Expr> nodes;
  for (const Expr& node : graph.nodes)
    if (node.op() != Op::scatter && (here.contains(&node.node()) || !elsewhere.contains(&node.node()))) nodes.push_back(node);
  return nodes;
}

void require_sound_indices(const SpecGraph& graph) {
  for (const Expr& node : graph.nodes) {
    const OpKind kind = info(node.op()).kind;
    require_i64_for_indices(node);
    if (kind != OpKind::view && kind != OpKind::scatter && kind != OpKind::position && kind != OpKind::stack) continue;
    if (graph.has(OpKind::product))
      throw UserError(fmt::format("operation '{}'", info(node.op()).name), "it stands beside a matrix product",
                      "index in a kernel of its own: an epilogue reads what lies where its product does");
    if ((kind == OpKind::stack || node.op() == Op::unstack) && (graph.has(OpKind::scores) || graph.has(OpKind::sort)))
      throw UserError(fmt::format("operation '{}'", info(node.op()).name), "it stands beside attention, or a sort of experts",
                      "take slices in the kernel of rows before or behind it");
    if (node.op() == Op::gather) require_table_alone(graph, node.operands()[0]);
    if (node.op() == Op::scatter) require_target_alone(graph, node);
    if (node.op() == Op::iota) require_known_size(graph, node);
  }
  for (const Output& output : graph.spec.outputs())
    if (output.dtype == i64) throw UserError(fmt::format("output '{}'", output.name), "it is i64", "use i32: i64 is for indices");
}

} // namespace kiln
