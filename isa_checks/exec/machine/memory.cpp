// The sandbox of named allocations.
#include "isa_checks/exec/machine/memory.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace kiln::exec {
namespace {

constexpr std::uint64_t guard = 1U << 20, alignment = 256;

} // namespace

ZeroedBytes::ZeroedBytes(std::size_t size) : size_(size) {
  if (size == 0) return;
  void* const pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(pages);
}

ZeroedBytes::~ZeroedBytes() {
  if (data_ != nullptr) munmap(data_, size_);
}

std::uint64_t Memory::allocate(std::string name, std::size_t bytes, bool writable) {
  Allocation allocation{std::move(name), next_, ZeroedBytes(bytes), writable};
  next_ = (next_ + bytes + guard + alignment - 1) / alignment * alignment;
  allocations_.push_back(std::move(allocation));
  return allocations_.back().address;
}

const Allocation* Memory::find(std::uint64_t address) const {
  auto after = std::upper_bound(allocations_.begin(), allocations_.end(), address,
                                [](std::uint64_t a, const Allocation& x) { return a < x.address; });
  if (after == allocations_.begin()) return nullptr;
  const Allocation& candidate = *--after;
  return address < candidate.end() ? &candidate : nullptr;
}

Allocation* Memory::find(std::uint64_t address) { return const_cast<Allocation*>(std::as_const(*this).find(address)); }

std::span<std::byte> Memory::bytes(std::uint64_t address) {
  for (Allocation& a : allocations_)
    if (a.address == address) return a.bytes;
  throw isa::Error(fmt::format("address {:#x}", address), "no allocation starts there", "pass what allocate() returned");
}

std::span<std::byte> Memory::bytes(std::string_view name) {
  for (Allocation& a : allocations_)
    if (a.name == name) return a.bytes;
  throw isa::Error(fmt::format("allocation {}", name), "there is none of that name", "allocate() it first");
}

std::string Memory::describe(std::uint64_t address) const {
  if (const Allocation* inside = find(address)) return fmt::format("{} + {}", inside->name, address - inside->address);
  const Allocation* nearest = nullptr;
  std::uint64_t best = ~0ULL;
  for (const Allocation& a : allocations_) {
    const std::uint64_t distance = address < a.address ? a.address - address : address - a.end();
    if (distance < best) {
      best = distance;
      nearest = &a;
    }
  }
  if (nearest == nullptr || best > guard) return fmt::format("{:#x}, far from every allocation", address);
  return address < nearest->address ? fmt::format("{} bytes before the start of {} ({} bytes)", best, nearest->name, nearest->bytes.size())
                                    : fmt::format("{} bytes past the end of {} ({} bytes)", best, nearest->name, nearest->bytes.size());
}

} // namespace kiln::exec
