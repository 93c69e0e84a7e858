// OwnFolder: finding, keeping, claiming.
#include "runtime/cache/layers/own_folder.h"
#include "gen/error.h"
#include "runtime/cache/layers/kinds.h"
#include <fmt/format.h>

namespace kiln {

std::uint64_t FolderSize::measure_group(const Folder& parent, const std::string& name) {
  constexpr std::int64_t settle_s = 2; // the coarsest clock of a file system in use
  const auto info = parent.look(name);
  if (!info || !S_ISDIR(info->st_mode)) return 0;
  Group& known = groups_[name];
  if (known.settled && known.changed.tv_sec == info->st_mtim.tv_sec && known.changed.tv_nsec == info->st_mtim.tv_nsec) return known.bytes;
  known = {.changed = info->st_mtim, .settled = info->st_mtim.tv_sec + settle_s < std::time(nullptr), .bytes = 0};
  try {
    const Folder group = parent.child(name);
    if (!group) return 0;
    for (const std::string& key : group.names())
      if (const Folder entry = group.child(key)) known.bytes += bytes_of_entry(entry);
  } catch (const Untrusted&) { // not ours to remove either
  }
  return known.bytes;
}

std::uint64_t FolderSize::measure(const Folder& cache) {
  std::uint64_t bytes = 0;
  try {
    if (const Folder all = cache.child(format_folder()))
      for (const std::string& name : all.names()) bytes += measure_group(all, name);
  } catch (const Untrusted&) {}
  return bytes + measure_group(cache, "quarantine");
}

OwnFolder::OwnFolder(const CacheOptions& options, std::shared_ptr<const PublicKeys> signers, std::shared_ptr<EventLog> events)
    : events_(std::move(events)), folder_(options.folder, {.writable = true,
                                                           .trust = options.trust_shared ? Trust::anyone : Trust::self,
                                                           .shipped = options.shipped,
                                                           .signers = std::move(signers),
                                                           .own_unsigned = true}),
      max_bytes_(options.max_bytes), claim_wait_(options.claim_wait) {}

std::string OwnFolder::name() const { return "folder " + folder_.path().string(); }

std::optional<LayerHit> OwnFolder::find(Lookup& lookup) {
  const CacheKey& key = lookup.key();
  auto kernel = folder_.find(key, [&](const EntryProblem& problem) {
    events_->note(problem.event, fmt::format("{}, entry {}: {}", name(), key.hex, problem.what()));
  });
  if (!kernel) return std::nullopt;
  return LayerHit{std::move(*kernel), std::nullopt};
}

void OwnFolder::put(const std::string& key, const EntryFiles& files) {
  try {
    folder_.publish(key, files);
    const std::lock_guard lock(mutex_);
    if (!std::exchange(swept_, true)) folder_.sweep(false); // what crashed processes left
    if (size_.measure(folder_.root()) <= max_bytes_) return;
    folder_.sweep(true);
    folder_.prune(max_bytes_ / 10 * 9); // room for some more, so that not every new kernel looks at all of them
  } catch (const EnvironmentError& error) {
    events_->note("not_stored", error.what());
  }
}

std::unique_ptr<const Claim> OwnFolder::claim(const CacheKey& key, const std::string& kernel) const {
  auto claim = std::make_unique<const Claim>(folder_.root(), key.hex, claim_wait_, [&] { return folder_.has(key); });
  if (claim->result() == Claim::Result::unavailable)
    events_->note("claim_unavailable", fmt::format("{} takes no claims; several processes may compile the same kernel", name()));
  if (claim->result() == Claim::Result::expired)
    events_->note("wait_expired", fmt::format("process {} has been compiling {} for more than {} ms; compiling it here too",
                                              claim->holder(), kernel, claim_wait_.count()));
  return claim;
}

void layer_kinds::own_folder(LayerList& list) {
  if (list.options.folder.empty()) return;
  list.add("cache_unusable", [&] { return std::make_unique<OwnFolder>(list.options, list.signers, list.events); });
}

} // namespace kiln
