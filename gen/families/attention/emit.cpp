// Attention: the text of a kernel. Attention is a verb, the score expression and the epilogue are its arguments.
#include "gen/emit/line_marks.h"
#include "gen/emit/row_text.h"
#include "gen/emit/values.h"
#include "gen/families/attention/attention.h"
#include "gen/spec/names.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace kiln {
namespace {

std::string size_argument(const Dim& dim) { return dim.is_dynamic() ? dim.name() : fmt::format("{}u", dim.size()); }

std::string pointer_to(const std::optional<Expr>& input) { return input ? (*input)->name : "nullptr"; }

// A factory of the score expression of a row of q.
std::string score_text(const AttentionParts& a, const Target& target, const std::string& name) {
  const Body& body = a.score_body;
  const std::vector<Pass> passes = split_passes(body);
  ValueEmitter values(body, target, passes, "row");
  values.let_lambdas_keep_bools();
  std::string text = fmt::format("  const auto {} = [&]([[maybe_unused]] const ScoreRow<config>& row) KILN_LAMBDA {{\n", name);
  text += outer_indices(body) + values.load_lane_inputs();
  std::vector<std::string> parameters = {"[[maybe_unused]] At at", "auto " + a.product,
                                         "auto& " + values.unique_name("to_" + body.outputs.front().name)};
  std::string sources;
  for (const int index : passes.front().streams) {
    const std::string& input = body.value(index).expr->name;
    if (input == a.product) continue;
    parameters.push_back("auto " + input);
    sources += ", " + row_stream(body, body.tensor(input));
  }
  const PassText pass = values.pass_body(0);
  text += pass.before;
  return text +
         fmt::format("  return scored([=]({}) KILN_LAMBDA {{\n{}  }}{});\n  }};\n", fmt::join(parameters, ", "), pass.inside, sources);
}

std::string epilogue_text(const Plan& plan, const Target& target, const std::string& name) {
  const AttentionParts& a = attention_of(plan);
  const Body& body = plan.body;
  const std::vector<Pass> passes = split_passes(body);
  ValueEmitter values(body, target, passes, "row");
  const std::string log_sum = a.log_sum_exp.empty() ? "" : " " + a.log_sum_exp;
  std::string text =
      fmt::format("  const auto {} = [&](const auto& row, auto kiln_{}, OfThisRow{}) KILN_LAMBDA {{\n", name, a.result, log_sum);
  text += outer_indices(body) + values.load_lane_inputs();
  for (const TensorPlan& t : body.tensors)
    if (t.output && t.extent == Extent::element)
      text += fmt::format("  const auto {} = {};\n", values.unique_name("to_" + t.name), row_stream(body, t));
  std::vector<std::string> parameters, sources;
  for (const int index : passes.front().streams) {
    const std::string& input = body.value(index).expr->name;
    parameters.push_back("auto " + input);
    sources.push_back(input == a.result ? "kiln_" + input : row_stream(body, body.tensor(input)));
  }
  text += values.section_outputs(0);
  const PassText pass = values.pass_body(0);
  return text + fmt::format("{}  row.pass([&](At at, {}) KILN_LAMBDA {{\n{}  }}, {});\n  }};\n", pass.before, fmt::join(parameters, ", "),
                            pass.inside, fmt::join(sources, ", "));
}

std::string kernel_text(const Plan& plan, const AttentionConfig& c, const Target& target) {
  const AttentionParts& a = attention_of(plan);
  const std::string pages = a.pages ? fmt::format("{}, {}u", (*a.pages)->name, (*a.pages).shape()[1].size()) : "nullptr, 0u";
  const std::set<std::string> names = SpecGraph::as_spelled(plan.spec).names;
  const std::string length = unused_name("length", a.score_body.names), first_key = unused_name("first_key", names);
  const std::string score = unused_name("score_of_row", names), epilogue = unused_name("epilogue", names);
  std::string text = fmt::format("  const auto {} = [=]([[maybe_unused]] u32 {}) KILN_LAMBDA {{ return {}; }};\n", first_key, length,
                                 first_key_text(a, length));
  text += score_text(a, target, score) + epilogue_text(plan, target, epilogue);
  return text + fmt::format("  Attention<config, {}, {}, decltype({})>({}, {}, {}, {}, {}, {}, {}, {}, {}, {}).run({}, {});{}\n",
                            device_type(a.q.dtype()), device_type(a.k.dtype()), first_key, a.q->name, a.k->name, a.v->name,
                            fmt::format("CacheScales{{{}, {}}}", pointer_to(a.k_scale), pointer_to(a.v_scale)), size_argument(a.keys()),
                            pages, a.lengths->name, size_argument(a.sequences()),
                            c.workspace_bytes() > 0 ? workspace_name(plan) : "nullptr", first_key, score, epilogue, line_mark(a.line));
}

} // namespace

KernelSource Attention::emit(const Plan& plan, const Config& c, const Target& target) {
  // The grid is the same whatever the number of sequences is, if it is not zero.
  constexpr std::int64_t all = max_dim_size;
  return assemble(plan, target,
                  {.header = std::string(name),
                   .config = config_text(c, "AttentionConfig"),
                   .threads = "config.threads()",
                   .attributes = c.per_cu == 2 ? "KILN_VGPRS_ONLY " : "",
                   .body = kernel_text(plan, c, target),
                   .access = {.vec = c.vec},
                   .threads_per_block = c.threads(),
                   .units_per_block = all,
                   .blocks_per_unit = c.workgroups,
                   .workspace_bytes = c.workspace_bytes()});
}

} // namespace kiln
