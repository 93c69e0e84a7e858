// Random inputs: numbers of every type, rows that exist, lengths and pages.
#include "gen/reference/random_inputs.h"
#include "gen/reference/index_check.h"
#include "gen/reference/random.h"
#include "gen/spec/graph.h"
#include "gen/spec/product.h"
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace kiln {
namespace {

double element(DType type, Random& random) {
  switch (type) {
  case DType::boolean: return static_cast<double>(random.between(0, 1));
  case DType::i8:
  case DType::i32:
  case DType::i64: return static_cast<double>(random.between(-100, 100));
  case DType::u8: return static_cast<double>(random.between(0, 200));
  // Mostly within a few units, some small, as activations are.
  default: return random.chance(80) ? random.uniform(-3, 3) : random.uniform(-0.05, 0.05);
  }
}

double special(DType type, Random& random) {
  const double largest = max_finite(type);
  return random.pick(
      {0.0, -0.0, double(INFINITY), double(-INFINITY), double(NAN), largest, -largest, 0x1p-14, 0x1p-20, -0x1p-130, 0x1p-149});
}

double value(DType type, InputValues values, Random& random) {
  if (values == InputValues::special && random.chance(5)) return special(type, random);
  if (values == InputValues::largest && random.chance(50)) return random.pick({max_finite(type), -max_finite(type)});
  return element(type, random);
}

// Rows that exist, one in eight elements names none; where each row may be named once, others than before.
void fill_index(Tensor& index, std::int64_t rows, bool once, Random& random) {
  std::vector<std::int64_t> left; // rows that may be named
  for (std::int64_t row = 0; row < rows; ++row) left.push_back(row);
  for (std::int64_t i = 0; i < index.size(); ++i) {
    std::int64_t row = -random.between(1, 9);
    if (!left.empty() && !random.chance(12)) {
      const auto at = static_cast<std::size_t>(random.between(0, std::ssize(left) - 1));
      row = left[at];
      if (once) left[at] = left.back(), left.pop_back();
    }
    index.set_bits(i, static_cast<std::uint64_t>(row));
  }
}

// What an index of the first dimension reads is one of the rows that it writes, or none.
void fill_own_rows(const StateUse& use, Inputs& inputs, Random& random) {
  Tensor& read = inputs.tensors.at(use.reads.index->name);
  const Tensor& written = inputs.tensors.at(use.writes.index->name);
  if (read.size() == 0 || use.reads.index->name == use.writes.index->name) return;
  const std::int64_t owners = read.shape()[0], each = written.size() / owners;
  for (std::int64_t i = 0; i < read.size(); ++i) {
    const std::int64_t own = i / (read.size() / owners) * each + random.between(0, each - 1);
    read.set_bits(i, static_cast<std::uint64_t>(random.chance(12) ? -1 : written.integer(own)));
  }
}

// Lengths of all sizes, one in eight empty and one in eight as long as there is room; pages that exist, none beyond a length.
void fill_lengths(const LengthUse& use, Inputs& inputs, const std::set<std::string>& given, Random& random) {
  const auto size_in = [&](const Expr& input, std::size_t i) { return inputs.tensors.at(input->name).shape()[i]; };
  Tensor& lengths = inputs.tensors.at(use.lengths->name);
  const std::int64_t page = use.pages ? size_in(use.k, 1) : 0, of_one = use.pages ? size_in(*use.pages, 1) : 0;
  const std::int64_t room = use.pages ? (size_in(use.k, 0) ? page * of_one : 0) : size_in(use.k, 1);
  for (std::int64_t s = 0; s < lengths.size() && !given.contains(use.lengths->name); ++s)
    lengths.set_bits(s, static_cast<std::uint64_t>(random.chance(12) ? 0 : random.chance(12) ? room : random.between(0, room)));
  if (!use.pages || given.contains((*use.pages)->name)) return;
  Tensor& pages = inputs.tensors.at((*use.pages)->name);
  for (std::int64_t i = 0; i < pages.size(); ++i) {
    const bool needed = i % of_one * page < lengths.integer(i / of_one) && size_in(use.k, 0) > 0;
    pages.set_bits(i, static_cast<std::uint64_t>(needed ? random.between(0, size_in(use.k, 0) - 1) : -1));
  }
}

// Pairs by experts of which some have none and some have many.
void fill_pairs(const ExpertUse& use, Inputs& inputs, const std::set<std::string>& given, Random& random) {
  if (given.contains(use.order->name) || given.contains(use.offsets->name)) return;
  Tensor &order = inputs.tensors.at(use.order->name), &offsets = inputs.tensors.at(use.offsets->name);
  const std::int64_t count = offsets.size() - 1;
  std::vector<std::int64_t> experts;
  for (std::int64_t i = 0; i < order.size(); ++i)
    experts.push_back(random.chance(30) ? count - 1 - count / 3 : random.between(0, count - 1));
  const SortedPairs sorted = sort_pairs(experts, count);
  for (std::int64_t i = 0; i < order.size(); ++i) order.set_bits(i, static_cast<std::uint64_t>(sorted.order[static_cast<std::size_t>(i)]));
  for (std::int64_t i = 0; i <= count; ++i) offsets.set_bits(i, static_cast<std::uint64_t>(sorted.offsets[static_cast<std::size_t>(i)]));
}

// Sums of squares are not negative, nor all near 0; a scale is positive.
void fill_norms(const KernelSpec& spec, Inputs& inputs) {
  for (const Expr& node : nodes_in_order(spec)) {
    if (info(node.op()).kind != OpKind::product) continue;
    const Operand a = operands_of(node).a;
    if (a.prologue != Prologue::norm) continue;
    Tensor& squares = inputs.tensors.at(a.norm[1]->name);
    for (std::int64_t i = 0; i < squares.size(); ++i) squares.set(i, std::fabs(squares.at(i)) + 0.25F);
    Tensor& scale = inputs.tensors.at(a.norm[2]->name);
    scale.set(0, std::fabs(scale.at(0)) + 0x1p-6F);
  }
}

// Words of eight zero points have all their bits.
void fill_packed_zeros(const KernelSpec& spec, Inputs& inputs, std::uint64_t seed) {
  Random random(seed);
  for (const Expr& node : nodes_in_order(spec)) {
    if (info(node.op()).kind != OpKind::product) continue;
    const Operand b = operands_of(node).b;
    if (!b.packed_zeros()) continue;
    Tensor& zero = inputs.tensors.at(b.scales[1]->name);
    for (std::int64_t i = 0; i < zero.size(); ++i) zero.set_bits(i, static_cast<std::uint64_t>(random.between(0, 0xffffffff)));
  }
}

// What operations on i32 compute with has all bits.
void fill_bits(const KernelSpec& spec, Inputs& inputs, std::uint64_t seed) {
  Random random(seed);
  std::set<std::string> filled;
  for (const Expr& node : nodes_in_order(spec))
    for (const Expr& operand : node.operands()) {
      if (info(node.op()).kind != OpKind::integer || operand.op() != Op::input || !filled.insert(operand->name).second) continue;
      Tensor& tensor = inputs.tensors.at(operand->name);
      for (std::int64_t i = 0; i < tensor.size(); ++i)
        if (random.chance(70)) tensor.set_bits(i, random.bits() & 0xffffffff);
    }
}

} // namespace

std::int64_t size_within(const Dim& dim, std::int64_t size) {
  if (!dim.is_dynamic()) return dim.size();
  return std::clamp(size, dim.min().value_or(0), std::max(dim.min().value_or(0), dim.max().value_or(max_dim_size)));
}

Inputs random_inputs(const KernelSpec& spec, std::uint64_t seed, const RandomInputsOptions& options) {
  Random random(seed);
  Inputs inputs;
  for (const Expr& input : spec.inputs()) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : input.shape()) {
      const auto named = options.sizes.find(dim.is_dynamic() ? dim.name() : "");
      shape.push_back(named == options.sizes.end() ? size_within(dim, options.dynamic_size) : named->second);
    }
    std::int64_t stride = 0;
    if (input->layout == Layout::strided) {
      stride = 1;
      for (std::size_t i = 1; i < shape.size(); ++i) stride *= shape[i];
      stride = (stride + 15) / 16 * 16 + 16; // rows stay 16-byte aligned for every type
    }
    Tensor tensor(input.dtype(), shape, stride);
    std::ranges::fill(tensor.data(), std::byte{0xff}); // NaN or -1 in the padding
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(i, static_cast<float>(value(input.dtype(), options.values, random)));
    }
    inputs.tensors.emplace(input->name, std::move(tensor));
  }
  fill_norms(spec, inputs);
  fill_packed_zeros(spec, inputs, seed ^ 0x2f0c55);
  fill_bits(spec, inputs, seed ^ 0x51ed27);
  fill_indices(spec, inputs, seed ^ 0x6b2e71); // draws of its own: other inputs do not depend on it
  for (const Expr& scalar : spec.scalars())
    inputs.scalars[scalar->name] =
        scalar.dtype() == i32 ? static_cast<double>(random.between(-9, 9)) : static_cast<double>(static_cast<float>(random.uniform(-2, 2)));
  return inputs;
}

void fill_indices(const KernelSpec& spec, Inputs& inputs, std::uint64_t seed, const std::set<std::string>& given) {
  Random random(seed);
  std::map<std::string, std::pair<std::int64_t, bool>> indices; // rows that all uses have, whether one wants each once
  for (const IndexUse& use : index_uses(spec)) {
    auto& [rows, once] = indices.try_emplace(use.index->name, max_dim_size, false).first->second;
    rows = std::min(rows, inputs.tensors.at(use.rows->name).shape()[0]);
    once |= use.scatters && !use.duplicates;
  }
  for (const LengthUse& use : length_uses(spec)) fill_lengths(use, inputs, given, random);
  for (const ExpertUse& use : expert_uses(spec)) fill_pairs(use, inputs, given, random);
  for (const auto& [name, use] : indices)
    if (!given.contains(name)) fill_index(inputs.tensors.at(name), use.first, use.second, random);
  for (const StateUse& use : state_uses(spec))
    if (!given.contains(use.reads.index->name)) fill_own_rows(use, inputs, random);
}

} // namespace kiln
