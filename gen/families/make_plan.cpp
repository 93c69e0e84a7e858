// make_plan: the entries of all families and what they bring, the choice of one, and the text of a plan.
#include "gen/families/make_plan.h"
#include "gen/error.h"
#include "gen/families/entry.h"
#include "gen/spec/names.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

template <typename... Families> std::span<const Family> entries(FamilyList<void, Families...>) {
  static constexpr Family list[] = {family_entry<Families>...};
  return list;
}

std::string tensor_text(const TensorPlan& tensor) {
  std::string text = fmt::format("{:<7} {:<16} {:<8} {}", tensor.output ? "output" : "input", tensor.name, to_string(tensor.dtype),
                                 to_string(tensor.extent));
  if (tensor.group) text += fmt::format(" of {}", tensor.group);
  if (tensor.named_rows) text += ", rows by index";
  if (!tensor.row_index.empty()) text += fmt::format(", rows by {}", tensor.row_index);
  if (tensor.extent == Extent::element && !tensor.covers_rows() && !tensor.named_rows && tensor.row_index.empty())
    text += ", the same for some rows";
  if (tensor.layout == Layout::strided) text += ", strided";
  if (!tensor.in_place_of.empty()) text += fmt::format(", in place of {}", tensor.in_place_of);
  return text;
}

std::string product_text(const Product& p) {
  return fmt::format("{:<15} {} {} x {} {}{}, {} from {}, k {}{}", p.placeholder, to_string(p.a.memory.dtype()), p.a.memory->name,
                     p.b.bits() == 4 ? "4-bit" : to_string(p.b.memory.dtype()), p.b.memory->name, p.b.preshuffled() ? " preshuffled" : "",
                     p.n, p.first, p.k(), p.b.group ? fmt::format(", scales of groups of {}", p.b.group) : "");
}

std::string value_text(const Body& body, const Value& value) {
  std::vector<std::string> operands;
  for (const Expr& operand : value.expr.operands()) operands.push_back(fmt::format("%{}", body.index.at(&operand.node())));
  std::string what{info(value.expr.op()).name};
  if (!value.expr->name.empty()) what += " " + value.expr->name;
  if (value.expr.op() == Op::constant) what += fmt::format(" {}", value.expr->value);
  return fmt::format("{:<8} {:<8} level {}  {}({})", to_string(value.extent), to_string(value.expr.dtype()), value.level, what,
                     fmt::join(operands, ", "));
}

} // namespace

std::span<const Family> registered_families() { return entries(RegisteredFamilies()); }

bool is_word_of_a_family(std::string_view name) {
  return std::ranges::any_of(registered_families(), [&](const Family& f) { return std::ranges::find(f.words, name) != f.words.end(); });
}

Plan make_plan(const KernelSpec& spec, const Target& target, std::span<const Family> families) {
  Plan plan{analyse(spec, target)};
  const auto taker = std::ranges::find_if(families, [&](const Family& family) { return family.can_compute(plan); });
  if (taker == families.end())
    throw UserError(fmt::format("kernel '{}'", spec.name()), "no family of kernels computes it",
                    "split it into kernels of the catalogue's kinds");
  taker->lay_out(plan);
  plan.family = &*taker;
  return plan;
}

namespace {

// `what`: the plan, or a problem of it, by its name.
std::string text_of(const Plan& plan, const std::string& what) {
  const Body& body = plan.body;
  std::vector<std::string> space;
  for (const Shape& dims : body.outer_dims) {
    std::vector<std::string> factors;
    for (const Dim& dim : dims) factors.push_back(dim.text());
    space.push_back(fmt::format("{}", fmt::join(factors, " * ")));
  }
  if (body.cols) space.push_back(fmt::format("{}", body.cols));
  std::string text = fmt::format("{}: {} over [{}], {} pass{}\n", what, plan.family->name, fmt::join(space, ", "), body.passes,
                                 body.passes == 1 ? "" : "es");
  for (const Product& p : plan.products) text += fmt::format("  product {}\n", product_text(p));
  if (plan.part) text += fmt::format("  {}\n", plan.part->text());
  for (const TensorPlan& tensor : body.tensors)
    if (!find_product(plan.products, tensor.name) && !(plan.part && plan.part->stands_for(tensor.name)))
      text += fmt::format("  {}\n", tensor_text(tensor));
  for (std::size_t i = 0; i < body.values.size(); ++i) text += fmt::format("  %{:<3} {}\n", i, value_text(body, body.values[i]));
  return text;
}

} // namespace

std::string to_text(const Plan& plan) {
  const std::string name = fmt::format("plan {}", plan.spec.name());
  if (plan.problems.empty()) return text_of(plan, name);
  std::string text = fmt::format("{}: {}, {} problems\n", name, plan.family->name, plan.problems.size());
  for (const auto& problem : plan.problems) text += text_of(*problem, fmt::format("problem {}", problem->body.outputs.front().name));
  return text;
}

} // namespace kiln
