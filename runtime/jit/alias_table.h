// AliasTable: kernels by the identity of their spec's nodes, the lookup of Jit::compile that must take no time.
#pragma once
#include "gen/spec/spec.h"
#include "runtime/launch/kernel.h"
#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
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
  std::optional<Kernel> find(const KernelSpec& spec, const std::vector<std::string>& overrides) const {
    const std::shared_lock lock(mutex_);
    const auto [begin, end] = aliases_.equal_range(hash_of(spec, overrides));
    for (auto at = begin; at != end; ++at) {
      const Alias& alias = at->second;
      if (alias.spec.name() == spec.name() && std::ranges::equal(alias.spec.outputs(), spec.outputs(), same) &&
          alias.overrides == overrides)
        return alias.kernel;
    }
    return std::nullopt;
  }

  void add(const KernelSpec& spec, const std::vector<std::string>& overrides, const Kernel& kernel) {
    if (find(spec, overrides)) return;
    const std::unique_lock lock(mutex_);
    if (aliases_.size() >= most) aliases_.clear();
    aliases_.emplace(hash_of(spec, overrides), Alias{spec, overrides, kernel});
  }

private:
  struct Alias {
    KernelSpec spec;
    std::vector<std::string> overrides;
    Kernel kernel;
  };

  // Output names and layouts are compared, not hashed: nodes tell nearly all specs apart.
  static std::uint64_t hash_of(const KernelSpec& spec, const std::vector<std::string>& overrides) {
    std::uint64_t hash = 0x9e3779b97f4a7c15u * (spec.name().size() + 31 * spec.outputs().size());
    for (const Output& output : spec.outputs())
      hash = (hash ^ reinterpret_cast<std::uintptr_t>(&output.value.node())) * 0xff51afd7ed558ccdu;
    for (const std::string& override : overrides) hash = (hash ^ std::hash<std::string>()(override)) * 0xff51afd7ed558ccdu;
    return hash ^ (hash >> 32);
  }

  static bool same(const Output& a, const Output& b) {
    return a.value.same_node(b.value) && a.dtype == b.dtype && a.layout == b.layout && a.name == b.name && a.in_place_of == b.in_place_of;
  }

  // A program that builds its specs anew for every call would fill the table with aliases that are never found again.
  static constexpr std::size_t most = 4096;
  mutable std::shared_mutex mutex_;
  std::unordered_multimap<std::uint64_t, Alias> aliases_;
};

} // namespace kiln
