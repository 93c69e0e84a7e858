// Finding .hip_fatbin in host ELF files.
#include "isa_checks/input/host_image.h"
#include "isa_checks/object/elf_file.h"
#include <algorithm>
#include <cstring>
#include <map>

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
  HostImage(std::span<const std::uint8_t> bytes, const std::string& name)
      : name_(name), file_(elf_file(bytes, name)), sections_(checked(file_.sections(), name)),
        names_(checked(file_.getSectionStringTable(sections_), name)) {}

  std::vector<FileRange> run() const {
    std::vector<FileRange> ranges;
    for (const Section& section : sections_)
      if (section.sh_type != elf::SHT_NOBITS && name_of(section) == ".hip_fatbin" && section.sh_size > 0) {
        static_cast<void>(contents(section)); // lies in the file
        ranges.push_back({section.sh_offset, section.sh_size});
      }
    return ranges.empty() ? follow_wrappers() : ranges;
  }

private:
  using Section = ElfFile::Elf_Shdr;

  llvm::StringRef name_of(const Section& section) const { return checked(file_.getSectionName(section, names_), name_); }
  llvm::ArrayRef<std::uint8_t> contents(const Section& section) const { return checked(file_.getSectionContents(section), name_); }

  std::vector<FileRange> follow_wrappers() const {
    std::vector<FileRange> ranges;
    for (const Section& section : sections_) {
      if (section.sh_type == elf::SHT_NOBITS || name_of(section) != ".hipFatBinSegment") continue;
      const auto bytes = contents(section);
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
    for (const Section& section : sections_)
      if (section.sh_type == elf::SHT_RELA)
        for (const ElfFile::Elf_Rela& entry : checked(file_.relas(section), name_))
          if (entry.getType(false) == elf::R_X86_64_RELATIVE || entry.getType(false) == elf::R_AARCH64_RELATIVE)
            result.emplace(entry.r_offset, static_cast<std::uint64_t>(entry.r_addend));
    return result;
  }

  // From `address` to the end of its section; the ranges of several wrappers may touch but not overlap.
  void add_section_of(std::uint64_t address, std::vector<FileRange>& ranges) const {
    for (const Section& section : sections_) {
      const bool inside = (section.sh_flags & elf::SHF_ALLOC) != 0 && section.sh_type != elf::SHT_NOBITS && address >= section.sh_addr &&
                          address - section.sh_addr < section.sh_size;
      if (!inside) continue;
      static_cast<void>(contents(section)); // lies in the file
      const std::uint64_t begin = section.sh_offset + (address - section.sh_addr), end = section.sh_offset + section.sh_size;
      const bool known = std::ranges::any_of(ranges, [&](const FileRange& r) { return begin >= r.offset && begin < r.offset + r.size; });
      if (!known) ranges.push_back({begin, end - begin});
      return;
    }
  }

  const std::string& name_;
  const ElfFile file_;
  const ElfFile::Elf_Shdr_Range sections_;
  const llvm::StringRef names_;
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
