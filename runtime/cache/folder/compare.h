// Compare: what changed in the ISA facts of the same kernels between two caches, say before and after a compiler upgrade.
#pragma once
#include "runtime/cache/folder/cache_folder.h"
#include <string>
#include <vector>

namespace kiln {

struct FactChange {
  std::string fact; // "resources.vgprs"
  std::string before, after;
};

struct KernelComparison {
  std::string kernel, arch;
  std::string before_key, after_key; // one is empty: the kernel is in one cache only
  std::vector<FactChange> changes;   // of the facts and of the contract; empty: the same code quality
  bool same_code = false;            // byte by byte
};

// Kernels are the same when spec, architecture, overrides and options are; generator and compiler may differ. If a cache has
// a kernel from several compilers, the last of them by key is taken. Corrupt entries are left out. Sorted by kernel.
std::vector<KernelComparison> compare_folders(const CacheFolder& before, const CacheFolder& after);

} // namespace kiln
