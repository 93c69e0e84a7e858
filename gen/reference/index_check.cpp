// Index check: every element against the rows that there are.
#include "gen/reference/index_check.h"
#include "gen/error.h"
#include "gen/reference/expert_check.h"
#include "gen/reference/length_check.h"
#include "gen/spec/graph.h"
#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>

namespace kiln {

IndexUse index_use(const Expr& node) {
  const Expr& index = node.operands()[1];
  const bool is_slice = index.op() == Op::unstack &&
                        std::all_of(index.shape().begin() + 1, index.shape().end(), [](const Dim& dim) { return same_size(dim, 1); });
  return {.index = index.op() == Op::unstack ? index.operands()[0] : index,
          .rows = node.operands()[0],
          .scatters = node.op() == Op::scatter,
          .checked = node->checked,
          .duplicates = node->duplicates,
          .first = is_slice ? index->first : 0,
          .step = is_slice ? index.operands()[0].shape()[1].size() : 1};
}

std::vector<IndexUse> index_uses(const KernelSpec& spec) {
  std::vector<IndexUse> uses;
  for (const Expr& node : nodes_in_order(spec))
    if (node.op() == Op::gather || node.op() == Op::scatter) uses.push_back(index_use(node));
  return uses;
}

std::vector<StateUse> state_uses(const KernelSpec& spec) {
  const std::vector<IndexUse> uses = index_uses(spec);
  std::vector<StateUse> states;
  for (const IndexUse& reads : uses)
    for (const IndexUse& writes : uses)
      if (!reads.scatters && writes.scatters && reads.rows->name == writes.rows->name &&
          (reads.index->name != writes.index->name || reads.step != 1))
        states.push_back({reads, writes});
  return states;
}

std::optional<std::string> first_foreign_row(const StateUse& use, std::int64_t owners, const CountedIndex& read,
                                             const CountedIndex& written) {
  std::unordered_map<std::int64_t, std::int64_t> writers;
  for (std::int64_t i = 0; i < written.count; ++i)
    if (const std::int64_t row = written.at(i); row >= 0) writers.try_emplace(row, i);
  for (std::int64_t i = use.reads.first; i < read.count; i += use.reads.step) {
    const auto writer = writers.find(read.at(i));
    if (writer == writers.end() || writer->second / (written.count / owners) == i / (read.count / owners)) continue;
    return fmt::format(
        "element {} of it and element {} of {} are both {}, a row of {} that one part of the launch reads and another one writes", i,
        writer->second, use.writes.index->name, writer->first, use.reads.rows->name);
  }
  return {};
}

std::optional<std::string> first_bad_index(const IndexUse& use, std::int64_t count, std::int64_t rows,
                                           const std::function<std::int64_t(std::int64_t)>& read) {
  if (!use.scatters && rows == 0 && count > 0)
    return fmt::format("{} has no rows, and a gather reads one even if none is named", use.rows->name);
  std::unordered_map<std::int64_t, std::int64_t> writers; // of rows
  for (std::int64_t i = use.first; i < count; i += use.step) {
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
  for (const StateUse& use : state_uses(spec)) {
    const Tensor &read = inputs.tensors.at(use.reads.index->name), &written = inputs.tensors.at(use.writes.index->name);
    const auto at = [](const Tensor& index) { return CountedIndex{index.size(), [&index](std::int64_t i) { return index.integer(i); }}; };
    if (const auto foreign = first_foreign_row(use, read.shape()[0], at(read), at(written)))
      throw UserError(fmt::format("index '{}'", use.reads.index->name), *foreign,
                      "let each index of the first dimension read rows that no other one writes");
  }
}

} // namespace kiln
