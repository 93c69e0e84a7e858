// CacheLayer: finding and publishing entries. Housekeeping is in layer_housekeeping.cpp.
#include "runtime/cache/layer.h"
#include "gen/error.h"
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {
namespace {

constexpr std::uint64_t most_meta = 16u << 20, most_object = 1u << 30;
constexpr std::int64_t use_grain = 3600; // s between two notes of the time of use

// The time of last use is the folder's modification time: explicit, because noatime mounts keep no other.
void note_use(int entry, const struct stat& info) {
  const std::int64_t now = std::time(nullptr);
  // A time in the future comes from a clock that was wrong then.
  if (info.st_mtime + use_grain < now || info.st_mtime > now + use_grain) futimens(entry, nullptr);
}

bool same_folder(const std::filesystem::path& path, const struct stat& info) {
  struct stat now {};
  return lstat(path.c_str(), &now) == 0 && now.st_ino == info.st_ino && now.st_dev == info.st_dev;
}

// A name in staging/ that nobody else uses, and whose owner can be recognised as dead.
std::string staging_name() {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}-{}", process_mark(), ++count);
}

} // namespace

CacheLayer::CacheLayer(std::filesystem::path folder, LayerOptions options) : folder_(std::move(folder)), options_(options) {
  std::error_code error;
  if (options_.writable && !std::filesystem::exists(folder_, error)) {
    if (folder_.has_parent_path()) std::filesystem::create_directories(folder_.parent_path(), error);
    make_folder(folder_);
  }
  struct stat info {};
  if (stat(folder_.c_str(), &info) != 0) fail(folder_, std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) fail(folder_, "it is no folder");
  const std::string reason = options_.trust ? std::string() : distrust(folder_);
  if (!reason.empty())
    throw EnvironmentError("kernel cache", fmt::format("{} is not used: {}", folder_.string(), reason),
                           "give it to yourself or root with mode 0700 or 0755, or set KILN_CACHE_TRUST_SHARED=1");
}

void CacheLayer::fail(const std::filesystem::path& path, const char* what) const {
  throw EnvironmentError("kernel cache", fmt::format("{}: {}", path.string(), what),
                         "free space or change permissions, or set KILN_CACHE_DIR to a folder that you may write");
}

void CacheLayer::make_folder(const std::filesystem::path& path) const {
  if (mkdir(path.c_str(), options_.shipped ? 0755 : 0700) != 0 && errno != EEXIST) fail(path, std::strerror(errno));
}

std::filesystem::path CacheLayer::entry_path(const std::string& key) const {
  return folder_ / fmt::format("v{}", cache_format) / key.substr(0, 2) / key;
}

bool CacheLayer::has(const CacheKey& key) const { return access((entry_path(key.hex) / meta_file).c_str(), F_OK) == 0; }

std::optional<CachedKernel> CacheLayer::find(const CacheKey& key,
                                             const std::function<void(const std::string& reason)>& corrupt) const {
  const std::filesystem::path path = entry_path(key.hex);
  const FileDescriptor entry(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!entry && (errno == ENOENT || errno == EACCES)) return std::nullopt;
  struct stat info {};
  if (entry) fstat(entry.get(), &info);
  try {
    if (!entry) throw CorruptEntry(std::strerror(errno));
    std::optional<std::string> meta = read_whole(entry.get(), meta_file, most_meta);
    if (!meta) throw CorruptEntry(fmt::format("{}: {}", meta_file, std::strerror(errno)));
    std::optional<std::string> object = read_whole(entry.get(), object_file, most_object);
    if (!object) throw CorruptEntry(fmt::format("{}: {}", object_file, std::strerror(errno)));
    CachedKernel kernel = read_entry(std::move(*meta), std::move(*object), &key);
    if (options_.writable) note_use(entry.get(), info);
    return kernel;
  } catch (const CorruptEntry& error) {
    if (entry && !same_folder(path, info)) return std::nullopt; // was removed or replaced while it was read
    if (options_.writable) quarantine(key.hex, error.what());
    corrupt(fmt::format("{}: {}", path.string(), error.what()));
    return std::nullopt;
  }
}

bool CacheLayer::publish(const std::string& key, const EntryFiles& files) const {
  const std::filesystem::path final_path = entry_path(key), staging = part("staging");
  make_folder(final_path.parent_path().parent_path());
  make_folder(final_path.parent_path());
  const std::filesystem::path beside = staging / staging_name();
  const unsigned mode = options_.shipped ? 0644 : 0600;
  const unsigned folder_mode = options_.shipped ? 0755 : 0700;
  make_folder(staging);
  // Another process that has finished may tidy the empty folder away in between.
  for (int i = 0; i < 100 && mkdir(beside.c_str(), folder_mode) != 0; ++i) {
    if (errno != ENOENT || i == 99) fail(beside, std::strerror(errno));
    make_folder(staging);
  }
  const FileDescriptor folder(open(beside.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool written = folder && write_durably(folder.get(), object_file, files.object, mode) &&
                       write_durably(folder.get(), source_file, files.source, mode) &&
                       write_durably(folder.get(), meta_file, files.meta, mode) && fsync(folder.get()) == 0;
  // Renaming onto a folder that has files in it fails: that is the test whether somebody was faster.
  const bool published = written && rename(beside.c_str(), final_path.c_str()) == 0;
  const int error = errno;
  if (published) {
    const FileDescriptor parent(open(final_path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent) fsync(parent.get());
    return true;
  }
  std::error_code ignored; // the first error is the one to report
  std::filesystem::remove_all(beside, ignored);
  if (written && (error == EEXIST || error == ENOTEMPTY)) return false;
  fail(beside, std::strerror(error));
}

EntryFiles CacheLayer::read(const EntryInfo& entry) const {
  EntryFiles files;
  for (const auto& [name, bytes] :
       {std::pair{meta_file, &files.meta}, {object_file, &files.object}, {source_file, &files.source}}) {
    std::optional<std::string> content = read_whole(AT_FDCWD, (entry.path / name).c_str(), most_object);
    if (!content) fail(entry.path / name, std::strerror(errno));
    *bytes = std::move(*content);
  }
  return files;
}

CachedKernel CacheLayer::verify(const EntryInfo& entry) const {
  EntryFiles files;
  try {
    files = read(entry);
  } catch (const EnvironmentError& error) {
    throw CorruptEntry(error.fact);
  }
  check_source(files.meta, files.source);
  CachedKernel kernel = read_entry(std::move(files.meta), std::move(files.object), nullptr);
  if (kernel.key.hex != entry.key) throw CorruptEntry(fmt::format("it is the entry {}", kernel.key.hex));
  return kernel;
}

} // namespace kiln
