// Transfer: entries from one cache to another, and to and from archives. Every entry is verified on the way.
#pragma once
#include "runtime/cache/layer.h"
#include <iosfwd>
#include <string>
#include <vector>

namespace kiln {

struct TransferReport {
  std::size_t taken = 0, there = 0; // there: was in the destination already
  std::vector<std::string> corrupt; // "KEY: reason", left out
};

TransferReport merge_layer(const CacheLayer& from, const CacheLayer& to);
TransferReport export_layer(const CacheLayer& from, std::ostream& archive);
TransferReport import_archive(std::istream& archive, const std::string& name, const CacheLayer& to);

} // namespace kiln
