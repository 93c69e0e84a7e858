// A linker for one object with kernels.
#include "tests/isa/linked.h"
#include <cstring>
#include <string>

namespace kiln::isa::testing {
namespace {

constexpr std::uint64_t section_stride = 0x1000, symbol_bytes = 24, header_bytes = 64;
constexpr std::uint32_t symtab = 2, allocated = 2;

template <class T> void put(Bytes& bytes, std::uint64_t at, T value) { std::memcpy(bytes.data() + at, &value, sizeof value); }
template <class T> T get(const Bytes& bytes, std::uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

} // namespace

Bytes link(Bytes bytes) {
  const ElfImage image = parse_elf(bytes, "object");
  const auto offset_of = [&](const ElfSection& section) { return static_cast<std::uint64_t>(section.bytes.data() - image.bytes->data()); };
  const auto headers = get<std::uint64_t>(bytes, 40); // e_shoff
  put<std::uint16_t>(bytes, 16, 3);                   // e_type: shared object
  const auto address_of = [&](std::size_t section) { return (section + 1) * section_stride; };
  for (std::size_t s = 0; s < image.sections.size(); ++s)
    if (image.sections[s].flags & allocated) put<std::uint64_t>(bytes, headers + s * header_bytes + 16, address_of(s)); // sh_addr
  for (const ElfSection& table : image.sections)
    if (table.type == symtab)
      for (std::uint64_t at = offset_of(table); at < offset_of(table) + table.bytes.size(); at += symbol_bytes) {
        const auto section = get<std::uint16_t>(bytes, at + 6);
        if (section != 0 && section < image.sections.size() && (image.sections[section].flags & allocated))
          put<std::uint64_t>(bytes, at + 8, get<std::uint64_t>(bytes, at + 8) + address_of(section)); // st_value
      }
  for (const ElfSymbol& descriptor : image.symbols)
    for (const ElfSymbol& code : image.symbols)
      if (descriptor.name == std::string(code.name) + ".kd") {
        const std::uint64_t entry = address_of(code.section) + code.value;
        const std::uint64_t from = address_of(descriptor.section) + descriptor.value;
        put<std::uint64_t>(bytes, offset_of(image.sections[descriptor.section]) + descriptor.value + 16, entry - from);
      }
  return bytes;
}

} // namespace kiln::isa::testing
