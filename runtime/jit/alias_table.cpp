// AliasTable: kernels by the identity of their spec's nodes.
#include "runtime/jit/alias_table.h"
#include <algorithm>
#include <functional>
#include <mutex>

namespace kiln {
namespace {

// Output names and layouts are compared, not hashed: nodes tell nearly all specs apart.
std::uint64_t hash_of(const KernelSpec& spec, const std::vector<std::string>& overrides) {
  std::uint64_t hash = 0x9e3779b97f4a7c15u * (spec.name().size() + 31 * spec.outputs().size());
  for (const Output& output : spec.outputs()) hash = (hash ^ reinterpret_cast<std::uintptr_t>(&output.value.node())) * 0xff51afd7ed558ccdu;
  for (const std::string& override : overrides) hash = (hash ^ std::hash<std::string>()(override)) * 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 32);
}

bool same(const Output& a, const Output& b) {
  return a.value.same_node(b.value) && a.dtype == b.dtype && a.layout == b.layout && a.name == b.name && a.in_place_of == b.in_place_of;
}

} // namespace

std::optional<Kernel> AliasTable::find(const KernelSpec& spec, const std::vector<std::string>& overrides) const {
  const std::shared_lock lock(mutex_);
  const auto [begin, end] = aliases_.equal_range(hash_of(spec, overrides));
  for (auto at = begin; at != end; ++at) {
    const Alias& alias = at->second;
    if (alias.spec.name() == spec.name() && std::ranges::equal(alias.spec.outputs(), spec.outputs(), same) && alias.overrides == overrides)
      return alias.kernel;
  }
  return std::nullopt;
}

void AliasTable::add(const KernelSpec& spec, const std::vector<std::string>& overrides, const Kernel& kernel) {
  if (find(spec, overrides)) return;
  const std::unique_lock lock(mutex_);
  if (aliases_.size() >= most) aliases_.clear();
  aliases_.emplace(hash_of(spec, overrides), Alias{spec, overrides, kernel});
}

} // namespace kiln
