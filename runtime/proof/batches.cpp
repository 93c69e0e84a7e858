// Batches: rows picked out of tensors, pairs of experts sorted anew, and bits compared row by row.
#include "runtime/proof/batches.h"
#include "gen/reference/index_check.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/graph.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <set>

namespace kiln {
namespace {

const Shape& written_shape(const Output& output) {
  return output.value.op() == Op::scatter ? output.value.operands()[2].shape() : output.value.shape();
}

bool has_rows(const Shape& shape, const std::string& rows) { return !shape.empty() && shape[0].name() == rows; }

void copy_row(const Tensor& from, std::int64_t row, Tensor& to, std::int64_t at) { std::ranges::copy(from.row(row), to.row(at).begin()); }

// The pairs of the picked rows, each with the expert that its row has among all.
void sort_pairs_of(const ExpertUse& use, const Inputs& all, std::int64_t of_all, std::span<const std::int64_t> rows, Inputs& picked) {
  const Tensor &order = all.tensors.at(use.order->name), &offsets = all.tensors.at(use.offsets->name);
  const std::int64_t experts = offsets.size() - 1, top = order.size() / of_all;
  std::vector<std::int64_t> expert_of(static_cast<std::size_t>(order.size()), experts), chosen; // beyond the last: of none
  for (std::int64_t expert = 0; expert < experts; ++expert)
    for (std::int64_t place = offsets.integer(expert); place < offsets.integer(expert + 1); ++place)
      expert_of[static_cast<std::size_t>(order.integer(place))] = expert;
  for (const std::int64_t row : rows)
    for (std::int64_t rank = 0; rank < top; ++rank) chosen.push_back(expert_of[static_cast<std::size_t>(row * top + rank)]);
  const SortedPairs sorted = sort_pairs(chosen, experts);
  Tensor &new_order = picked.tensors.at(use.order->name), &new_offsets = picked.tensors.at(use.offsets->name);
  for (std::size_t i = 0; i < sorted.order.size(); ++i)
    new_order.set_bits(static_cast<std::int64_t>(i), static_cast<std::uint64_t>(sorted.order[i]));
  for (std::size_t i = 0; i < sorted.offsets.size(); ++i)
    new_offsets.set_bits(static_cast<std::int64_t>(i), static_cast<std::uint64_t>(sorted.offsets[i]));
}

} // namespace

RowDim row_dim(const KernelSpec& spec) {
  for (const Expr& node : nodes_in_order(spec))
    if (node.op() == Op::expert_order || node.op() == Op::expert_offsets) return {{}, "its outputs say where pairs stand among all"};
  RowDim result;
  for (const Output& output : spec.outputs()) {
    if (output.value.op() == Op::scatter && output.value->duplicates)
      return {{}, fmt::format("several rows may write one of output {}", output.name)};
    const Shape& shape = written_shape(output);
    if (shape.empty() || !shape[0].is_dynamic()) return {{}, fmt::format("output {} has no run-time number of rows", output.name)};
    if (result.name.empty()) result.name = shape[0].name();
    if (shape[0].name() != result.name) return {{}, fmt::format("output {} has no rows of {}", output.name, result.name)};
  }
  const auto elsewhere = [&](const Shape& shape) {
    return std::ranges::any_of(
        shape, [&, first = true](const Dim& dim) mutable { return !std::exchange(first, false) && dim.name() == result.name; });
  };
  for (const Output& output : spec.outputs())
    if (elsewhere(written_shape(output))) return {{}, fmt::format("output {} has {} twice", output.name, result.name)};
  for (const Expr& input : spec.inputs()) {
    if (elsewhere(input.shape())) return {{}, fmt::format("input {} has {} behind its first dimension", input->name, result.name)};
    if (is_packed(input.dtype()) && input.shape().size() == 1 && has_rows(input.shape(), result.name))
      return {{}, fmt::format("input {} has several rows in a byte", input->name)};
  }
  return result;
}

Batches::Batches(const KernelSpec& spec, std::uint64_t seed, std::int64_t count)
    : spec_(spec), rows_(row_dim(spec)), count_(count), random_(seed) {
  if (rows_.name.empty()) throw InternalError("batches of a spec without rows: " + rows_.why_not);
  const std::map<std::string, std::int64_t> sizes{{rows_.name, count}};
  all_ = random_inputs(spec, seed, {.dynamic_size = 71, .sizes = sizes});
  const Inputs special = random_inputs(spec, seed + 1, {.dynamic_size = 71, .sizes = sizes, .values = InputValues::special});
  for (const Output& output : spec.outputs())
    if (output.value.op() == Op::scatter) by_index_.emplace(output.name, index_use(output.value));
  std::set<std::string> of_all; // pairs and indices, whose rows fit each other alone
  for (const ExpertUse& use : expert_uses(spec)) of_all.insert(use.order->name);
  for (const IndexUse& use : index_uses(spec)) of_all.insert(use.index->name);
  for (const Expr& input : spec.inputs())
    for (std::int64_t row = 2; has_rows(input.shape(), rows_.name) && !of_all.contains(input->name) && row < count; row += 3)
      copy_row(special.tensors.at(input->name), row, all_.tensors.at(input->name), row);
}

Inputs Batches::picked(std::span<const std::int64_t> rows) const {
  Inputs some = all_;
  for (const Expr& input : spec_.inputs()) {
    if (!has_rows(input.shape(), rows_.name)) continue;
    const Tensor& from = all_.tensors.at(input->name);
    std::vector<std::int64_t> shape = from.shape();
    shape[0] = std::ssize(rows);
    Tensor to(from.dtype(), shape, from.row_stride());
    for (std::int64_t i = 0; i < std::ssize(rows); ++i) copy_row(from, rows[static_cast<std::size_t>(i)], to, i);
    some.tensors.at(input->name) = std::move(to);
  }
  for (const ExpertUse& use : expert_uses(spec_)) sort_pairs_of(use, all_, count_, rows, some);
  return some;
}

std::vector<std::int64_t> Batches::drawn(std::int64_t size) {
  std::vector<std::int64_t> rows;
  if (by_index_.empty()) {
    while (std::ssize(rows) < size) rows.push_back(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(count_)));
    return rows;
  }
  rows.resize(static_cast<std::size_t>(count_));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  std::ranges::shuffle(rows, random_);
  rows.resize(static_cast<std::size_t>(std::min(size, count_)));
  return rows;
}

