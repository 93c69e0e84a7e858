// AliasTable: kernels by the identity of their spec's nodes, the lookup of Jit::compile that must take no time.
#pragma once
#include "gen/spec/spec.h"
#include "runtime/launch/kernel.h"
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln {

// Nodes are immutable and an alias keeps its spec alive, so equal node addresses mean equal values: nothing is walked or
// printed. Thread-safe.
class AliasTable {
public:
  std::optional<Kernel> find(const KernelSpec& spec, const std::vector<std::string>& overrides) const;
  void add(const KernelSpec& spec, const std::vector<std::string>& overrides, const Kernel& kernel);

private:
  struct Alias {
    KernelSpec spec;
    std::vector<std::string> overrides;
    Kernel kernel;
  };
  // A program that builds its specs anew for every call would fill the table with aliases that are never found again.
  static constexpr std::size_t most = 4096;
  mutable std::shared_mutex mutex_;
  std::unordered_multimap<std::uint64_t, Alias> aliases_;
};

} // namespace kiln
