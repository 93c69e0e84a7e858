// Validation: whether a spec is well-formed, and the iteration space that follows from it.
#include "gen/plan/validate.h"
#include "gen/error.h"
#include "gen/plan/expert_sort.h"
#include "gen/plan/output_order.h"
#include "gen/plan/part.h"
#include "gen/plan/phases/phases.h"
#include "gen/plan/problems.h"
#include "gen/plan/product.h"
#include "gen/plan/view.h"
#include "gen/spec/attention.h"
#include "gen/spec/stacks.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace kiln {
namespace {

constexpr std::size_t max_nodes = 4096; // of one kernel; far above any that fits in registers

std::string kernel_subject(const SpecGraph& graph) { return fmt::format("kernel '{}'", graph.spec.name()); }

std::string describe(const Expr& leaf) { return fmt::format("{}{}", type_text(leaf), suffix(leaf->layout)); }
std::string subject_of(const Output& output) { return fmt::format("output '{}'", output.name); }
std::string_view role(Op op) { return op == Op::input ? "input" : "scalar"; }

void require_one_meaning_a_name(const SpecGraph& graph) {
  std::map<std::string, Expr> known;
  std::vector<Expr> leaves = graph.inputs;
  leaves.insert(leaves.end(), graph.scalars.begin(), graph.scalars.end());
  for (const Expr& leaf : leaves) {
    const auto [other, is_new] = known.try_emplace(leaf->name, leaf);
    if (is_new) continue;
    if (other->second.op() != leaf.op())
      throw UserError(fmt::format("input '{}'", leaf->name), "a scalar has the same name", "rename one of them");
    throw UserError(fmt::format("{} '{}'", role(leaf.op()), leaf->name),
                    fmt::format("it is used as {} and as {}", describe(other->second), describe(leaf)),
                    "use one declaration, or two names");
  }
  std::set<std::string> outputs;
  for (const Output& output : graph.spec.outputs()) {
    if (!outputs.insert(output.name).second) throw UserError(subject_of(output), "two outputs have this name", "rename one of them");
    if (const auto same = known.find(output.name); same != known.end())
      throw UserError(subject_of(output), fmt::format("{} has the same name", role(same->second.op())),
                      "rename one of them; an output in the memory of an input says so with in_place_of");
  }
  std::map<std::string, Dim> dims;
  for (const Dim& dim : graph.dynamic_dims) {
    const auto subject = fmt::format("dimension '{}'", dim.name());
    const auto [other, is_new] = dims.try_emplace(dim.name(), dim);
    if (!is_new)
      throw UserError(subject, fmt::format("it is used as {} and as {}", other->second.text(), dim.text()),
                      "give the same bounds everywhere");
    if (known.contains(dim.name()) || outputs.contains(dim.name()))
      throw UserError(subject, "an input, scalar or output has the same name", "rename one of them");
  }
}

void require_in_place(const SpecGraph& graph, const Shape& space) {
  std::set<std::string> taken;
  for (const Output& output : graph.spec.outputs()) {
    if (output.in_place_of.empty()) continue;
    const auto subject = fmt::format("output '{}' in place of '{}'", output.name, output.in_place_of);
    const auto input = std::ranges::find_if(graph.inputs, [&](const Expr& i) { return i->name == output.in_place_of; });
    if (input == graph.inputs.end())
      throw UserError(subject, fmt::format("'{}' is no input of the kernel", output.in_place_of), "name an input that an output uses");
    const bool scatters = output.value.op() == Op::scatter;    // whole rows
    if (!taken.insert(output.in_place_of).second && !scatters) // several scatters are those of one stack
      throw UserError(subject, "another output is in place of the same input", "give one of them memory of its own");
    const Shape& shape = output.value.shape();
    if (input->dtype() != output.dtype || input->shape() != shape || (*input)->layout != output.layout)
      throw UserError(subject,
                      fmt::format("the output is {}{}, the input {}", type_text(output.value), suffix(output.layout), describe(*input)),
                      "make type, shape and layout equal, or give the output memory of its own");
    const bool is_read = !scatters || is_state(graph, *input);
    if ((scatters ? output.value.operands()[2].shape() : shape) != space && is_read)
      throw UserError(subject,
                      fmt::format("its shape {} is smaller than the kernel's {}, so elements are read by several threads at unknown times",
                                  to_text(shape), to_text(space)),
                      "give the output memory of its own");
  }
}

// The operands of reductions span all columns: the sum over a value that already is one a row has no meaning.
void require_full_columns(const SpecGraph& graph, const Dim& cols) {
  for (const Expr& expr : graph.nodes) {
    const OpKind kind = info(expr.op()).kind;
    const bool reduces = is_reduction(expr.op()) || kind == OpKind::rank || kind == OpKind::pick || kind == OpKind::scan;
    if (!reduces && expr.op() != Op::ungroup) continue;
    if ((kind == OpKind::row_reduce || kind == OpKind::scan) && graph.ranked.contains(&expr.operands()[0].node())) continue;
    const Shape& full = reduces ? expr.operands()[0].shape() : expr.shape();
    if (!same_size(full.back(), cols))
      throw UserError(fmt::format("operation '{}'", info(expr.op()).name),
                      fmt::format("it works on {}, but a row of the kernel has {} columns", to_text(full), cols.text()),
                      "reduce values that have a full row");
  }
}

// [rows, 1] of [rows, cols].
bool is_one_a_row(const Output& output, const Shape& space) {
  return space.size() >= 2 && output.value.shape().size() == space.size() && same_size(output.value.shape().back(), 1);
}

// Every element of a kernel by elements, every row of a kernel by rows, has to be written.
void require_covers(const Output& output, const Shape& space, bool by_rows) {
  const Expr& value = output.value.op() == Op::scatter ? output.value.operands()[2] : output.value;
  const Shape& shape = value.shape();
  const std::ptrdiff_t compared = by_rows ? std::ssize(space) - 1 : std::ssize(space); // [rows, 1] covers by rows
  if (shape.size() != space.size() || !std::equal(space.begin(), space.begin() + compared, shape.begin(), same_size))
    throw UserError(subject_of(output),
                    fmt::format("its shape {} does not cover the kernel's iteration space {}", to_text(shape), to_text(space)),
                    by_rows ? "give it one value a row, a group or an element" : "compute it in a kernel of its own");
  if (output.layout == Layout::strided && shape.size() < 2)
    throw UserError(subject_of(output), fmt::format("it is strided, but its shape {} has no dimension to step over", to_text(shape)),
                    "use Layout::contiguous");
}

// Only products read preshuffled rows.
void require_no_preshuffled(const SpecGraph& graph) {
  for (const Expr& leaf : graph.inputs)
    if (leaf->layout == Layout::preshuffled)
      throw UserError(fmt::format("input '{}'", leaf->name), "it is preshuffled, but no product reads it as its operand b",
                      "use Layout::contiguous");
  for (const Output& output : graph.spec.outputs())
    if (output.layout == Layout::preshuffled)
      throw UserError(subject_of(output), "it is preshuffled", "use Layout::contiguous, and preshuffle() of gen/spec/preshuffle.h");
}

// Only pointwise operations and row reductions take values of ranks.
void require_sound_ranks(const SpecGraph& graph) {
  for (const Expr& node : graph.nodes) {
    const OpKind kind = info(node.op()).kind;
    if (graph.ranked.contains(&node.node()) && kind != OpKind::rank && kind != OpKind::pick) continue;
    if (kind == OpKind::row_reduce || kind == OpKind::leaf) continue;
    for (std::size_t i = 0; i < (kind == OpKind::pick ? 1 : node.operands().size()); ++i)
      if (graph.ranked.contains(&node.operands()[i].node()))
        throw UserError(fmt::format("operation '{}'", info(node.op()).name),
                        fmt::format("its operand {} has one value a rank", to_text(node.operands()[i].shape())),
                        "use pointwise operations, row reductions and running sums on what comes from row_top and pick");
  }
}

bool counts_groups(const Dim& last, const Dim& cols, const std::vector<std::int64_t>& group_sizes) {
  return std::ranges::any_of(group_sizes, [&](std::int64_t group) { return same_size(last, group_count(cols.size(), group)); });
}

// The last dimension of the iteration space: the largest of all values, which every other is 1 or a group count of.
Dim columns(const SpecGraph& graph, std::span<const Expr> nodes) {
  Dim cols = 1;
  for (const Expr& node : nodes) {
    if (node.shape().empty()) continue;
    const Dim& last = node.shape().back();
    if (last.is_dynamic() || (!cols.is_dynamic() && last.size() > cols.size())) cols = last;
  }
  for (const Expr& node : nodes) {
    if (node.shape().empty()) continue;
    const Dim& last = node.shape().back();
    if (same_size(last, 1) || same_size(last, cols)) continue;
    if (graph.ranked.contains(&node.node())) continue;
    if (cols.is_dynamic() || !counts_groups(last, cols, graph.group_sizes))
      throw UserError(
          kernel_subject(graph),
          fmt::format("values of shape {} and of {} columns do not belong to one iteration space", to_text(node.shape()), cols.text()),
          "compute them in two kernels");
  }
  return cols;
}

} // namespace

