// KernelDraft: outputs, in memory of their own, in that of an input, or through an index, and the launch.
#include "examples/ggml/kernel_draft.h"
#include <algorithm>
#include <utility>

namespace kiln_ggml {
namespace {

bool meet(const TensorView& a, const TensorView& b) {
  const auto first = reinterpret_cast<std::uintptr_t>(a.data), second = reinterpret_cast<std::uintptr_t>(b.data);
  return first < second + b.span_bytes() && second < first + a.span_bytes();
}

} // namespace

void KernelDraft::write(const TensorView& to, kiln::Expr value) { outputs_.push_back({to, std::move(value)}); }

// How many inputs share memory with `to`, and the name of one that lies exactly there.
std::string KernelDraft::meeting_input(const TensorView& to, int& meeting) const {
  std::string same;
  for (const Input& in : inputs_) {
    if (!meet(in.view, to)) continue;
    ++meeting;
    if (in.full && in.view.data == to.data && in.view.dtype == to.dtype && in.view.ne == to.ne) same = in.name;
  }
  return same;
}

// Flat kernels: each element goes where an index says.
void KernelDraft::add_scatter(kiln::KernelSpec& spec, const Written& written, const std::string& name) {
  const TensorView& to = written.to;
  const std::int64_t count = to.count();
  const kiln::Expr target = kiln::input(name + "_to", to.dtype, {kiln::dynamic(next("t"), 1), 1});
  const std::string index = next("j");
  const kiln::Expr places = kiln::input(index, kiln::i32, {count == 1 ? kiln::Dim(1) : kiln::dynamic("n"), 1});
  arguments_.emplace_back(index, kiln::DeviceTensor{graph_.constant(repeated(to, to.ne)), kiln::i32, {count, 1}, 0});
  arguments_.emplace_back(name, kiln::DeviceTensor{to.data, to.dtype, {to.last() + 1, 1}, 0});
  spec.output(name, to.dtype, kiln::scatter(target, places, written.value), {.in_place_of = name + "_to"});
}

void KernelDraft::write_rows(const TensorView& to, const TensorView& index, kiln::Expr value) {
  rows_written_.push_back({to, index, std::move(value)});
}

void KernelDraft::add_rows(kiln::KernelSpec& spec, const RowsWritten& written, const std::string& name) {
  const TensorView& to = written.to;
  const bool strided = to.stride[1] != to.ne[0]; // rows as wide as they are far apart are the table's own
  const kiln::Layout layout = strided ? kiln::Layout::strided : kiln::Layout::contiguous;
  const kiln::Dim heads = ne_[1] == 1 ? kiln::Dim(1) : kiln::dynamic("n1");
  const kiln::Expr target = kiln::input(name + "_to", to.dtype, {kiln::dynamic(next("t"), 1), heads, ne_[0]}, layout);
  Axes tokens = row_axes({1, 1, ne_[2], 1}, 1);
  const std::string index = next("j");
  const kiln::Expr places = kiln::input(index, written.index.dtype, tokens.dims);
  arguments_.emplace_back(index, kiln::DeviceTensor{written.index.data, written.index.dtype, std::move(tokens.sizes), 0});
  arguments_.emplace_back(name, kiln::DeviceTensor{to.data, to.dtype, {to.ne[1], ne_[1], ne_[0]}, strided ? to.stride[1] : 0});
  const kiln::Expr rows = kiln::scatter(target, places, written.value, {.duplicates = true}); // as ggml allows
  spec.output(name, to.dtype, rows, {.in_place_of = name + "_to", .layout = layout});
}

void KernelDraft::add_output(kiln::KernelSpec& spec, const Written& written, const std::string& name, std::vector<Copy>& copies) {
  const TensorView& to = written.to;
  int meeting = 0;
  std::string same = meeting_input(to, meeting);
  const bool whole = to.is_dense() && to.is_aligned();
  if (meeting == 0 && !whole && space_ == Space::flat) return add_scatter(spec, written, name);
  void* data = to.data;
  const bool taken = std::ranges::any_of(spec.outputs(), [&](const kiln::Output& o) { return o.in_place_of == same; });
  if (!whole || (meeting != 0 && (!in_place_ || meeting != 1 || same.empty() || taken))) {
    same.clear();
    data = graph_.scratch(static_cast<std::size_t>(to.count()) * bytes_of(to.dtype));
    copies.push_back({dense_view(data, to.dtype, to.ne), to});
  }
  std::vector<std::int64_t> sizes;
  for (const kiln::Dim& dim : written.value.shape()) sizes.push_back(dim.is_dynamic() ? sizes_.at(dim.name()) : dim.size());
  spec.output(name, to.dtype, written.value, {.in_place_of = same});
  arguments_.emplace_back(name, kiln::DeviceTensor{data, to.dtype, std::move(sizes), 0});
  by_block_.insert(name);
  if (same.empty()) return;
  std::erase_if(arguments_, [&](const kiln::Argument& a) { return a.name == same; }); // one argument, under the output's name
}

void KernelDraft::launch(const std::string& name) {
  kiln::KernelSpec spec(name);
  std::vector<Copy> copies;
  for (std::size_t i = 0; i < outputs_.size(); ++i) add_output(spec, outputs_[i], "y" + std::to_string(i), copies);
  for (std::size_t i = 0; i < rows_written_.size(); ++i) add_rows(spec, rows_written_[i], "z" + std::to_string(i));
  if (space_ == Space::matrix) launch_blocks(spec);
  else graph_.launch(std::move(spec), arguments_);
  for (const Copy& c : copies) copy(graph_, c.from, c.to);
}

} // namespace kiln_ggml
