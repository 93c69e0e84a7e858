// Index check: every element against the rows that there are.
#include "gen/reference/index_check.h"
#include "gen/error.h"
#include "gen/reference/expert_check.h"
#include "gen/reference/length_check.h"
#include "gen/spec/graph.h"
#include <fmt/format.h>
#include <unordered_map>

namespace kiln {

std::vector<IndexUse> index_uses(const KernelSpec& spec) {
  std::vector<IndexUse> uses;
  for (const Expr& node : nodes_in_order(spec))
    if (node.op() == Op::gather || node.op() == Op::scatter)
      uses.push_back({.index = node.operands()[1],
                      .rows = node.operands()[0],
                      .scatters = node.op() == Op::scatter,
                      .checked = node->checked,
                      .duplicates = node->duplicates});
  return uses;
}

std::optional<std::string> first_bad_index(const IndexUse& use, std::int64_t count, std::int64_t rows,
                                           const std::function<std::int64_t(std::int64_t)>& read) {
  if (!use.scatters && rows == 0 && count > 0)
    return fmt::format("{} has no rows, and a gather reads one even if none is named", use.rows->name);
  std::unordered_map<std::int64_t, std::int64_t> writers; // of rows
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = read(i);
    if (row < 0) continue;
    if (row >= rows && !use.checked) return fmt::format("element {} is {}, and {} has {} rows", i, row, use.rows->name, rows);
    if (!use.scatters || use.duplicates || row >= rows) continue;
    const auto [writer, is_new] = writers.try_emplace(row, i);
    if (!is_new)
      return fmt::format("elements {} and {} are both {}, a row of {} that is to be written once", writer->second, i, row, use.rows->name);
  }
  return {};
}

void require_sound_indices(const KernelSpec& spec, const Inputs& inputs) {
  require_sound_lengths(spec, inputs);
  require_sorted_pairs(spec, inputs);
  for (const IndexUse& use : index_uses(spec)) {
    const Tensor& index = inputs.tensors.at(use.index->name);
    const auto bad =
        first_bad_index(use, index.size(), inputs.tensors.at(use.rows->name).shape()[0], [&](std::int64_t i) { return index.integer(i); });
    if (bad)
      throw UserError(
          fmt::format("index '{}'", use.index->name), *bad,
          use.scatters
              ? "give rows that exist, each once, or a negative index to write none; or declare what may happen: checked, duplicates"
              : "give rows that exist, or a negative index for zeros; or declare what may happen: checked");
  }
}

} // namespace kiln