// Whether products alone use the node, as an operand.
static bool is_scale_of_product(const SpecGraph& graph, const Expr& expr) {
  const auto uses = [&](const Expr& node) {
    return info(node.op()).kind != OpKind::product &&
           std::ranges::any_of(node.operands(), [&](const Expr& o) { return o.same_node(expr); });
  };
  return std::ranges::none_of(graph.nodes, uses) &&
         std::ranges::none_of(graph.spec.outputs(), [&](const Output& o) { return o.value.same_node(expr); });
}

Shape iteration_space(const SpecGraph& graph) {
  if (has_inner_products(graph)) return iteration_space(SpecGraph::as_spelled(split_phases(graph).second));
  if (has_stacks(graph)) return iteration_space(SpecGraph::as_spelled(lower_stacks(graph).spec));
  if (graph.has(OpKind::sort)) return iteration_space(SpecGraph::as_spelled(split_sort(graph).rest));
  if (has_part(graph)) return iteration_space(SpecGraph::as_spelled(split_part(graph).rest));
  if (graph.has(OpKind::product)) return iteration_space(SpecGraph::as_spelled(split_products(graph).epilogue));
  if (std::ranges::any_of(graph.nodes, [](const Expr& node) { return node.op() == Op::transpose; }))
    return iteration_space(SpecGraph::as_spelled(in_order_of_rows(graph.spec, Op::transpose).spec));
  const std::vector<Expr> nodes = nodes_of_space(graph);
  const Dim cols = columns(graph, nodes);
  Shape space;
  for (const Expr& node : nodes) {
    Shape shape = node.shape();
    if (!shape.empty() && !same_size(shape.back(), 1)) shape.back() = cols;
    try {
      space = broadcast("kernel", space, shape);
    } catch (const UserError& error) {
      throw UserError(kernel_subject(graph), error.fact, "compute the outputs in two kernels");
    }
  }
  return space;
}

