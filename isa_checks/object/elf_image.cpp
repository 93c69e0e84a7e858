// Parsing an AMDGPU ELF file. Offsets and sizes are compared by subtraction, so that no sum can wrap.
#include "isa_checks/object/elf_image.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <llvm/BinaryFormat/ELF.h>
#include <set>

namespace kiln::isa {
namespace {

namespace elf = llvm::ELF;

class Parser {
public:
  Parser(SharedBytes bytes, const std::string& name) : name_(name), file_(*bytes) { image_.bytes = std::move(bytes); }

  ElfImage run() {
    read_header();
    read_sections();
    read_symbols(elf::SHT_SYMTAB);
    read_symbols(elf::SHT_DYNSYM);
    return std::move(image_);
  }

private:
  [[noreturn]] void fail(std::string fact, std::string remedy = "rebuild it, or check that it was copied whole") const {
    throw Error(name_, std::move(fact), std::move(remedy));
  }

  std::span<const std::uint8_t> slice(std::uint64_t offset, std::uint64_t size, std::string_view what) const {
    if (offset > file_.size() || size > file_.size() - offset)
      fail(fmt::format("{} at offset {} with {} bytes ends after the file's {} bytes", what, offset, size, file_.size()));
    return file_.subspan(offset, size);
  }

  // The host is little-endian like the file (as every host of these GPUs is).
  template <class T> T record(std::uint64_t offset, std::string_view what) const {
    T value;
    std::memcpy(&value, slice(offset, sizeof(T), what).data(), sizeof(T));
    return value;
  }

  static std::string_view text_at(std::span<const std::uint8_t> table, std::uint64_t offset) {
    if (offset >= table.size()) return {};
    const char* begin = reinterpret_cast<const char*>(table.data()) + offset;
    return {begin, ::strnlen(begin, table.size() - offset)};
  }

  void read_header() {
    if (file_.size() < 4 || std::memcmp(file_.data(), elf::ElfMagic, 4) != 0)
      fail("it does not begin with the ELF magic bytes", "give a code object (.co, .hsaco, .o)");
    header_ = record<elf::Elf64_Ehdr>(0, "the ELF header");
    if (header_.e_ident[elf::EI_CLASS] != elf::ELFCLASS64)
      fail(fmt::format("its ELF class is {}, AMDGPU code objects are 64-bit (class 2)", header_.e_ident[elf::EI_CLASS]),
           "give a code object for AMDGPU");
    if (header_.e_ident[elf::EI_DATA] != elf::ELFDATA2LSB)
      fail(fmt::format("its byte order is {}, AMDGPU code objects are little-endian (1)", header_.e_ident[elf::EI_DATA]),
           "give a code object for AMDGPU");
    if (header_.e_machine != elf::EM_AMDGPU)
      fail(fmt::format("its ELF machine is {}, AMDGPU is {}", header_.e_machine, static_cast<int>(elf::EM_AMDGPU)),
           "give a code object for AMDGPU; of a host program, extract the device code first");
    if (header_.e_type != elf::ET_REL && header_.e_type != elf::ET_DYN && header_.e_type != elf::ET_EXEC)
      fail(fmt::format("its ELF type is {}, expected a relocatable (1), executable (2) or shared object (3)", header_.e_type));
    image_.relocatable = header_.e_type == elf::ET_REL;
    image_.os_abi = header_.e_ident[elf::EI_OSABI];
    image_.abi_version = header_.e_ident[elf::EI_ABIVERSION];
    image_.flags = header_.e_flags;
  }

  void read_sections() {
    if (header_.e_shoff == 0 || header_.e_shnum == 0) fail("it has no section headers", "keep them: strip only debug sections");
    if (header_.e_shentsize != sizeof(elf::Elf64_Shdr))
      fail(fmt::format("its section headers have {} bytes each, expected {}", header_.e_shentsize, sizeof(elf::Elf64_Shdr)));
    slice(header_.e_shoff, std::uint64_t{header_.e_shnum} * sizeof(elf::Elf64_Shdr), "the section header table");
    std::vector<std::uint32_t> names;
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
      const auto raw = record<elf::Elf64_Shdr>(header_.e_shoff + i * sizeof(elf::Elf64_Shdr), "a section header");
      ElfSection section{.name = {},
                         .type = raw.sh_type,
                         .flags = raw.sh_flags,
                         .address = raw.sh_addr,
                         .size = raw.sh_size,
                         .link = raw.sh_link,
                         .bytes = {}};
      if (raw.sh_type != elf::SHT_NOBITS && raw.sh_type != elf::SHT_NULL)
        section.bytes = slice(raw.sh_offset, raw.sh_size, fmt::format("section {}", i));
      names.push_back(raw.sh_name);
      image_.sections.push_back(section);
    }
    if (header_.e_shstrndx >= image_.sections.size())
      fail(fmt::format("its section name table is section {} of {}", header_.e_shstrndx, image_.sections.size()));
    for (unsigned i = 0; i < names.size(); ++i) image_.sections[i].name = text_at(image_.sections[header_.e_shstrndx].bytes, names[i]);
  }

  // The ELF specification allows one table of each kind. More could name the same bytes over and over.
  void read_symbols(std::uint32_t type) {
    const auto count = std::ranges::count(image_.sections, type, &ElfSection::type);
    if (count > 1) fail(fmt::format("it has {} symbol tables of type {}, at most 1 is allowed", count, type));
    for (unsigned index = 0; index < image_.sections.size(); ++index) {
      const ElfSection& table = image_.sections[index];
      if (table.type != type) continue;
      if (table.link >= image_.sections.size())
        fail(fmt::format("symbol table {} names string section {} of {}", index, table.link, image_.sections.size()));
      if (table.bytes.size() % sizeof(elf::Elf64_Sym) != 0)
        fail(fmt::format("symbol table {} has {} bytes, not a multiple of {}", index, table.bytes.size(), sizeof(elf::Elf64_Sym)));
      const auto strings = image_.sections[table.link].bytes;
      for (std::size_t at = 0; at < table.bytes.size(); at += sizeof(elf::Elf64_Sym)) {
        elf::Elf64_Sym raw;
        std::memcpy(&raw, table.bytes.data() + at, sizeof raw);
        add_symbol(raw, text_at(strings, raw.st_name), type == elf::SHT_DYNSYM);
      }
    }
  }

  void add_symbol(const elf::Elf64_Sym& raw, std::string_view name, bool dynamic) {
    if (name.empty()) return;
    const bool local = raw.getBinding() == elf::STB_LOCAL;
    if (!local && !globals_.insert(name).second && dynamic) return;
    image_.symbols.push_back({.name = name,
                              .value = raw.st_value,
                              .size = raw.st_size,
                              .type = raw.getType(),
                              .bind = raw.getBinding(),
                              .section = raw.st_shndx});
  }

  const std::string& name_;
  std::span<const std::uint8_t> file_;
  elf::Elf64_Ehdr header_{};
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
