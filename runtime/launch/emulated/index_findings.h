// IndexFindings: the indices that a launch on an emulated device finds in memory, against the rows that its tensors have.
#pragma once
#include "gen/reference/expert_check.h"
#include "gen/reference/index_check.h"
#include "gen/reference/length_check.h"
#include "isa_checks/exec/machine/memory.h"
#include "runtime/launch/kernel.h"
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace kiln {

class IndexFindings {
public:
  explicit IndexFindings(const Kernel& kernel);

  // One text a bad index tensor: "index slot: element 3 is 70000, and k_cache has 65536 rows". An address would be a row of another
  // tensor more often than no memory at all, so that the executor alone could not tell.
  std::vector<std::string> find(std::span<const std::byte> arguments, const exec::Memory& memory) const;

private:
  std::uint64_t number(std::span<const std::byte> arguments, const std::string& name) const;
  std::int64_t size(std::span<const std::byte> arguments, const Dim& dim) const;

  // The numbers of an index in memory; nothing where they lie outside of it, which is the executor's finding.
  std::optional<ReadIndex> reader(std::span<const std::byte> arguments, const exec::Memory& memory, const Expr& index,
                                  std::int64_t count) const;
  std::int64_t count(std::span<const std::byte> arguments, const Expr& index) const;

  std::vector<IndexUse> uses_;
  std::vector<StateUse> state_uses_;
  std::vector<LengthUse> length_uses_;
  std::vector<ExpertUse> expert_uses_;
  std::vector<KernelArgument> arguments_; // of the kernel
};

} // namespace kiln
