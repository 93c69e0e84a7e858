// FolderSize: counting what changed.
#include "runtime/cache/folder/folder_size.h"
#include "runtime/cache/folder/cache_folder.h"

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

} // namespace kiln
