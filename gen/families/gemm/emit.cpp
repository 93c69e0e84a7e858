// Gemm: the text of a kernel. The product is a verb, the epilogue its argument.
#include "gen/emit/device_text.h"
#include "gen/emit/line_marks.h"
#include "gen/emit/row_text.h"
#include "gen/emit/values.h"
#include "gen/families/gemm/gemm.h"
#include "gen/families/gemm/register_model.h"
#include "gen/families/rowwise/rowwise.h"
#include "gen/spec/names.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace kiln {
namespace {

// The address of row `rows` of a matrix.
std::string moved(const Expr& matrix, std::int64_t rows) {
  const std::int64_t elements = rows * matrix.shape().back().size() / (is_packed(matrix.dtype()) ? 2 : 1);
  return rows == 0 ? matrix->name : fmt::format("{} + {}ull", matrix->name, elements);
}

// Eight zero points of 4 bits per word lie group after group: columns begin at whole words.
std::string zero_points(const Product& p) {
  if (!p.b.packed_zeros()) return moved(p.b.scales[1], p.first);
  const std::string& zero = p.b.scales[1]->name;
  return fmt::format("reinterpret_cast<const u8*>({})", p.first == 0 ? zero : fmt::format("{} + {}", zero, p.first / 8));
}

std::string_view weights_type(const Product& p) {
  const bool becomes_a = p.b.bits() == 4 && p.b.rounded != f32; // in the kernel
  return becomes_a ? "u4x2" : device_type(p.b.memory.dtype());
}

// The matrix b of a product from its first row on, with its scales.
std::string weights_text(const Product& p) {
  const std::string b = moved(p.b.memory, p.first);
  const std::string_view type = device_type(p.b.memory.dtype());
  const auto scales = [&](std::int64_t row) { return moved(p.b.scales[0], row); };
  switch (p.b.encoding) {
  case Encoding::plain: break;
  case Encoding::block_scaled: return fmt::format("BlockScaled<{}>{{{}, {}}}", type, b, scales(p.first / scale_block));
  case Encoding::int4:
    return fmt::format("PackedWeights<{}>{{{}, {}, {}}}", device_type(p.a.memory.dtype()), b, scales(p.first), zero_points(p));
  case Encoding::mx: return fmt::format("MxWeights<{}>{{{}, {}}}", type, b, scales(p.first));
  case Encoding::nvfp4: return fmt::format("Nvfp4Weights<{}>{{{}, reinterpret_cast<const Nvfp4Scales*>({})}}", type, b, scales(p.first));
  }
  return b;
}

// How the kernel prefetches an operand of the epilogue, whose values lie in C's order: "prefetched_columns(bias)". Empty: the epilogue
// loads it.
std::string prefetched_operand(const Plan& plan, const TensorPlan& t) {
  const Body& body = plan.body;
  if (t.output || t.named_rows || find_product(plan.products, t.name) != nullptr) return "";
  if (t.extent == Extent::row) return row_arguments(body, t).text() == t.name ? fmt::format("prefetched_rows({})", t.name) : "";
  if (t.extent != Extent::element) return "";
  for (const auto& [along, in_pass] : {std::pair("columns", "columns"), std::pair("elements", "full")})
    if (row_stream(body, t) == fmt::format("row.{}({})", in_pass, t.name)) return fmt::format("prefetched_{}({})", along, t.name);
  return "";
}

// What the epilogue's lambda has beside the products, in order: a variable of each operand.
struct PrefetchedOperands {
  std::vector<std::string> names, operands, variables;
};
PrefetchedOperands prefetched_operands(const Plan& plan, const GemmConfig& config, const ValueEmitter& values) {
  PrefetchedOperands all;
  if (config.rows_at_end || config.has_producers() || config.by_expert()) return all;
  for (const Value& v : plan.body.values)
    if (v.expr.op() == Op::input && v.uses > 0)
      if (const std::string operand = prefetched_operand(plan, plan.body.tensor(v.expr->name)); !operand.empty()) {
        all.names.push_back(v.expr->name);
        all.operands.push_back(operand);
        all.variables.push_back(values.unique_name("kiln_" + v.expr->name));
      }
  return all;
}

// The text behind finished tiles.
std::string tile_epilogue(const Plan& plan, const PrefetchedOperands& prefetched, ValueEmitter& values) {
  const Body& body = plan.body;
  const Pass pass = split_passes(body).front();
  std::vector<std::string> parameters, sources;
  for (std::size_t i = 0; i < prefetched.names.size(); ++i) values.take_loaded(prefetched.names[i], prefetched.variables[i]);
  std::string text = outer_indices(body) + values.load_lane_inputs();
  for (const TensorPlan& t : body.tensors)
    if (t.output && t.extent == Extent::element)
      text += fmt::format("  const auto {} = {};\n", values.unique_name("to_" + t.name), row_stream(body, t));
  for (const int index : pass.streams) {
    const std::string& input = body.value(index).expr->name;
    const std::string* const variable = values.loaded(input);
    parameters.push_back("auto " + input);
    sources.push_back(variable ? *variable : find_product(plan.products, input) ? "kiln_" + input : row_stream(body, body.tensor(input)));
  }
  const PassText pass_text = values.pass_body(0);
  text += pass_text.before;
  return text + fmt::format("  row.pass([&](At at, {}) KILN_LAMBDA {{\n{}  }}, {});\n", fmt::join(parameters, ", "), pass_text.inside,
                            fmt::join(sources, ", "));
}

// The sums of products as they are, for the rows at the end.
std::string store_sums(const Plan& plan, const std::string& gemm_name) {
  std::string text;
  for (std::size_t p = 0; p < plan.products.size(); ++p)
    text += fmt::format("  row.pass([&](At at, auto sums) KILN_LAMBDA {{ row.full({}.sums({})).store(at, sums); }}, kiln_{});\n", gemm_name,
                        p, plan.products[p].placeholder);
  return text;
}

// The rest of a spec that reduces rows, by the workgroup that is last.
std::string rows_of_last(const Plan& plan, const GemmConfig& config, const Target& target, const std::string& gemm_name,
                         const ProblemPlace& place) {
  const RowwiseConfig rows = rows_at_end(plan.body, config);
  const std::string count = size_text(plan.body.outer_dims);
  std::set<std::string> names = plan.body.names;
  names.insert(place.block);
  const std::string block = unused_name("block", names);
  std::string text = fmt::format("  if (!{}.is_last()) return;\n", gemm_name);
  for (std::size_t p = 0; p < plan.products.size(); ++p)
    text += fmt::format("  const f32* const {} = {}.sums({});\n", plan.products[p].placeholder, gemm_name, p);
  text += fmt::format("  for (u32 {0} = 0; {0} * {1}u < {2}; ++{0}) {{\n  {3}", block, rows.rows_per_block, count,
                      config_text(rows, "RowwiseConfig"));
  text += rows_text(plan.body, rows, target, fmt::format("{}, {}", count, block), "break") + "  }\n";
  if (const auto& sort = plan.sort)
    text += fmt::format("  sort_by_expert<{}>({}, {} * {}u, {}, {});\n", sort->count, sort->experts, count, sort->top, sort->order,
                        sort->offsets);
  return text;
}

std::string kernel_body(const Plan& plan, const GemmConfig& config, const Target& target, const ProblemPlace& place) {
  const Body& body = plan.body;
  const std::vector<Pass> passes = split_passes(body);
  ValueEmitter values(body, target, passes, "row");
  const std::string gemm_name = values.unique_name("gemm");
  const Product& first = plan.products.front();
  const Dim& m = first.a.memory.shape()[0];
  std::vector<std::string> arguments{first.a.memory->name, m.is_dynamic() ? m.name() : fmt::format("{}u", m.size()),
                                     config.workspace_bytes() > 0 ? place.workspace : "nullptr"};
  if (!first.a.scales.empty() || first.is_normed()) arguments.push_back((first.is_normed() ? first.a.norm : first.a.scales)[0]->name);
  else if (first.by_expert() || !place.block.empty()) arguments.emplace_back("nullptr");
  if (first.by_expert()) {
    std::vector<std::string> sorted;
    for (const Expr& each : first.sorted) sorted.push_back(each->name);
    arguments.push_back(fmt::format("SortedPairs{{{}}}", fmt::join(sorted, ", ")));
  }
  if (!place.block.empty()) arguments.push_back(place.block);
  std::string text = fmt::format("  Gemm<config, {}, {}> {}({});\n", device_type(first.a.memory.dtype()), weights_type(first), gemm_name,
                                 fmt::join(arguments, ", "));
  if (first.is_normed())
    text +=
        fmt::format("  {}.norm_by({{{}, {}, {}}});\n", gemm_name, first.a.norm[1]->name, first.a.norm[2]->name, literal(first.a.epsilon));
  const PrefetchedOperands prefetched = prefetched_operands(plan, config, values);
  std::vector<std::string> parameters, matrices;
  for (const Product& p : plan.products) {
    parameters.push_back("auto kiln_" + p.placeholder);
    matrices.push_back(weights_text(p));
  }
  for (const std::string& variable : prefetched.variables) parameters.push_back("auto " + variable);
  const char* const row_type = config.epilogue_group ? "TileChunk<config.n, config.vec>" : "auto"; // members that are templates need it
  const std::string operands = prefetched.operands.empty() ? "" : fmt::format("prefetched({}), ", fmt::join(prefetched.operands, ", "));
  text += fmt::format("  {}.run({}[&](const {}& row, {}) KILN_LAMBDA {{{}\n", gemm_name, operands, row_type, fmt::join(parameters, ", "),
                      line_mark(first.line));
  text += config.rows_at_end ? store_sums(plan, gemm_name) : tile_epilogue(plan, prefetched, values);
  text += fmt::format("  }}, {});\n", fmt::join(matrices, ", "));
  return config.rows_at_end ? text + rows_of_last(plan, config, target, gemm_name, place) : text;
}

} // namespace

KernelParts Gemm::parts(const Plan& plan, const Config& c, const Target& target, const ProblemPlace& place) {
  return {.header = c.rows_at_end     ? "gemm/rows_at_end"
                    : c.shares_rows() ? "gemm/shared_rows"
                                      : "gemm/gemm",
          .config = config_text(c, "GemmConfig"),
          .threads = "config.threads()",
          .attributes = waves_per_eu_attribute(c.waves_per_eu, gemm_without_agprs(c) ? "KILN_VGPRS_ONLY " : ""),
          .body = kernel_body(plan, c, target, place),
          .access = {.vec = c.vec, .ragged = c.ragged()},
          .threads_per_block = c.threads(),
          .units_per_block = c.by_expert() ? max_dim_size : c.rows, // the grid does not depend on the number of tokens
          .blocks_per_unit = c.workgroups,
          .workspace_bytes = c.workspace_bytes()};
}

} // namespace kiln
