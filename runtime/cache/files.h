// Files and folders of a cache: descriptors, whole reads, durable writes, and the question whom a folder belongs to.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

// A whole regular file of at most `most` bytes. Nothing, with errno set, when it cannot be had (EFBIG: larger; EINVAL: no
// regular file). `folder` is a descriptor or AT_FDCWD; links are not followed.
std::optional<std::string> read_whole(int folder, const char* name, std::uint64_t most);

// A new file, written and synced to the disk. False, with errno set, when any of it fails.
bool write_durably(int folder, const char* name, std::string_view bytes, unsigned mode);

// Why a folder is not to be trusted with code that will be run: it, or what it is a link to, belongs to another user than
// this one or root, or others may write to it. Empty: it is to be trusted.
std::string distrust(const std::filesystem::path& folder);

// This process, in a way that another one can tell whether it still lives: "HOST-PID-START", where HOST stands for one boot
// and one name space of process ids.
std::string process_mark();
// Certainly gone: of this boot and name space, and no process has its id and start any more. A mark of another host, or no mark,
// may live.
bool surely_gone(std::string_view mark);

} // namespace kiln
