// CacheLayer: listing, pruning, quarantine, and the note of a layer's compilers.
#include "gen/error.h"
#include "runtime/cache/digest.h"
#include "runtime/cache/layer.h"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {
namespace {

constexpr std::size_t most_quarantined = 32;
constexpr std::int64_t stale_after = 86400; // s, of a staging folder whose owner cannot be asked
constexpr const char* layer_file = "layer.json";

namespace fs = std::filesystem;

std::int64_t modified(const fs::path& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 ? info.st_mtime : 0;
}

// Names in a folder, none when it cannot be read.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::uint64_t bytes_in(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const std::string& name : names_in(folder)) {
    struct stat info {};
    if (lstat((folder / name).c_str(), &info) == 0) bytes += static_cast<std::uint64_t>(info.st_size);
  }
  return bytes;
}

std::uint64_t remove_tree(const fs::path& folder) {
  const std::uint64_t bytes = bytes_in(folder);
  std::error_code ignored; // another process may be removing the same
  fs::remove_all(folder, ignored);
  return bytes;
}

std::string unique(const std::string& name) {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}-{}-{}", name, process_mark(), ++count);
}

} // namespace

std::vector<EntryInfo> CacheLayer::list() const {
  std::vector<EntryInfo> entries;
  const fs::path root = folder_ / fmt::format("v{}", cache_format);
  for (const std::string& group : names_in(root))
    for (const std::string& key : names_in(root / group)) {
      const fs::path path = root / group / key;
      if (is_sha256(key)) entries.push_back({key, path, bytes_in(path), modified(path)});
    }
  std::ranges::sort(entries, {}, &EntryInfo::key);
  return entries;
}

void CacheLayer::quarantine(const std::string& key, const std::string& reason) const {
  const fs::path folder = part("quarantine");
  mkdir(folder.c_str(), 0700);
  const fs::path to = folder / unique(key);
  if (rename(entry_path(key).c_str(), to.c_str()) != 0) {
    if (errno != ENOENT) remove(key); // no room for it: nothing wrong may stay where it would be found again
    return;
  }
  if (const FileDescriptor kept(open(to.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); kept)
    write_durably(kept.get(), "reason.txt", reason + "\n", 0600);
  std::vector<std::string> names = names_in(folder);
  std::ranges::stable_sort(names, std::ranges::greater(), [&](const std::string& name) { return modified(folder / name); });
  for (std::size_t i = most_quarantined; i < names.size(); ++i) remove_tree(folder / names[i]);
}

bool CacheLayer::remove(const std::string& key) const {
  const fs::path aside = part("staging") / unique("removed");
  mkdir(part("staging").c_str(), 0700);
  std::error_code ignored;
  if (rename(entry_path(key).c_str(), aside.c_str()) == 0) return fs::remove_all(aside, ignored) > 0;
  return errno != ENOENT && fs::remove_all(entry_path(key), ignored) > 0; // a full disk may leave no room for the other name
}

std::uint64_t CacheLayer::prune(std::uint64_t max_bytes) const {
  std::uint64_t removed = sweep(false), left = 0;
  std::vector<EntryInfo> entries = list();
  for (const EntryInfo& entry : entries) left += entry.bytes;
  const std::int64_t now = std::time(nullptr);
  // Times in the future come from a clock that was wrong then; they must not keep an entry for ever.
  std::ranges::stable_sort(entries, {}, [now](const EntryInfo& entry) { return entry.used > now + 3600 ? 0 : entry.used; });
  for (const EntryInfo& entry : entries) {
    if (left <= max_bytes) break;
    left -= entry.bytes;
    if (remove(entry.key)) removed += entry.bytes;
  }
  return removed;
}

std::uint64_t CacheLayer::sweep(bool all) const {
  std::uint64_t removed = 0;
  const std::int64_t now = std::time(nullptr);
  for (const std::string& name : names_in(part("staging"))) {
    const fs::path path = part("staging") / name;
    const std::string_view mark = name.starts_with("removed-") ? std::string_view(name).substr(8) : std::string_view(name);
    if (surely_gone(mark) || modified(path) + stale_after < now) removed += remove_tree(path);
  }
  for (const std::string& name : names_in(part("claims"))) {
    const fs::path path = part("claims") / name;
    std::error_code error;
    if (surely_gone(fs::read_symlink(path, error).string())) unlink(path.c_str());
  }
  if (all)
    for (const std::string& name : names_in(part("quarantine"))) removed += remove_tree(part("quarantine") / name);
  return removed;
}

void CacheLayer::tidy() const {
  sweep(false);
  for (const char* name : {"claims", "staging"}) rmdir(part(name).c_str()); // fails, as it should, where work is in progress
}

std::vector<std::string> CacheLayer::compilers() const {
  const std::optional<std::string> text = read_whole(AT_FDCWD, part(layer_file).c_str(), 1u << 20);
  if (!text) return {};
  try {
    return nlohmann::json::parse(*text).at("compilers").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    return {}; // as if it said nothing: the compiler at hand decides then
  }
}

void CacheLayer::add_compiler(const std::string& identity) const {
  std::vector<std::string> known = compilers();
  if (std::ranges::find(known, identity) != known.end()) return;
  known.push_back(identity);
  std::ranges::sort(known); // the same file whoever came first
  const nlohmann::ordered_json json{{"format", cache_format}, {"compilers", known}};
  const std::string beside = unique("layer");
  const FileDescriptor root(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root || !write_durably(root.get(), beside.c_str(), json.dump(1) + "\n", options_.shipped ? 0644 : 0600) ||
      renameat(root.get(), beside.c_str(), root.get(), layer_file) != 0) {
    const int error = errno;
    if (root) unlinkat(root.get(), beside.c_str(), 0);
    fail(part(layer_file), std::strerror(error));
  }
}

} // namespace kiln
