// What LLVM's reader gives of an AMDGPU ELF file.
#include "isa_checks/object/elf_image.h"
#include "isa_checks/object/elf_file.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <set>

namespace kiln::isa {
namespace {

namespace elf = llvm::ELF;

class Parser {
public:
  Parser(SharedBytes bytes, const std::string& name) : name_(name) {
    const std::span<const std::uint8_t> file = *bytes;
    if (file.size() < 4 || std::memcmp(file.data(), elf::ElfMagic, 4) != 0)
      fail("it does not begin with the ELF magic bytes", "give a code object (.co, .hsaco, .o)");
    image_.bytes = std::move(bytes);
  }

  ElfImage run() {
    const ElfFile file = elf_file(*image_.bytes, name_);
    read_header(file.getHeader());
    read_sections(file);
    read_symbols(file, elf::SHT_SYMTAB);
    read_symbols(file, elf::SHT_DYNSYM);
    return std::move(image_);
  }

private:
  [[noreturn]] void fail(std::string fact, std::string remedy = "rebuild it, or check that it was copied whole") const {
    throw Error(name_, std::move(fact), std::move(remedy));
  }

  void read_header(const ElfFile::Elf_Ehdr& header) {
    if (header.e_ident[elf::EI_CLASS] != elf::ELFCLASS64)
      fail(fmt::format("its ELF class is {}, AMDGPU code objects are 64-bit (class 2)", header.e_ident[elf::EI_CLASS]),
           "give a code object for AMDGPU");
    if (header.e_ident[elf::EI_DATA] != elf::ELFDATA2LSB)
      fail(fmt::format("its byte order is {}, AMDGPU code objects are little-endian (1)", header.e_ident[elf::EI_DATA]),
           "give a code object for AMDGPU");
    if (header.e_machine != elf::EM_AMDGPU)
      fail(fmt::format("its ELF machine is {}, AMDGPU is {}", header.e_machine.value(), static_cast<int>(elf::EM_AMDGPU)),
           "give a code object for AMDGPU; of a host program, extract the device code first");
    if (header.e_type != elf::ET_REL && header.e_type != elf::ET_DYN && header.e_type != elf::ET_EXEC)
      fail(fmt::format("its ELF type is {}, expected a relocatable (1), executable (2) or shared object (3)", header.e_type.value()));
    image_.relocatable = header.e_type == elf::ET_REL;
    image_.os_abi = header.e_ident[elf::EI_OSABI];
    image_.flags = header.e_flags;
  }

  void read_sections(const ElfFile& file) {
    const auto sections = checked(file.sections(), name_);
    if (sections.empty()) fail("it has no section headers", "keep them: strip only debug sections");
    const llvm::StringRef names = checked(file.getSectionStringTable(sections), name_);
    for (const ElfFile::Elf_Shdr& raw : sections) {
      ElfSection section{.name = checked(file.getSectionName(raw, names), name_),
                         .type = raw.sh_type,
                         .flags = raw.sh_flags,
                         .address = raw.sh_addr,
                         .size = raw.sh_size,
                         .bytes = {}};
      if (raw.sh_type != elf::SHT_NOBITS && raw.sh_type != elf::SHT_NULL) section.bytes = checked(file.getSectionContents(raw), name_);
      image_.sections.push_back(section);
    }
  }

  // The ELF specification allows one table of each kind. More could name the same bytes over and over.
  void read_symbols(const ElfFile& file, std::uint32_t type) {
    const auto count = std::ranges::count(image_.sections, type, &ElfSection::type);
    if (count > 1) fail(fmt::format("it has {} symbol tables of type {}, at most 1 is allowed", count, type));
    const auto sections = checked(file.sections(), name_);
    for (const ElfFile::Elf_Shdr& table : sections) {
      if (table.sh_type != type) continue;
      const llvm::StringRef strings = checked(file.getStringTableForSymtab(table, sections), name_);
      for (const ElfFile::Elf_Sym& raw : checked(file.symbols(&table), name_))
        add_symbol(raw, checked(raw.getName(strings), name_), type == elf::SHT_DYNSYM);
    }
  }

  void add_symbol(const ElfFile::Elf_Sym& raw, std::string_view name, bool dynamic) {
    if (name.empty()) return;
    const bool local = raw.getBinding() == elf::STB_LOCAL;
    if (!local && !globals_.insert(name).second && dynamic) return;
    image_.symbols.push_back({.name = name, .value = raw.st_value, .size = raw.st_size, .type = raw.getType(), .section = raw.st_shndx});
  }

  const std::string& name_;
  ElfImage image_;
  std::set<std::string_view> globals_;
};

} // namespace

std::span<const std::uint8_t> ElfImage::at(std::uint16_t section, std::uint64_t value, std::uint64_t size) const {
  if (section >= sections.size()) return {};
  const ElfSection& home = sections[section];
  if (value < home.address || value - home.address > home.bytes.size() || size > home.bytes.size() - (value - home.address)) return {};
  return home.bytes.subspan(value - home.address, size);
}

ElfImage parse_elf(SharedBytes bytes, const std::string& name) { return Parser(std::move(bytes), name).run(); }

} // namespace kiln::isa