void require_sound_names(const SpecGraph& graph) {
  const auto subject = kernel_subject(graph);
  if (graph.spec.outputs().empty())
    throw UserError(subject, "it has no outputs", "add one: KernelSpec(\"name\").output(\"y\", f16, value)");
  if (graph.inputs.empty()) throw UserError(subject, "its outputs use no input", "compute from at least one input tensor");
  if (graph.nodes.size() > max_nodes)
    throw UserError(subject, fmt::format("it has {} operations and values", graph.nodes.size()),
                    fmt::format("split it: at most {} fit", max_nodes));
  require_one_meaning_a_name(graph);
  require_sound_indices(graph);
  const bool is_row_kernel = !graph.has(OpKind::product) && !graph.has(OpKind::scores) && !graph.has(OpKind::sort);
  for (const Expr& node : graph.nodes)
    if (node.op() == Op::transpose && !is_row_kernel && !is_scale_of_product(graph, node))
      throw UserError("operation 'transpose'", "the kernel has a matrix product, attention or a sort",
                      "transpose in the kernel of rows that reads the result, or the a_scale of a product");
  for (const Expr& node : graph.nodes)
    if (info(node.op()).kind == OpKind::operand)
      throw UserError(fmt::format("operation '{}'", info(node.op()).name), "it stands outside of an operand of a product",
                      "write it in an operand of matmul_nt, as docs/guide.md lists them");
  for (const Expr& node : graph.nodes)
    if (!graph.has(OpKind::scores) &&
        (node.op() == Op::heads_first || (node.op() == Op::columns && find_cache_operand(node.operands()[0]))))
      throw UserError(fmt::format("operation '{}'", info(node.op()).name), "the kernel has no attention, which alone offers it here",
                      node.op() == Op::columns ? "take columns of a matrix product" : "give the output the order of its rows");
}