std::vector<std::byte> Batches::bits_of(const EmulatedRun& run, const Inputs& inputs, std::int64_t i, std::int64_t count) const {
  std::vector<std::byte> bits;
  for (const auto& [name, tensor] : run.outputs) {
    const auto add = [&, &output = tensor](std::int64_t row) { bits.insert(bits.end(), output.row(row).begin(), output.row(row).end()); };
    const auto use = by_index_.find(name);
    if (use == by_index_.end()) {
      add(i);
      continue;
    }
    const Tensor& index = inputs.tensors.at(use->second.index->name);
    const std::int64_t of_row = index.size() / count;
    for (std::int64_t at = i * of_row + use->second.first; at < (i + 1) * of_row; at += use->second.step)
      if (const std::int64_t row = index.integer(at); row >= 0 && row < tensor.shape()[0]) add(row);
  }
  return bits;
}

std::string Batches::launch(const KernelSpec& spec, const BuiltKernel& kernel, std::int64_t size, const std::string& by) {
  const std::vector<std::int64_t> rows = drawn(size);
  const Inputs inputs = picked(rows);
  const EmulatedRun run = emulate(spec, kernel.source, kernel.object, inputs);
  if (also) also(run);
  if (!run.result.defects.empty()) return exec::to_text(run.result.defects.front());
  if (!run.result.completed) return fmt::format("a launch of {} rows did not complete", rows.size());
  for (std::int64_t i = 0; i < std::ssize(rows); ++i) {
    const std::int64_t row = rows[static_cast<std::size_t>(i)];
    std::vector<std::byte> bits = bits_of(run, inputs, i, std::ssize(rows));
    const std::string where = fmt::format("row {} in place {} of {}{}", row, i, rows.size(), by);
    const auto [first, is_new] = known_.try_emplace(row, std::move(bits), where);
    if (is_new) continue;
    ++compared_;
    if (first->second.first != bits) return fmt::format("{} and {} differ", first->second.second, where);
  }
  return {};
}

} // namespace kiln
