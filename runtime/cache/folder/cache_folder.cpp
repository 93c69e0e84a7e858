// CacheFolder: finding and publishing entries. Housekeeping is in cache_folder_housekeeping.cpp.
#include "runtime/cache/folder/cache_folder.h"
#include "gen/error.h"
#include "runtime/cache/folder/process_mark.h"
#include "runtime/digest.h"
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {
namespace {

constexpr std::uint64_t max_meta = 4u << 20, max_file = 1u << 30, max_note = 4096; // bytes
constexpr std::int64_t use_grain = 3600;                                           // s between two notes of the time of use

// The time of last use is the folder's modification time: explicit, because noatime mounts keep no other.
void note_use(const Folder& entry) {
  const std::int64_t now = std::time(nullptr), used = entry.info().st_mtime;
  // A time in the future comes from a clock that was wrong then.
  if (used + use_grain < now || used > now + use_grain) futimens(entry.descriptor(), nullptr);
}

// What an errno says of an entry. These are facts about it; everything else is trouble on the way to it, which may pass.
[[noreturn]] void fail_entry(const std::string& what, int error) {
  const std::string text = fmt::format("{}: {}", what, std::strerror(error));
  for (const int fact : {ENOENT, ENOTDIR, ELOOP, EFBIG, EINVAL, ENXIO})
    if (error == fact) throw CorruptEntry(text);
  throw UnreadableEntry(text);
}

std::string file_in(const Folder& entry, const char* name, std::uint64_t most, struct stat* info = nullptr) {
  std::optional<std::string> bytes = entry.read(name, most, info);
  if (!bytes) fail_entry(name, errno);
  return std::move(*bytes);
}

// What the file `compiled` holds: nobody can move it to another entry, or give the entry other bytes.
std::string compiled_note(const EntryFiles& files) { return sha256(files.meta) + "\n"; }

// Whether this user, or root, wrote the note. Members of a shared cache may exchange and move files, but make none of another owner.
bool has_compiled_note(const Folder& entry, const EntryFiles& files) {
  struct stat info{};
  const std::optional<std::string> note = entry.read(compiled_file, max_note, &info);
  return note && is_own(info) && *note == compiled_note(files);
}

} // namespace

std::string format_folder() { return fmt::format("v{}", cache_format); }

CacheFolder::CacheFolder(const std::filesystem::path& folder, CacheFolderOptions options) : options_(std::move(options)) {
  try {
    root_ = options_.writable ? Folder::make(folder, options_.trust, options_.shipped ? 0755 : 0700) : Folder::open(folder, options_.trust);
    if (!root_ && errno == ENOENT && !options_.writable)
      throw EnvironmentError(
          "kernel cache", fmt::format("there is no folder {}", folder.string()),
          "name one that a program or `kiln aot -o` filled: KILN_CACHE_DIR, KILN_CACHE_LAYERS or the command's argument");
    if (!root_) fail(folder, std::strerror(errno));
    if (!options_.writable) return;
    // Now rather than in the middle of a prune: each of them is there as a folder of ours, or not at all. A glance, since every
    // process does this before its first hit; whoever opens one looks again.
    for (const std::string& name :
         {format_folder(), std::string("staging"), std::string("claims"), std::string("quarantine"), std::string("hosts")})
      if (const auto info = root_.look(name); info ? !S_ISDIR(info->st_mode) || !root_.takes(*info) : errno != ENOENT)
        existing_part(name.c_str()); // says what is wrong
  } catch (const Untrusted& error) {
    throw EnvironmentError("kernel cache", fmt::format("{} is not used: {}", folder.string(), error.what()),
                           "give it to yourself or root with mode 0700 or 0755, or, if you trust all who may write there, set "
                           "KILN_CACHE_TRUST_SHARED=1");
  }
}

void CacheFolder::fail(const std::filesystem::path& path, const std::string& fact) const {
  throw EnvironmentError("kernel cache", fmt::format("{}: {}", path.string(), fact),
                         "free space or change permissions, or set KILN_CACHE_DIR to a folder that you may write");
}

Folder CacheFolder::existing_part(const char* name) const {
  int error = 0;
  try {
    Folder there = root_.child(name);
    error = errno;
    if (there || error == ENOENT) return there;
  } catch (const Untrusted& untrusted) {
    fail(path(), untrusted.what());
  }
  const auto info = root_.look(name);
  if (info && !S_ISDIR(info->st_mode))
    throw EnvironmentError(
        "kernel cache",
        fmt::format("{} is {}, and has to be a folder", (path() / name).string(), S_ISLNK(info->st_mode) ? "a symbolic link" : "a file"),
        "remove it; Kiln follows no links within a cache");
  fail(path() / name, std::strerror(error));
}

Folder CacheFolder::part(const char* name) const {
  try {
    Folder made = root_.make_child(name);
    return made ? std::move(made) : existing_part(name);
  } catch (const Untrusted& error) {
    fail(path(), error.what());
  }
}

Folder CacheFolder::entry_folder(const std::string& key) const {
  Folder folder;
  try {
    if (folder = root_.child(format_folder()); folder)
      if (folder = folder.child(group_of(key)); folder) folder = folder.child(key);
  } catch (const Untrusted& error) {
    throw ForeignEntry(error.what());
  }
  if (!folder && errno != ENOENT) fail_entry(key, errno);
  return folder;
}

// Whether the entry that is held is still what its name leads to.
bool CacheFolder::is_at(const std::string& key, const Folder& entry) const {
  try {
    const Folder now = entry_folder(key);
    return now && now.info().st_ino == entry.info().st_ino && now.info().st_dev == entry.info().st_dev;
  } catch (const EntryProblem&) {
    return false;
  }
}

bool CacheFolder::has(const CacheKey& key) const {
  try {
    const Folder entry = entry_folder(key.hex);
    return entry && entry.look(meta_file).has_value();
  } catch (const EntryProblem&) {
    return false;
  }
}

EntryFiles CacheFolder::read_files(const Folder& entry, bool with_source) const {
  try {
    EntryFiles files;
    struct stat meta{}, object{};
    files.meta = file_in(entry, meta_file, max_meta, &meta);
    files.object = file_in(entry, object_file, max_file, &object);
    if (with_source) files.source = file_in(entry, source_file, max_file);
    if ((with_source || options_.signers) && entry.look(signature_file)) files.signature = file_in(entry, signature_file, max_note);
    if (options_.signers && options_.own_unsigned) files.compiled_here = is_own(meta) && is_own(object) && has_compiled_note(entry, files);
    return files;
  } catch (const Untrusted& error) {
    throw ForeignEntry(error.what());
  }
}

void CacheFolder::check_signature(const EntryFiles& files) const {
  if (options_.signers && !files.compiled_here) options_.signers->check(files);
}

std::optional<CachedKernel> CacheFolder::find(const CacheKey& key, const std::function<void(const EntryProblem&)>& problem) const {
  Folder entry;
  try {
    entry = entry_folder(key.hex);
    if (!entry) return std::nullopt;
    EntryFiles files = read_files(entry, false);
    check_signature(files);
    CachedKernel kernel = read_entry(std::move(files.meta), std::move(files.object), &key);
    if (options_.writable) note_use(entry);
    return kernel;
  } catch (const EntryProblem& error) {
    if (entry && !is_at(key.hex, entry)) return std::nullopt; // was removed or replaced while it was read
    const bool wrong = dynamic_cast<const CorruptEntry*>(&error) != nullptr;
    if (wrong && options_.writable) quarantine(key.hex, error.what());
    problem(error);
    return std::nullopt;
  }
}

bool CacheFolder::must_be_replaced(const std::string& key) const {
  try {
    const EntryFiles files = read(key);
    check_signature(files);
    read_entry(files.meta, files.object, nullptr);
    return false;
  } catch (const UnreadableEntry&) {
    return false;
  } catch (const EntryProblem&) {
    return true;
  }
}

bool CacheFolder::publish(const std::string& key, const EntryFiles& files) const {
  try {
    return place(key, files);
  } catch (const Untrusted& error) {
    fail(path(), error.what());
  }
}

bool CacheFolder::place(const std::string& key, const EntryFiles& files) const {
  const Folder group = part(format_folder().c_str()).make_child(group_of(key));
  if (!group) fail(path() / format_folder() / group_of(key), std::strerror(errno));
  const std::string mark = unique_mark();
  Folder staging, beside;
  for (int i = 0; i < 100 && !beside; ++i) { // another process that has finished may tidy the empty folder away in between
    staging = part("staging");
    if (beside = staging.make_child(mark); !beside && errno != ENOENT) break;
  }
  if (!beside) fail(staging.path(), std::strerror(errno));
  const bool written = beside.write(object_file, files.object) && beside.write(source_file, files.source) &&
                       (files.signature.empty() || beside.write(signature_file, files.signature)) &&
                       (!files.compiled_here || options_.shipped || beside.write(compiled_file, compiled_note(files))) &&
                       beside.write(meta_file, files.meta) && beside.sync();
  // Renaming onto a folder that has files in it fails: that is the test whether somebody was faster.
  bool published = written && staging.move(mark, group, key);
  int error = errno;
  const auto occupied = [&error] { return error == EEXIST || error == ENOTEMPTY || error == ENOTDIR; };
  if (written && !published && occupied() && must_be_replaced(key) && remove(key)) {
    published = staging.move(mark, group, key);
    error = errno;
  }
  if (published) {
    group.sync();
    return true;
  }
  remove_known(staging, mark); // the first error is the one to report
  if (written && occupied() && !must_be_replaced(key)) return false;
  fail(group.path() / key, std::strerror(error));
}

void CacheFolder::sign(const std::string& key, const std::string& signature) const {
  const Folder entry = entry_folder(key);
  const std::string beside = unique_mark();
  if (entry && entry.write(beside, signature) && entry.move(beside, entry, signature_file)) return;
  const int error = errno;
  if (entry) entry.remove_file(beside);
  fail(path() / key, std::strerror(error));
}

EntryFiles CacheFolder::read(const std::string& key) const {
  const Folder entry = entry_folder(key);
  if (!entry) throw UnreadableEntry(fmt::format("{}: {}", key, std::strerror(ENOENT)));
  return read_files(entry, true);
}

CachedKernel CacheFolder::verify(const EntryFiles& files, const std::string& key) const {
  check_source(files.meta, files.source);
  CachedKernel kernel = read_entry(files.meta, files.object, nullptr);
  if (kernel.key.hex != key) throw CorruptEntry(fmt::format("it is the entry {}", kernel.key.hex));
  if (options_.signers) options_.signers->check(files);
  return kernel;
}

} // namespace kiln