Shape require_sound_shapes(const SpecGraph& graph, bool one_a_row) {
  require_no_preshuffled(graph);
  const Shape space = iteration_space(graph);
  const bool by_rows = graph.has_reductions || !graph.group_sizes.empty() || one_a_row;
  if (by_rows && space.size() < 2)
    throw UserError(kernel_subject(graph),
                    fmt::format("it reduces rows, but its iteration space {} has {} dimensions", to_text(space), space.size()),
                    "give it two or more: [rows, cols]");
  if (by_rows) require_full_columns(graph, space.back());
  require_sound_ranks(graph);
  for (const Output& output : graph.spec.outputs()) require_covers(output, space, by_rows || is_one_a_row(output, space));
  require_in_place(graph, space);
  return space;
}

void require_one_space(const SpecGraph& graph) {
  if (graph.has(OpKind::sort)) return validate(split_sort(graph).rest);
  if (has_part(graph)) {
    PartSplit split = split_part(graph);
    require_sound_shapes(SpecGraph::as_spelled(std::move(split.rest)), split.one_a_row);
    return;
  }
  if (has_stacks(graph)) return require_one_space(SpecGraph::as_spelled(lower_stacks(graph).spec));
  require_sound_shapes(SpecGraph::as_spelled(graph.has(OpKind::product) ? split_products(graph).epilogue
                                                                        : in_order_of_rows(graph.spec, Op::transpose).spec));
}

void validate(const KernelSpec& spec) {
  const SpecGraph graph(spec);
  require_sound_names(graph);
  if (has_inner_products(graph)) {
    const Phases phases = split_phases(graph);
    validate(phases.first);
    return validate(phases.second);
  }
  if (problems_of(graph).specs.empty()) require_one_space(graph);
}

// Elements of MX formats are OCP's fp8 on every target: where that is not native, integer code converts it.
static bool is_mx_cast(const Expr& node) {
  return node.op() == Op::cast && is_ocp_fp8(node.dtype()) && node->saturate && node.operands()[0].op() == Op::scale_down;
}
static bool has_mx_users(const SpecGraph& graph, const Expr& input) {
  const auto uses = [&](const Expr& node) {
    return std::ranges::any_of(node.operands(), [&](const Expr& o) { return o.same_node(input); });
  };
  const auto decodes = [](const Expr& node) {
    if (info(node.op()).kind != OpKind::product) return node.op() == Op::scale_up;
    const Encoding of_b = operands_of(node).b.encoding;
    return of_b == Encoding::mx || of_b == Encoding::nvfp4;
  };
  const bool computed = std::ranges::all_of(graph.nodes, [&](const Expr& node) { return !uses(node) || decodes(node); });
  return computed && std::ranges::none_of(graph.spec.outputs(), [&](const Output& o) { return o.value.same_node(input); });
}

void require_native_types(const SpecGraph& graph, const Target& target) {
  const auto require = [&](std::string subject, DType type) {
    if (target.has_native(type)) return;
    const bool e4m3 = type == e4m3fn || type == e4m3fnuz;
    const DType native = e4m3 ? target.fp8_e4m3() : target.fp8_e5m2();
    throw UserError(std::move(subject),
                    fmt::format("{} is not native to {}: it ends at {}, {} at {}", to_string(type), target.arch(), max_finite(type),
                                to_string(native), max_finite(native)),
                    fmt::format("use {}, or target.fp8_{}()", to_string(native), e4m3 ? "e4m3" : "e5m2"));
  };
  for (const Expr& input : graph.inputs)
    if (!is_ocp_fp8(input.dtype()) || !has_mx_users(graph, input)) require(fmt::format("input '{}'", input->name), input.dtype());
  for (const Output& output : graph.spec.outputs())
    if (!is_mx_cast(output.value)) require(subject_of(output), output.dtype);
  for (const Expr& node : graph.nodes)
    if (node.op() == Op::cast && !is_mx_cast(node)) require("operation 'cast'", node.dtype());
}

} // namespace kiln
