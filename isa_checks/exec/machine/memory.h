// Memory: the sandbox that stands for device memory. Named allocations far apart, so that an access outside one is noticed.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::exec {

// Zeros that take memory of the host once they are written. A cache of 64 GB, of which a prediction reads some, takes little.
class ZeroedBytes {
public:
  ZeroedBytes() = default;
  explicit ZeroedBytes(std::size_t size); // throws std::bad_alloc
  ZeroedBytes(ZeroedBytes&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ZeroedBytes& operator=(ZeroedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ZeroedBytes();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::byte* begin() { return data_; }
  std::byte* end() { return data_ + size_; }
  const std::byte* begin() const { return data_; }
  const std::byte* end() const { return data_ + size_; }

private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

struct Allocation {
  std::string name;
  std::uint64_t address = 0; // device address of byte 0
  ZeroedBytes bytes;
  bool writable = true;
  std::uint64_t end() const { return address + bytes.size(); }
};

class Memory {
public:
  // Reserves `bytes` zeroed bytes (0 is allowed) and returns their device address, a multiple of 256. At least 1 MiB lies
  // between two allocations.
  std::uint64_t allocate(std::string name, std::size_t bytes, bool writable = true);

  // The host's view of an allocation, by the address that allocate() returned or by name. Throws isa::Error when there is none.
  std::span<std::byte> bytes(std::uint64_t address);
  std::span<std::byte> bytes(std::string_view name);

  // The allocation that an address lies in; null when none does.
  Allocation* find(std::uint64_t address);
  const Allocation* find(std::uint64_t address) const;
  // What an address is near to, for messages: "x + 128", "16 bytes past the end of x (4096 bytes)".
  std::string describe(std::uint64_t address) const;

  // Gives back every allocation made after the first `count`.
  void release_after(std::size_t count) { allocations_.resize(std::min(count, allocations_.size())); }

  const std::deque<Allocation>& allocations() const { return allocations_; }

private:
  std::deque<Allocation> allocations_; // by rising address; elements never move
  std::uint64_t next_ = 0x7e00'0000'0000ULL;
};

} // namespace kiln::exec
