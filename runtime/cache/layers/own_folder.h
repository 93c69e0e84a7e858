// OwnFolder: the writable folder of a cache, kept within its bound.
#pragma once
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/cache/folder/claim.h"
#include "runtime/cache/layers/layer.h"
#include <ctime>
#include <map>
#include <mutex>
#include <string>

namespace kiln {

// The bytes of all entries in a cache folder, whichever process put them there, without looking at each every time.
// An entry that comes or goes changes the time of its group's folder ("v1/ab"), so only groups whose time changed are counted
// again: 0.3 ms for an unchanged cache of any size. Not thread-safe.
class FolderSize {
public:
  std::uint64_t measure(const Folder& cache); // quarantine/ included

private:
  struct Group {
    timespec changed{};   // of the folder, when it was counted
    bool settled = false; // so long ago by then that a later change must show in its time
    std::uint64_t bytes = 0;
  };
  std::uint64_t measure_group(const Folder& parent, const std::string& name);
  std::map<std::string, Group> groups_;
};

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
