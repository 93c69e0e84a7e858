// ElfImage: the sections, symbols and flags of one 64-bit little-endian ELF file, every bound checked.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::isa {

using Bytes = std::vector<std::uint8_t>;

// Bytes that live as long as a copy of this: a vector's, or those of a mapped file, of which only what is looked at takes memory.
class SharedBytes {
public:
  SharedBytes() = default;
  SharedBytes(Bytes bytes) : SharedBytes(std::make_shared<const Bytes>(std::move(bytes))) {}
  template <class Owner>
  explicit SharedBytes(std::shared_ptr<Owner> owner) : view_(owner->data(), owner->size()), owner_(std::move(owner)) {}
  const std::span<const std::uint8_t>& operator*() const { return view_; }
  const std::span<const std::uint8_t>* operator->() const { return &view_; }

private:
  std::span<const std::uint8_t> view_;
  std::shared_ptr<const void> owner_;
};

// Views into the file's bytes: valid while the ElfImage (or a copy of it) lives.
struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;              // SHT_*
  std::uint64_t flags = 0;             // SHF_*
  std::uint64_t address = 0;           // 0 in a relocatable object
  std::uint64_t size = 0;              // bytes in memory
  std::span<const std::uint8_t> bytes; // empty for SHT_NOBITS
};

struct ElfSymbol {
  std::string_view name;
  std::uint64_t value = 0; // an address; in a relocatable object an offset into its section
  std::uint64_t size = 0;
  std::uint8_t type = 0; // STT_*
  std::uint16_t section = 0;
};

struct ElfImage {
  SharedBytes bytes;
  bool relocatable = false; // ET_REL; otherwise ET_DYN or ET_EXEC
  std::uint8_t os_abi = 0;
  std::uint32_t flags = 0; // e_flags
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols; // of .symtab, then those of .dynsym that .symtab lacks; unnamed ones left out

  // `size` bytes at a symbol's value in its section; empty when they are not wholly inside it.
  std::span<const std::uint8_t> at(std::uint16_t section, std::uint64_t value, std::uint64_t size) const;
};

// Throws Error for anything but a well-formed AMDGPU ELF. `name` is the subject of errors.
ElfImage parse_elf(SharedBytes bytes, const std::string& name);

} // namespace kiln::isa
