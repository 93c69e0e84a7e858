// OwnFolder: the writable folder of a cache, kept within its bound.
#pragma once
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/cache/folder/claim.h"
#include "runtime/cache/folder/folder_size.h"
#include "runtime/cache/layers/layer.h"
#include <mutex>

namespace kiln {

class OwnFolder : public CacheLayer {
public:
  // Throws EnvironmentError when the folder cannot be used.
  OwnFolder(const CacheOptions& options, std::shared_ptr<const PublicKeys> signers, std::shared_ptr<EventLog> events);

  std::string name() const override;
  Origin origin() const override { return Origin::folder; }
  std::optional<LayerHit> find(Lookup& lookup) override;
  void put(const std::string& key, const EntryFiles& files) override;

  // "I am compiling this", to other processes; waits for those that said so before, for at most CacheOptions::claim_wait.
  std::unique_ptr<const Claim> claim(const CacheKey& key, const std::string& kernel) const;
  const CacheFolder& folder() const { return folder_; }

private:
  std::shared_ptr<EventLog> events_;
  CacheFolder folder_;
  std::uint64_t max_bytes_;
  std::chrono::milliseconds claim_wait_;
  std::mutex mutex_; // of what follows
  FolderSize size_;
  bool swept_ = false;
};

} // namespace kiln
