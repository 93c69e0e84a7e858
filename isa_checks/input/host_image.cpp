// Finding .hip_fatbin in host ELF files.
#include "isa_checks/input/host_image.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <llvm/BinaryFormat/ELF.h>
#include <map>
#include <string_view>

namespace kiln::isa {
namespace {

namespace elf = llvm::ELF;

// What __hipRegisterFatBinary takes (clang's CGCUDANV.cpp): magic, version, the bundle's address, unused.
struct Wrapper {
  std::uint32_t magic, version;
  std::uint64_t bundle, unused;
};
constexpr std::uint32_t wrapper_magic = 0x48495046; // "HIPF"

class HostImage {
public:
  HostImage(std::span<const std::uint8_t> file, const std::string& name) : file_(file), name_(name) {
    std::memcpy(&header_, file.data(), sizeof header_);
    if (header_.e_shoff == 0 || header_.e_shnum == 0) return;
    if (header_.e_shentsize != sizeof(elf::Elf64_Shdr)) fail("its section headers have an unknown size");
    const auto table = slice(header_.e_shoff, std::uint64_t{header_.e_shnum} * sizeof(elf::Elf64_Shdr), "section header table");
    sections_.resize(header_.e_shnum);
    std::memcpy(sections_.data(), table.data(), table.size());
    if (header_.e_shstrndx >= sections_.size()) fail("its section name table is missing");
    const elf::Elf64_Shdr& names = sections_[header_.e_shstrndx];
    names_ = slice(names.sh_offset, names.sh_size, "section name table");
  }

  std::vector<FileRange> run() const {
    std::vector<FileRange> ranges;
    for (const elf::Elf64_Shdr& section : sections_)
      if (section.sh_type != elf::SHT_NOBITS && name_of(section) == ".hip_fatbin" && section.sh_size > 0) {
        slice(section.sh_offset, section.sh_size, "section .hip_fatbin");
        ranges.push_back({section.sh_offset, section.sh_size});
      }
    return ranges.empty() ? follow_wrappers() : ranges;
  }

private:
  [[noreturn]] void fail(std::string fact) const { throw Error(name_, std::move(fact), "rebuild it, or check that it was copied whole"); }

  std::span<const std::uint8_t> slice(std::uint64_t offset, std::uint64_t size, std::string_view what) const {
    if (offset > file_.size() || size > file_.size() - offset)
      fail(fmt::format("its {} of {} bytes at byte {} lies outside of its {} bytes", what, size, offset, file_.size()));
    return file_.subspan(offset, size);
  }

  std::string_view name_of(const elf::Elf64_Shdr& section) const {
    if (section.sh_name >= names_.size()) return {};
    const char* const begin = reinterpret_cast<const char*>(names_.data()) + section.sh_name;
    return {begin, strnlen(begin, names_.size() - section.sh_name)};
  }

  std::vector<FileRange> follow_wrappers() const {
    std::vector<FileRange> ranges;
    for (const elf::Elf64_Shdr& section : sections_) {
      if (section.sh_type == elf::SHT_NOBITS || name_of(section) != ".hipFatBinSegment") continue;
      const auto bytes = slice(section.sh_offset, section.sh_size, "section .hipFatBinSegment");
      const auto relocated = addends();
      for (std::size_t at = 0; at + sizeof(Wrapper) <= bytes.size(); at += sizeof(Wrapper)) {
        Wrapper wrapper;
        std::memcpy(&wrapper, bytes.data() + at, sizeof wrapper);
        if (wrapper.magic != wrapper_magic) continue;
        const auto moved = relocated.find(section.sh_addr + at + offsetof(Wrapper, bundle));
        add_section_of(moved == relocated.end() ? wrapper.bundle : moved->second, ranges);
      }
    }
    return ranges;
  }

  // In position-independent files the pointers are what a relative relocation adds: place -> address.
  std::map<std::uint64_t, std::uint64_t> addends() const {
    std::map<std::uint64_t, std::uint64_t> result;
    for (const elf::Elf64_Shdr& section : sections_) {
      if (section.sh_type != elf::SHT_RELA) continue;
      const auto bytes = slice(section.sh_offset, section.sh_size, "relocation section");
      for (std::size_t at = 0; at + sizeof(elf::Elf64_Rela) <= bytes.size(); at += sizeof(elf::Elf64_Rela)) {
        elf::Elf64_Rela entry;
        std::memcpy(&entry, bytes.data() + at, sizeof entry);
        if (entry.getType() == elf::R_X86_64_RELATIVE || entry.getType() == elf::R_AARCH64_RELATIVE)
          result.emplace(entry.r_offset, static_cast<std::uint64_t>(entry.r_addend));
      }
    }
    return result;
  }

  // From `address` to the end of its section; the ranges of several wrappers may touch but not overlap.
  void add_section_of(std::uint64_t address, std::vector<FileRange>& ranges) const {
    for (const elf::Elf64_Shdr& section : sections_) {
      const bool inside = (section.sh_flags & elf::SHF_ALLOC) != 0 && section.sh_type != elf::SHT_NOBITS && address >= section.sh_addr &&
                          address - section.sh_addr < section.sh_size;
      if (!inside) continue;
      slice(section.sh_offset, section.sh_size, "section that .hipFatBinSegment points into");
      const std::uint64_t begin = section.sh_offset + (address - section.sh_addr), end = section.sh_offset + section.sh_size;
      const bool known = std::ranges::any_of(ranges, [&](const FileRange& r) { return begin >= r.offset && begin < r.offset + r.size; });
      if (!known) ranges.push_back({begin, end - begin});
      return;
    }
  }

  std::span<const std::uint8_t> file_;
  const std::string& name_;
  elf::Elf64_Ehdr header_{};
  std::vector<elf::Elf64_Shdr> sections_;
  std::span<const std::uint8_t> names_;
};

} // namespace

bool is_host_elf(std::span<const std::uint8_t> file) {
  elf::Elf64_Ehdr header;
  if (file.size() < sizeof header) return false;
  std::memcpy(&header, file.data(), sizeof header);
  return std::memcmp(header.e_ident, elf::ElfMagic, 4) == 0 && header.e_ident[elf::EI_CLASS] == elf::ELFCLASS64 &&
         header.e_ident[elf::EI_DATA] == elf::ELFDATA2LSB && header.e_machine != elf::EM_AMDGPU;
}

std::vector<FileRange> find_device_code(std::span<const std::uint8_t> file, const std::string& name) { return HostImage(file, name).run(); }

} // namespace kiln::isa
