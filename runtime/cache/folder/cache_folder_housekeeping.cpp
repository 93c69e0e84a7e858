// CacheFolder: listing, pruning, quarantine, and the note of a folder's compilers.
#include "gen/error.h"
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/cache/folder/process_mark.h"
#include "runtime/cache/json.h"
#include "runtime/digest.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln {
namespace {

constexpr std::size_t max_quarantined = 32;
constexpr std::int64_t stale_after = 86400; // s, of a staging folder whose owner cannot be asked
constexpr const char *layer_file = "layer.json", *reason_file = "reason.txt";
constexpr const char* entry_files[] = {meta_file, object_file, source_file, signature_file, compiled_file, reason_file};

std::int64_t modified(const Folder& folder, const std::string& name) {
  const auto info = folder.look(name);
  return info ? info->st_mtime : 0;
}

// A folder that may not be opened has no names for us.
Folder child_or_none(const Folder& folder, const std::string& name) {
  try {
    return folder ? folder.child(name) : Folder();
  } catch (const Untrusted&) {
    return {};
  }
}

std::vector<std::string> names_in(const Folder& folder) { return folder ? folder.names() : std::vector<std::string>(); }

// "KEY-MARK" in quarantine/.
bool is_quarantined(const std::string& name) {
  return name.size() > 65 && is_sha256(std::string_view(name).substr(0, 64)) && name[64] == '-' &&
         is_unique_mark(std::string_view(name).substr(65));
}

// "MARK" or "removed-MARK" in staging/; empty: the name is of another form.
std::string_view mark_in_staging(std::string_view name) {
  if (name.starts_with("removed-")) name.remove_prefix(8);
  return is_unique_mark(name) ? name : std::string_view();
}

std::string mark_of_claim(const Folder& claims, const std::string& name) {
  std::string target(256, '\0');
  const ssize_t length = readlinkat(claims.descriptor(), name.c_str(), target.data(), target.size());
  target.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return target;
}

} // namespace

std::uint64_t bytes_of_entry(const Folder& entry) {
  std::uint64_t bytes = 0;
  for (const char* file : entry_files)
    if (const auto info = entry.look(file)) bytes += static_cast<std::uint64_t>(info->st_size);
  return bytes;
}

std::uint64_t remove_known(const Folder& folder, const std::string& name) {
  const Folder entry = child_or_none(folder, name);
  if (!entry) {
    folder.remove_file(name); // a link or a file in an entry's place
    return 0;
  }
  const std::uint64_t bytes = bytes_of_entry(entry);
  for (const char* file : entry_files) entry.remove_file(file);
  for (const std::string& rest : entry.names())
    if (is_unique_mark(rest)) entry.remove_file(rest); // a signature on its way
  return folder.remove_folder(name) ? bytes : 0;
}

std::vector<EntryInfo> CacheFolder::list() const {
  std::vector<EntryInfo> entries;
  const Folder all = child_or_none(root_, format_folder());
  for (const std::string& name : names_in(all)) {
    const Folder group = child_or_none(all, name);
    for (const std::string& key : names_in(group)) {
      if (!is_sha256(key) || group_of(key) != name) continue;
      const Folder entry = child_or_none(group, key);
      entries.push_back({key, group.path() / key, entry ? bytes_of_entry(entry) : 0, modified(group, key)});
    }
  }
  std::ranges::sort(entries, {}, &EntryInfo::key);
  return entries;
}

void CacheFolder::quarantine(const std::string& key, const std::string& reason) const {
  const Folder group = child_or_none(child_or_none(root_, format_folder()), group_of(key));
  if (!group) return;
  Folder kept;
  try {
    kept = part("quarantine");
  } catch (const EnvironmentError&) { // no room for it: nothing wrong may stay where it would be found again
    remove_known(group, key);
    return;
  }
  const std::string name = fmt::format("{}-{}", key, unique_mark());
  if (!group.move(key, kept, name)) {
    if (errno != ENOENT) remove(key);
    return;
  }
  if (const Folder moved = child_or_none(kept, name)) moved.write(reason_file, reason + "\n");
  std::vector<std::string> names = names_in(kept);
  std::erase_if(names, [](const std::string& other) { return !is_quarantined(other); });
  std::ranges::stable_sort(names, std::ranges::greater(), [&](const std::string& other) { return modified(kept, other); });
  for (std::size_t i = max_quarantined; i < names.size(); ++i) remove_known(kept, names[i]);
}

std::size_t CacheFolder::quarantined() const {
  const std::vector<std::string> names = names_in(child_or_none(root_, "quarantine"));
  return static_cast<std::size_t>(std::ranges::count_if(names, is_quarantined));
}

bool CacheFolder::remove(const std::string& key) const {
  const Folder group = child_or_none(child_or_none(root_, format_folder()), group_of(key));
  if (!group) return false;
  const std::string aside = fmt::format("removed-{}", unique_mark());
  Folder staging;
  try {
    staging = part("staging");
  } catch (const EnvironmentError&) { // a full disk may leave no room for the other name
  }
  if (staging && group.move(key, staging, aside)) {
    remove_known(staging, aside);
    return true;
  }
  if (staging && errno == ENOENT) return false;
  remove_known(group, key);
  return !group.look(key);
}

std::uint64_t CacheFolder::prune(std::uint64_t max_bytes) const {
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

std::uint64_t CacheFolder::sweep(bool all) const {
  std::uint64_t removed = 0;
  const std::int64_t now = std::time(nullptr);
  const Folder staging = existing_part("staging"), claims = existing_part("claims"), quarantine = existing_part("quarantine");
  for (const std::string& name : names_in(staging))
    if (const std::string_view mark = mark_in_staging(name);
        !mark.empty() && (surely_gone(mark) || modified(staging, name) + stale_after < now))
      removed += remove_known(staging, name);
  for (const std::string& name : names_in(claims))
    if (is_sha256(name) && surely_gone(mark_of_claim(claims, name))) claims.remove_file(name);
  if (all)
    for (const std::string& name : names_in(quarantine))
      if (is_quarantined(name)) removed += remove_known(quarantine, name);
  return removed;
}

void CacheFolder::tidy() const {
  sweep(false);
  for (const char* name : {"claims", "staging"}) root_.remove_folder(name); // fails, as it should, where work is in progress
}

std::vector<std::string> CacheFolder::compilers() const {
  try {
    const std::optional<std::string> text = root_.read(layer_file, 1u << 20);
    if (!text) return {};
    return parse_json(*text).at("compilers").get<std::vector<std::string>>();
  } catch (const Untrusted& error) {
    fail(path() / layer_file, error.what());
  } catch (const nlohmann::json::exception&) {
    return {}; // as if it said nothing: the compiler at hand decides then
  }
}

void CacheFolder::add_compiler(const std::string& identity) const {
  std::vector<std::string> known = compilers();
  if (std::ranges::find(known, identity) != known.end()) return;
  known.push_back(identity);
  std::ranges::sort(known); // the same file whoever came first
  const nlohmann::ordered_json json{{"format", cache_format}, {"compilers", known}};
  const std::string beside = unique_mark();
  if (root_.write(beside, json.dump(1) + "\n") && root_.move(beside, root_, layer_file)) return;
  const int error = errno;
  root_.remove_file(beside);
  fail(path() / layer_file, std::strerror(error));
}

} // namespace kiln
