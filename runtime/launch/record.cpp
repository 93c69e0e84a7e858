// Device memory and arguments for a record: all buffers hold zeros, but for what decides how much attention reads.
#include "runtime/launch/record.h"
#include "gen/error.h"
#include "gen/reference/length_check.h"
#include "isa_checks/object/code_object.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

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

  // Every sequence as long as there is room, in pages one after the other.
  void fill_caches(const LengthUse& use) {
    const CacheSizes cache = cache_sizes(use, [&](const Dim& dim) { return dim.is_dynamic() ? sizes_.at(dim.name()) : dim.size(); });
    const bool has_pages = use.pages.has_value();
    if (has_pages && cache.pages == 0) return;
    fill(use.lengths->name, [&](std::int64_t) { return cache.keys; });
    if (has_pages) fill((*use.pages)->name, [&](std::int64_t i) { return i % cache.pages; });
  }
  template <typename Number> void fill(const std::string& input, Number number) {
    const std::span<std::byte> bytes = memory.bytes(addresses_.at(input));
    for (std::size_t i = 0; i + sizeof(std::int32_t) <= bytes.size(); i += sizeof(std::int32_t)) {
      const auto value = static_cast<std::int32_t>(number(static_cast<std::int64_t>(i / sizeof(std::int32_t))));
      std::memcpy(&bytes[i], &value, sizeof value);
    }
  }

  std::map<std::string, std::uint64_t> addresses_;
  const KernelSpec& spec_;
  const KernelSource& source_;
  const Sizes& sizes_;
};

} // namespace

timing::Record record_kernel(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, const Sizes& sizes) {
  const std::uint64_t blocks = source.launch.blocks([&](const std::string& dim) { return sizes.at(dim); });
  if (blocks == 0 || blocks > 0xffffffffULL)
    throw UserError("launch of " + spec.name(), fmt::format("it has {} workgroups", blocks),
                    "give sizes of 1 or more, and fewer than 2^32 workgroups");
  Arguments arguments(spec, source, sizes);
  const exec::Grid grid{.workgroups = {static_cast<std::uint32_t>(blocks), 1, 1},
                        .workgroup_size = {static_cast<std::uint32_t>(source.launch.workgroup_threads()), 1, 1}};
  return timing::record(isa::load_code_object(object.bytes, object.name), object.name, grid, arguments.block, arguments.memory);
}

} // namespace kiln
