// IndexFindings: index tensors in emulated memory.
#include "runtime/launch/emulated/index_findings.h"
#include "gen/error.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace kiln {

IndexFindings::IndexFindings(const Kernel& kernel) : arguments_(kernel.arguments().begin(), kernel.arguments().end()) {
  // Most kernels have none: their specs are not read.
  const std::string text = kernel.spec_text();
  if (text.find("gather(") != text.npos || text.find("scatter(") != text.npos) {
    const KernelSpec spec = parse_spec(text);
    uses_ = index_uses(spec), state_uses_ = state_uses(spec);
  }
  if (text.find("attention_scores") != text.npos) length_uses_ = length_uses(parse_spec(text));
  if (text.find("by_expert(") != text.npos || text.find("sum_of_experts(") != text.npos) expert_uses_ = expert_uses(parse_spec(text));
}

std::uint64_t IndexFindings::number(std::span<const std::byte> arguments, const std::string& name) const {
  const auto argument = std::ranges::find(arguments_, name, &KernelArgument::name);
  if (argument == arguments_.end()) throw InternalError(fmt::format("an index without an argument '{}'", name));
  std::uint64_t bits = 0;
  std::memcpy(&bits, arguments.data() + argument->offset, static_cast<std::size_t>(argument->size));
  return bits;
}

std::int64_t IndexFindings::size(std::span<const std::byte> arguments, const Dim& dim) const {
  return dim.is_dynamic() ? static_cast<std::int64_t>(number(arguments, dim.name())) : dim.size();
}

std::int64_t IndexFindings::count(std::span<const std::byte> arguments, const Expr& index) const {
  std::int64_t count = 1;
  for (const Dim& dim : index.shape()) count *= size(arguments, dim);
  return count;
}

std::optional<ReadIndex> IndexFindings::reader(std::span<const std::byte> arguments, const exec::Memory& memory, const Expr& index,
                                               std::int64_t count) const {
  const std::uint64_t address = number(arguments, index->name);
  const auto bytes = static_cast<std::uint64_t>(size_bytes(index.dtype()));
  const exec::Allocation* const place = memory.find(address);
  if (place == nullptr || place->end() - address < bytes * static_cast<std::uint64_t>(count)) return {};
  return [bytes, first = place->bytes.data() + (address - place->address)](std::int64_t i) -> std::int64_t {
    const std::byte* const at = first + bytes * static_cast<std::uint64_t>(i);
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    if (bytes == sizeof wide) std::memcpy(&wide, at, sizeof wide);
    else std::memcpy(&narrow, at, sizeof narrow);
    return bytes == sizeof wide ? wide : narrow;
  };
}

std::vector<std::string> IndexFindings::find(std::span<const std::byte> arguments, const exec::Memory& memory) const {
  std::vector<std::string> findings;
  for (const IndexUse& use : uses_) {
    const std::int64_t indices = count(arguments, use.index);
    const auto read = reader(arguments, memory, use.index, indices);
    if (!read) continue;
    if (const auto bad = first_bad_index(use, indices, size(arguments, use.rows.shape()[0]), *read))
      findings.push_back(fmt::format("index {}: {}", use.index->name, *bad));
  }
  for (const StateUse& use : state_uses_) {
    const std::int64_t reads = count(arguments, use.reads.index), writes = count(arguments, use.writes.index);
    const auto read = reader(arguments, memory, use.reads.index, reads), written = reader(arguments, memory, use.writes.index, writes);
    if (!read || !written) continue;
    const std::int64_t owners = size(arguments, use.reads.index.shape()[0]);
    if (const auto foreign = first_foreign_row(use, owners, {reads, *read}, {writes, *written}))
      findings.push_back(fmt::format("index {}: {}", use.reads.index->name, *foreign));
  }
  for (const LengthUse& use : length_uses_) {
    const std::int64_t sequences = count(arguments, use.lengths);
    const auto lengths = reader(arguments, memory, use.lengths, sequences);
    const auto pages = use.pages ? reader(arguments, memory, *use.pages, count(arguments, *use.pages)) : ReadIndex();
    if (!lengths || !pages) continue;
    const CacheSizes sizes = cache_sizes(use, [&](const Dim& dim) { return size(arguments, dim); });
    if (const auto bad = first_bad_length(sizes, use.k->name, sequences, *lengths, *pages))
      findings.push_back(fmt::format("lengths {}: {}", use.lengths->name, *bad));
  }
  for (const ExpertUse& use : expert_uses_) {
    const std::int64_t pairs = count(arguments, use.order), offsets = count(arguments, use.offsets);
    const auto order = reader(arguments, memory, use.order, pairs), offset = reader(arguments, memory, use.offsets, offsets);
    if (!order || !offset || pairs == 0) continue;
    if (const auto bad = first_bad_pair(pairs, offsets - 1, *order, *offset))
      findings.push_back(fmt::format("pairs {} with offsets {}: {}", use.order->name, use.offsets->name, *bad));
  }
  return findings;
}

} // namespace kiln
