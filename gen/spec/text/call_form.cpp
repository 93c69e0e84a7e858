// CallForm: the forms of all calls, from the registry of operations.
#include "gen/spec/text/call_form.h"
#include <algorithm>

namespace kiln {
namespace {

constexpr std::string_view gather_options[] = {"checked"}, scatter_options[] = {"checked", "duplicates"};

int count_of_numbers(Op op) {
  switch (op) {
  case Op::ungroup:
  case Op::ungroup_rows:
  case Op::columns:
  case Op::pair_sign: return 2;
  case Op::partner:
  case Op::tile:
  case Op::repeat:
  case Op::shift_columns:
  case Op::unstack:
  case Op::row_top:
  case Op::matmul_nt_w4: return 1;
  default: return info(op).kind == OpKind::group_reduce || info(op).kind == OpKind::sort ? 1 : 0;
  }
}

std::vector<CallForm> make_forms() {
  std::vector<CallForm> forms;
  for (const Op op : all_ops()) {
    if (info(op).kind == OpKind::leaf) continue;
    CallForm form{.name = info(op).name, .operands = info(op).arity, .numbers = count_of_numbers(op), .op = op};
    form.type = op == Op::cast;
    form.shape = op == Op::iota;
    if (op == Op::gather) form.options = gather_options;
    if (op == Op::scatter) form.options = scatter_options;
    forms.push_back(form);
  }
  forms.push_back({.name = "cast_nonsaturating", .operands = 1, .type = true, .op = Op::cast});
  for (const Helper& helper : helpers())
    forms.push_back({.name = helper.name, .operands = helper.operands, .numbers = helper.numbers, .helper = &helper});
  return forms;
}

} // namespace

std::span<const CallForm> call_forms() {
  static const std::vector<CallForm> forms = make_forms();
  return forms;
}

const CallForm* find_call(std::string_view name) {
  const auto found = std::ranges::find(call_forms(), name, &CallForm::name);
  return found == call_forms().end() ? nullptr : &*found;
}

} // namespace kiln
