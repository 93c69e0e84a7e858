// IndexFindings: the indices that a launch on an emulated device finds in memory, against the rows that its tensors have.
#pragma once
#include "gen/error.h"
#include "gen/reference/index_check.h"
#include "isa_checks/exec/machine/memory.h"
#include "runtime/launch/kernel.h"
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class IndexFindings {
public:
  explicit IndexFindings(const Kernel& kernel) : arguments_(kernel.arguments().begin(), kernel.arguments().end()) {
    constexpr std::string_view words[] = {"gather(", "scatter(", "attention_scores", "by_expert(", "sum_of_experts("};
    const std::string text = kernel.spec_text();
    // Most kernels have none: their specs are not read.
    if (std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != text.npos; }))
      inputs_ = TrustedInputs::of(parse_spec(text));
  }

  // One text a bad index tensor: "index slot: element 3 is 70000, and k_cache has 65536 rows". An address would be a row of another
  // tensor more often than no memory at all, so that the executor alone could not tell.
  std::vector<std::string> find(std::span<const std::byte> arguments, const exec::Memory& memory) const {
    const auto size_of = [&](const Dim& dim) {
      return dim.is_dynamic() ? static_cast<std::int64_t>(number(arguments, dim.name())) : dim.size();
    };
    const auto read = [&](const Expr& index) {
      std::int64_t count = 1;
      for (const Dim& dim : index.shape()) count *= size_of(dim);
      return numbers_at(memory, number(arguments, index->name), static_cast<std::uint64_t>(size_bytes(index.dtype())), count);
    };
    std::vector<std::string> findings;
    for (Refusal& refusal : why_not_sound(inputs_, read, size_of)) {
      std::erase(refusal.subject, '\'');
      findings.push_back(fmt::format("{}: {}", refusal.subject, refusal.fact));
    }
    return findings;
  }

private:
  std::uint64_t number(std::span<const std::byte> arguments, const std::string& name) const {
    const auto argument = std::ranges::find(arguments_, name, &KernelArgument::name);
    if (argument == arguments_.end()) throw InternalError(fmt::format("an index without an argument '{}'", name));
    std::uint64_t bits = 0;
    std::memcpy(&bits, arguments.data() + argument->offset, static_cast<std::size_t>(argument->size));
    return bits;
  }

  // The numbers of an index in memory; nothing where there are none, or where they lie outside of it, which is the executor's finding.
  static std::optional<CountedIndex> numbers_at(const exec::Memory& memory, std::uint64_t address, std::uint64_t bytes,
                                                std::int64_t count) {
    const exec::Allocation* const place = memory.find(address);
    if (count == 0 || place == nullptr || place->end() - address < bytes * static_cast<std::uint64_t>(count)) return {};
    const auto at = [bytes, first = place->bytes.data() + (address - place->address)](std::int64_t i) -> std::int64_t {
      const std::byte* const at = first + bytes * static_cast<std::uint64_t>(i);
      std::int64_t wide = 0;
      std::int32_t narrow = 0;
      if (bytes == sizeof wide) std::memcpy(&wide, at, sizeof wide);
      else std::memcpy(&narrow, at, sizeof narrow);
      return bytes == sizeof wide ? wide : narrow;
    };
    return CountedIndex{count, at};
  }

  TrustedInputs inputs_;
  std::vector<KernelArgument> arguments_; // of the kernel
};

} // namespace kiln
