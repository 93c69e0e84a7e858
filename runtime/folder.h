// Folder: a directory that is held open. Everything in it is reached from its descriptor, never through a link, and is only
// taken from those who are trusted.
#pragma once
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace kiln {

class FileDescriptor {
public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

private:
  int fd_;
};

// While one lives, a write of this thread beyond the limit of file sizes (ulimit -f) is an error of the write, EFBIG, and not a signal
// that ends a process which may be somebody else's program.
class FileSizeErrors {
public:
  FileSizeErrors();
  ~FileSizeErrors();
  FileSizeErrors(const FileSizeErrors&) = delete;
  FileSizeErrors& operator=(const FileSizeErrors&) = delete;

private:
  sigset_t signal_, before_;
  bool was_pending_ = false;
};

// Whose files and folders are taken.
enum class Trust : std::uint8_t {
  self,   // of this user or root, and nobody else may write to them
  sticky, // as self; others may also write to a folder that has the sticky bit, as /tmp (they cannot touch what is not theirs)
  anyone, // of whoever could write there: for looking only, or because the user said so
};

// Whether it belongs to this user or root, and nobody else may write to it.
bool is_own(const struct stat& info);

// A file or folder that is there, and is not taken. what(): its path and why ("belongs to user 1001, not to 0 or root").
struct Untrusted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Folder {
public:
  Folder() = default; // none
  // Opens what `path` names. A symbolic link is followed if its owner is trusted; folders above are not looked at. None, with
  // errno set, when it cannot be opened. Throws Untrusted.
  static Folder open(const std::filesystem::path& path, Trust trust);
  // As open, made with `mode` when it is not there, whatever the umask says, and so are the folders above it (with the umask).
  static Folder make(const std::filesystem::path& path, Trust trust, mode_t mode);

  explicit operator bool() const { return static_cast<bool>(descriptor_); }
  const std::filesystem::path& path() const { return path_; } // for messages: it may name another folder by now
  int descriptor() const { return descriptor_.get(); }
  struct stat info() const; // of the folder itself

  // `name` is one name, without a slash. No call follows a link.
  // These give none or false, with errno set (ENOTDIR or ELOOP: a link or a file instead of a folder), and throw Untrusted.
  Folder child(const std::string& name) const;
  Folder make_child(const std::string& name) const; // child, made with folder_mode() when it is not there
  // EFBIG: larger than `most` bytes; EINVAL: no regular file. `info`: of the very file that was read.
  std::optional<std::string> read(const std::string& name, std::uint64_t most, struct stat* info = nullptr) const;
  std::optional<struct stat> look(const std::string& name) const; // ENOENT: nothing there
  bool takes(const struct stat& info) const;                      // by owner and mode; what is read or opened is checked anyway
  // A new file with file_mode(), written and synced to the disk.
  bool write(const std::string& name, std::string_view bytes) const;
  bool move(const std::string& name, const Folder& to, const std::string& new_name) const;
  bool remove_file(const std::string& name) const;   // or a link
  bool remove_folder(const std::string& name) const; // an empty one
  bool sync() const;
  std::vector<std::string> names() const; // sorted; none when it cannot be read

  // Modes of what is made in it: as open as the folder itself, and no more. Its group gets what the folder gives it only with
  // the setgid bit, which makes new files the group's; without, they are of whatever group this process is in.
  mode_t folder_mode() const;
  mode_t file_mode() const; // nobody writes to a file again, so only its owner may

private:
  Folder(FileDescriptor descriptor, std::filesystem::path path, Trust trust);
  FileDescriptor descriptor_;
  std::filesystem::path path_;
  Trust trust_ = Trust::self;
  mode_t mode_ = 0;
};

} // namespace kiln
