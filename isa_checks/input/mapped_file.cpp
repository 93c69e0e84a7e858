// Mapping files on POSIX systems.
#include "isa_checks/input/mapped_file.h"
#include "isa_checks/error.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::isa {
namespace {

constexpr std::uint64_t page_bytes = 4096;

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

} // namespace

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; // a pipe must not be waited for
  if (file.number < 0)
    throw Error(path, std::string("it cannot be opened for reading: ") + std::strerror(errno), "check the path and its permissions");
  struct stat status{};
  if (fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode))
    throw Error(path, "it is no regular file", "give a file, or a folder of files");
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (at == MAP_FAILED) throw Error(path, std::string("it cannot be mapped: ") + std::strerror(errno), "check that it is on a file system");
  madvise(at, size, MADV_SEQUENTIAL); // advice only: nothing depends on it
  bytes_ = {static_cast<const std::uint8_t*>(at), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

void MappedFile::done_until(std::uint64_t end) {
  end &= ~(page_bytes - 1);
  if (end <= done_ || end > bytes_.size()) return;
  forget(bytes_.subspan(done_, end - done_));
  done_ = end;
}

void MappedFile::forget(std::span<const std::uint8_t> part) {
  const auto first = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t begin = (first + page_bytes - 1) & ~(page_bytes - 1), end = (first + part.size()) & ~(page_bytes - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED); // unmodified: read again if asked for
}

} // namespace kiln::isa
