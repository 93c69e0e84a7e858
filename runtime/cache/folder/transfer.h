// Transfer: entries from one cache to another, and to and from archives. Every entry is verified on the way.
#pragma once
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/cache/remote/remote.h"
#include "runtime/cache/sign.h"
#include <iosfwd>
#include <string>
#include <vector>

namespace kiln {

struct TransferReport {
  std::size_t taken = 0, there = 0;  // there: was in the destination already
  std::vector<std::string> left_out; // "KEY: reason": corrupt, unreadable, somebody else's, not signed
};

// `signers` null: entries need no signature. A checksum says that an entry is whole, not who made it.
TransferReport merge_folder(const CacheFolder& from, const CacheFolder& to, const PublicKeys* signers);
TransferReport export_folder(const CacheFolder& from, std::ostream& archive);
// Files of an entry lie together in an archive, in any order.
TransferReport import_archive(std::istream& archive, const std::string& name, const CacheFolder& to, const PublicKeys* signers);
TransferReport push_folder(const CacheFolder& from, RemoteCache& to);
TransferReport sign_folder(const CacheFolder& folder, const SigningKey& key);

} // namespace kiln
