// MappedFile: a file's bytes, mapped for reading, so that only what is looked at takes memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace kiln::isa {

// A file that another process shortens while it is read ends this one with SIGBUS, as with every program that maps files.
class MappedFile {
public:
  explicit MappedFile(const std::string& path); // throws Error when it is no regular file that can be read
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::uint8_t* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  // Tells the system that the bytes before `end` (an offset) will not be asked for again.
  void done_until(std::uint64_t end);
  // Gives back the memory of a part of the bytes, which are read again if asked for. By any thread.
  static void forget(std::span<const std::uint8_t> part);

private:
  std::span<const std::uint8_t> bytes_;
  std::uint64_t done_ = 0;
};

} // namespace kiln::isa
