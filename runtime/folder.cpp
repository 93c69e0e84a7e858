// Folder: openat and its kin, and the question whom a file belongs to.
#include "runtime/folder.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

namespace kiln {
namespace {

constexpr int open_folder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool is_trusted(uid_t owner) { return owner == geteuid() || owner == 0; }

// Why it is not to be taken; empty: it is.
std::string distrust(const struct stat& info, Trust trust) {
  if (trust == Trust::anyone) return {};
  if (!is_trusted(info.st_uid)) return fmt::format("belongs to user {}, not to {} or root", info.st_uid, geteuid());
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  if (trust == Trust::sticky && S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0) return {};
  return fmt::format("others may write to it (mode {:04o})", info.st_mode & 07777u);
}

void check(const struct stat& info, const std::filesystem::path& path, Trust trust) {
  if (const std::string reason = distrust(info, trust); !reason.empty()) throw Untrusted(fmt::format("{}: {}", path.string(), reason));
}

// The folder that `path` names, through links of trusted owners. Each link is opened itself and asked for its owner and its
// target, so that nobody can exchange it between the question and the use.
FileDescriptor follow(int from, const std::filesystem::path& path, const std::filesystem::path& shown, Trust trust, int depth) {
  FileDescriptor folder(openat(from, path.c_str(), open_folder));
  if (folder || (errno != ENOTDIR && errno != ELOOP)) return folder;
  const FileDescriptor link(openat(from, path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!link || fstat(link.get(), &info) != 0) return FileDescriptor();
  if (!S_ISLNK(info.st_mode) || depth == 0) {
    errno = depth == 0 ? ELOOP : ENOTDIR;
    return FileDescriptor();
  }
  if (trust != Trust::anyone && !is_trusted(info.st_uid))
    throw Untrusted(fmt::format("{}: the link belongs to user {}, not to {} or root", shown.string(), info.st_uid, geteuid()));
  std::string target(4096, '\0');
  const ssize_t length = readlinkat(link.get(), "", target.data(), target.size());
  if (length <= 0) return FileDescriptor();
  target.resize(static_cast<std::size_t>(length));
  const std::filesystem::path above = path.parent_path();
  const FileDescriptor parent(openat(from, above.empty() ? "." : above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return parent ? follow(parent.get(), target, shown, trust, depth - 1) : FileDescriptor();
}

// A slash at the end would follow a link behind our back.
std::filesystem::path without_slash(std::filesystem::path path) {
  while (!path.has_filename() && path.has_relative_path()) path = path.parent_path();
  return path;
}

} // namespace

bool is_own(const struct stat& info) { return distrust(info, Trust::self).empty(); }

FileSizeErrors::FileSizeErrors() {
  sigset_t pending;
  sigemptyset(&signal_);
  sigaddset(&signal_, SIGXFSZ);
  was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
  pthread_sigmask(SIG_BLOCK, &signal_, &before_);
}

FileSizeErrors::~FileSizeErrors() {
  const int error = errno;
  constexpr timespec now{};
  if (!was_pending_) sigtimedwait(&signal_, nullptr, &now); // that of our own write, if there was one
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Folder::Folder(FileDescriptor descriptor, std::filesystem::path path, Trust trust)
    : descriptor_(std::move(descriptor)), path_(std::move(path)), trust_(trust) {
  if (!descriptor_) return;
  const struct stat now = info();
  mode_ = now.st_mode;
  check(now, path_, trust_);
}

Folder Folder::open(const std::filesystem::path& path, Trust trust) {
  const std::filesystem::path plain = without_slash(path);
  return Folder(follow(AT_FDCWD, plain, plain, trust, 8), plain, trust);
}

Folder Folder::make(const std::filesystem::path& path, Trust trust, mode_t mode) {
  const std::filesystem::path plain = without_slash(path);
  if (Folder there = open(plain, trust); there || errno != ENOENT) return there;
  std::error_code error;
  if (plain.has_parent_path()) std::filesystem::create_directories(plain.parent_path(), error);
  const bool made = mkdir(plain.c_str(), mode & 0700) == 0;
  if (!made && errno != EEXIST) return {};
  Folder folder = open(plain, trust);
  if (!made || !folder || (folder.mode_ & 07777) == mode) return folder;
  if (fchmod(folder.descriptor(), mode) == 0) folder.mode_ = S_IFDIR | mode;
  return folder;
}

struct stat Folder::info() const {
  struct stat info{};
  fstat(descriptor_.get(), &info);
  return info;
}

mode_t Folder::folder_mode() const {
  const mode_t others = mode_ & 05;
  if ((mode_ & S_ISGID) != 0) return S_ISGID | S_IRWXU | (mode_ & S_IRWXG) | others;
  return S_IRWXU | others << 3 | others;
}

mode_t Folder::file_mode() const { return folder_mode() & 0644; }

Folder Folder::child(const std::string& name) const {
  return Folder(FileDescriptor(openat(descriptor_.get(), name.c_str(), open_folder)), path_ / name, trust_);
}

Folder Folder::make_child(const std::string& name) const {
  for (int tries = 0;; ++tries) {
    if (mkdirat(descriptor_.get(), name.c_str(), S_IRWXU) == 0) {
      Folder made = child(name);
      if (!made || (made.mode_ & 07777) == folder_mode()) return made;
      if (fchmod(made.descriptor(), folder_mode()) == 0) made.mode_ = S_IFDIR | folder_mode();
      return made;
    }
    if (errno != EEXIST) return {};
    Folder there = child(name);
    // Another user of a shared folder has made it and not yet opened it to the group; or it was tidied away again.
    if (there || (errno != EACCES && errno != ENOENT) || tries == 50) return there;
    usleep(1000);
  }
}

std::optional<std::string> Folder::read(const std::string& name, std::uint64_t most, struct stat* told) const {
  // Not blocking: what lies there may be a pipe that nobody writes to.
  const FileDescriptor file(openat(descriptor_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (!file || fstat(file.get(), &info) != 0) return std::nullopt;
  if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) > most) {
    errno = S_ISREG(info.st_mode) ? EFBIG : EINVAL;
    return std::nullopt;
  }
  check(info, path_ / name, trust_);
  if (told != nullptr) *told = info;
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break; // truncated meanwhile: the checksum will tell
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

std::optional<struct stat> Folder::look(const std::string& name) const {
  struct stat info{};
  if (fstatat(descriptor_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return info;
}

bool Folder::takes(const struct stat& info) const { return distrust(info, trust_).empty(); }

bool Folder::write(const std::string& name, std::string_view bytes) const {
  const FileDescriptor file(openat(descriptor_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return false;
  const FileSizeErrors no_signal;
  while (!bytes.empty()) {
    const ssize_t put = ::write(file.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return (file_mode() == 0600 || fchmod(file.get(), file_mode()) == 0) && fsync(file.get()) == 0;
}

bool Folder::move(const std::string& name, const Folder& to, const std::string& new_name) const {
  return renameat(descriptor_.get(), name.c_str(), to.descriptor_.get(), new_name.c_str()) == 0;
}

bool Folder::remove_file(const std::string& name) const { return unlinkat(descriptor_.get(), name.c_str(), 0) == 0; }
bool Folder::remove_folder(const std::string& name) const { return unlinkat(descriptor_.get(), name.c_str(), AT_REMOVEDIR) == 0; }
bool Folder::sync() const { return fsync(descriptor_.get()) == 0; }

std::vector<std::string> Folder::names() const {
  std::vector<std::string> names;
  // A descriptor of its own: the position in the list belongs to the descriptor.
  const int copy = openat(descriptor_.get(), ".", open_folder);
  if (copy < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(copy), closedir);
  if (!list) {
    close(copy);
    return names;
  }
  while (const dirent* entry = readdir(list.get()))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

} // namespace kiln
