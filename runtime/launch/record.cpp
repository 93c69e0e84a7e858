// Device memory and arguments for a record: all buffers hold zeros, but for what decides which rows and how many a kernel reads, and what
// is ranked.
#include "runtime/launch/record.h"
#include "gen/error.h"
#include "gen/reference/index_check.h"
#include "gen/reference/random.h"
#include "gen/spec/dtype.h"
#include "gen/spec/graph.h"
#include "isa_checks/object/code_object.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

using Sizes = std::map<std::string, std::int64_t>;

// Rows of tensors lie as close as the kernel allows.
class Arguments {
public:
  Arguments(const KernelSpec& spec, const KernelSource& source, const Sizes& sizes) : spec_(spec), source_(source), sizes_(sizes) {
    for (const KernelArgument& a : source.arguments) {
      std::uint64_t bits = 0;
      if (a.kind == ArgumentKind::workspace) bits = memory.allocate(a.name, static_cast<std::size_t>(source.workspace_bytes));
      else if (a.kind == ArgumentKind::size) bits = static_cast<std::uint64_t>(sizes.at(a.name));
      else if (a.kind == ArgumentKind::stride) bits = static_cast<std::uint64_t>(stride_of(a.tensor, shape_of(a.tensor).back()));
      else if (a.kind != ArgumentKind::scalar) bits = place(a);
      block.resize(static_cast<std::size_t>(a.offset + a.size));
      std::memcpy(&block[static_cast<std::size_t>(a.offset)], &bits, static_cast<std::size_t>(a.size));
      addresses_[a.name] = bits;
    }
    for (const LengthUse& use : length_uses(spec)) fill_caches(use);
    for (const ExpertUse& use : expert_uses(spec)) fill_experts(use);
    for (const IndexUse& use : index_uses(spec))
      if (const std::int64_t rows = size_of(use.rows.shape().front()); rows > 0)
        fill(use.index, [&](std::int64_t i) { return i % rows; }); // one after the other
    for (const Expr& node : nodes_in_order(spec))
      if (node.op() == Op::row_top && node.operands()[0].op() == Op::input) fill_ranked(node.operands()[0]);
  }

  exec::Memory memory;
  std::vector<std::byte> block;

private:
  // Rows, and elements of a row.
  std::vector<std::int64_t> shape_of(const std::string& tensor) const {
    const auto output = std::ranges::find(spec_.outputs(), tensor, &Output::name);
    Shape shape;
    if (output != spec_.outputs().end()) shape = output->value.shape();
    else
      for (const Expr& e : spec_.inputs())
        if (e->name == tensor) shape = e.shape();
    std::vector<std::int64_t> rows{1, 1};
    for (std::size_t i = 0; i < shape.size(); ++i)
      rows[i == 0 && shape.size() > 1 ? 0 : 1] *= shape[i].is_dynamic() ? sizes_.at(shape[i].name()) : shape[i].size();
    return rows;
  }
  std::int64_t stride_of(const std::string& tensor, std::int64_t row) const {
    for (const KernelArgument& s : source_.arguments)
      if (s.kind == ArgumentKind::stride && s.tensor == tensor) return (row + s.alignment - 1) / s.alignment * s.alignment;
    return row;
  }
  std::uint64_t place(const KernelArgument& a) {
    const std::vector<std::int64_t> shape = shape_of(a.name);
    return memory.allocate(a.name, static_cast<std::size_t>(storage_bytes(a.dtype, shape[0] * stride_of(a.name, shape[1]))),
                           a.kind != ArgumentKind::input);
  }

  std::int64_t size_of(const Dim& dim) const { return dim.is_dynamic() ? sizes_.at(dim.name()) : dim.size(); }

  // Every sequence as long as there is room, in pages one after the other.
  void fill_caches(const LengthUse& use) {
    const CacheSizes cache = cache_sizes(use, [&](const Dim& dim) { return size_of(dim); });
    const bool has_pages = use.pages.has_value();
    if (has_pages && cache.pages == 0) return;
    fill(use.lengths, [&](std::int64_t) { return cache.keys; });
    if (has_pages) fill(*use.pages, [&](std::int64_t i) { return i % cache.pages; });
  }
  // Pairs of a token and an expert go to the experts in turn.
  void fill_experts(const ExpertUse& use) {
    const std::int64_t count = size_of(use.offsets.shape().front()) - 1;
    const std::vector<std::int64_t> pairs = shape_of(use.order->name);
    std::vector<std::int64_t> experts(static_cast<std::size_t>(pairs[0] * pairs[1]));
    for (std::size_t i = 0; i < experts.size(); ++i) experts[i] = static_cast<std::int64_t>(i) % count;
    const SortedPairs sorted = sort_pairs(experts, count);
    fill(use.order, [&](std::int64_t i) { return sorted.order[static_cast<std::size_t>(i)]; });
    fill(use.offsets, [&](std::int64_t i) { return sorted.offsets[static_cast<std::size_t>(i)]; });
  }
  // Numbers with a mean of 0 and a deviation of 2.4, about as the normal distribution has them: which are alike decides how ranks are
  // found.
  void fill_ranked(const Expr& input) {
    Random random(1);
    fill(input, [&](std::int64_t) {
      double sum = 0; // of 12 uniform numbers: a deviation of 1
      for (int i = 0; i < 12; ++i) sum += random.uniform(-0.5, 0.5);
      return from_f32(input.dtype(), static_cast<float>(2.4 * sum), true);
    });
  }
  template <typename Number> void fill(const Expr& input, Number number) {
    const std::span<std::byte> bytes = memory.bytes(addresses_.at(input->name));
    const auto size = static_cast<std::size_t>(storage_bytes(input.dtype(), 1));
    for (std::size_t i = 0; (i + 1) * size <= bytes.size(); ++i) {
      const auto value = static_cast<std::int64_t>(number(static_cast<std::int64_t>(i))); // the lower half comes first
      std::memcpy(&bytes[i * size], &value, size);
    }
  }

  std::map<std::string, std::uint64_t> addresses_;
  const KernelSpec& spec_;
  const KernelSource& source_;
  const Sizes& sizes_;
};

} // namespace

BlankLaunch blank_launch(const KernelSpec& spec, const KernelSource& source, const Sizes& sizes) {
  const std::uint64_t blocks = source.launch.blocks([&](const std::string& dim) { return sizes.at(dim); });
  if (blocks == 0 || blocks > 0xffffffffULL)
    throw UserError("launch of " + spec.name(), fmt::format("it has {} workgroups", blocks),
                    "give sizes of 1 or more, and fewer than 2^32 workgroups");
  Arguments arguments(spec, source, sizes);
  const exec::Grid grid{.workgroups = {static_cast<std::uint32_t>(blocks), 1, 1},
                        .workgroup_size = {static_cast<std::uint32_t>(source.launch.workgroup_threads()), 1, 1}};
  return {.grid = grid, .memory = std::move(arguments.memory), .arguments = std::move(arguments.block)};
}

timing::Record record_kernel(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, const Sizes& sizes,
                             const timing::RecordOptions& options) {
  BlankLaunch launch = blank_launch(spec, source, sizes);
  return timing::record(isa::load_code_object(object.bytes, object.name), object.name, launch.grid, launch.arguments, launch.memory,
                        options);
}

} // namespace kiln
