// Writing the files.
#include "tests/lint/files.h"
#include "isa_checks/cli/run.h"
#include "tests/isa/snippet.h"
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <llvm/BinaryFormat/ELF.h>
#include <sstream>
#include <zlib.h>
#include <zstd.h>

namespace kiln::isa::testing {
namespace {

constexpr std::uint64_t page = 4096;

void append(Bytes& to, const void* data, std::size_t size) {
  const auto* const bytes = static_cast<const std::uint8_t*>(data);
  to.insert(to.end(), bytes, bytes + size);
}
template <class T> void append(Bytes& to, T value) { append(to, &value, sizeof value); }
void pad(Bytes& to, std::uint64_t unit) { to.resize((to.size() + unit - 1) / unit * unit); }

constexpr std::string_view default_body = R"(
  s_load_dwordx2 s[0:1], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
loop:
  global_load_dword v1, v0, s[0:1]
  s_waitcnt vmcnt(0)
  v_add_u32_e32 v0, v0, v1
  s_sub_u32 s2, s2, 1
  s_cmp_lg_u32 s2, 0
  s_cbranch_scc1 loop
)";

} // namespace

Bytes bundle(const std::vector<Entry>& entries) {
  Bytes result;
  append(result, "__CLANG_OFFLOAD_BUNDLE__", 24);
  append<std::uint64_t>(result, entries.size());
  std::uint64_t offset = 32;
  for (const Entry& e : entries) offset += 24 + e.id.size();
  for (const Entry& e : entries) {
    offset = (offset + page - 1) / page * page;
    append<std::uint64_t>(result, offset);
    append<std::uint64_t>(result, e.bytes.size());
    append<std::uint64_t>(result, e.id.size());
    append(result, e.id.data(), e.id.size());
    offset += e.bytes.size();
  }
  for (const Entry& e : entries) {
    pad(result, page);
    append(result, e.bytes.data(), e.bytes.size());
  }
  return result;
}

Bytes compressed(std::span<const std::uint8_t> content, int version, Compression method) {
  Bytes body(method == Compression::zlib ? compressBound(content.size()) : ZSTD_compressBound(content.size()));
  if (method == Compression::zlib) {
    uLongf size = body.size();
    if (compress(body.data(), &size, content.data(), content.size()) != Z_OK) std::abort();
    body.resize(size);
  } else {
    body.resize(ZSTD_compress(body.data(), body.size(), content.data(), content.size(), 3));
  }
  const std::size_t header = version == 1 ? 20 : version == 2 ? 24 : 32;
  Bytes result;
  append(result, "CCOB", 4);
  append(result, static_cast<std::uint16_t>(version));
  append(result, static_cast<std::uint16_t>(method));
  const auto number = [&](std::uint64_t value) {
    if (version == 3) append(result, value);
    else append(result, static_cast<std::uint32_t>(value));
  };
  if (version > 1) number(header + body.size());
  number(content.size());
  append<std::uint64_t>(result, 0x1234); // a hash that no reader checks
  append(result, body.data(), body.size());
  return result;
}

Bytes host_file(const std::vector<std::pair<std::string, Bytes>>& content, bool wrapper, bool relocated) {
  namespace elf = llvm::ELF;
  std::vector<std::pair<std::string, Bytes>> sections = content;
  constexpr std::uint64_t base = 0x400000; // address of the file's first byte
  Bytes file(sizeof(elf::Elf64_Ehdr));
  std::vector<elf::Elf64_Shdr> headers(1);
  std::string names(1, '\0');
  const auto add = [&](const std::string& name, const Bytes& bytes, std::uint32_t type) {
    pad(file, page);
    elf::Elf64_Shdr header{};
    header.sh_name = static_cast<std::uint32_t>(names.size());
    header.sh_type = type;
    header.sh_flags = elf::SHF_ALLOC;
    header.sh_offset = file.size();
    header.sh_addr = base + file.size();
    header.sh_size = bytes.size();
    headers.push_back(header);
    names += name + '\0';
    append(file, bytes.data(), bytes.size());
  };
  for (const auto& [name, bytes] : sections) add(name, bytes, elf::SHT_PROGBITS);
  if (wrapper) {
    const std::uint64_t target = headers[1].sh_addr;
    Bytes segment;
    append<std::uint32_t>(segment, 0x48495046);
    append<std::uint32_t>(segment, 1);
    append<std::uint64_t>(segment, relocated ? 0 : target);
    append<std::uint64_t>(segment, 0);
    add(".hipFatBinSegment", segment, elf::SHT_PROGBITS);
    if (relocated) {
      elf::Elf64_Rela entry{};
      entry.r_offset = headers.back().sh_addr + 8;
      entry.setType(elf::R_X86_64_RELATIVE);
      entry.r_addend = static_cast<std::int64_t>(target);
      Bytes table;
      append(table, entry);
      add(".rela.dyn", table, elf::SHT_RELA);
      headers.back().sh_entsize = sizeof entry;
    }
  }
  names += ".shstrtab" + std::string(1, '\0');
  Bytes table(names.begin(), names.end());
  add(".shstrtab", table, elf::SHT_STRTAB);
  headers.back().sh_name = static_cast<std::uint32_t>(table.size() - 10);
  pad(file, 8);
  elf::Elf64_Ehdr header{};
  std::memcpy(header.e_ident, elf::ElfMagic, 4);
  header.e_ident[elf::EI_CLASS] = elf::ELFCLASS64;
  header.e_ident[elf::EI_DATA] = elf::ELFDATA2LSB;
  header.e_type = elf::ET_DYN;
  header.e_machine = elf::EM_X86_64;
  header.e_shoff = file.size();
  header.e_shentsize = sizeof(elf::Elf64_Shdr);
  header.e_shnum = static_cast<std::uint16_t>(headers.size());
  header.e_shstrndx = static_cast<std::uint16_t>(headers.size() - 1);
  std::memcpy(file.data(), &header, sizeof header);
  for (const elf::Elf64_Shdr& section : headers) append(file, section);
  return file;
}

Bytes in_a_row(const std::vector<Bytes>& parts) {
  Bytes result;
  for (const Bytes& part : parts) {
    pad(result, page);
    append(result, part.data(), part.size());
  }
  return result;
}

std::string plain_text(std::string_view arch, std::string_view name, std::string_view body) {
  return kernel_text(body.empty() ? default_body : body, arch,
                     {.name = std::string(name), .descriptor = ".amdhsa_user_sgpr_kernarg_segment_ptr 1"});
}

Bytes plain_object(std::string_view arch, std::string_view name, std::string_view body) {
  return assemble(plain_text(arch, name, body), target_facts(arch));
}

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "isa-lint-test-XXXXXX").string();
  path = mkdtemp(pattern.data());
}
Folder::~Folder() { std::filesystem::remove_all(path); }

std::string Folder::write(const std::string& name, std::string_view content) const {
  const std::filesystem::path file = path / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
  return file.string();
}
std::string Folder::write(const std::string& name, const Bytes& content) const {
  return write(name, std::string_view(reinterpret_cast<const char*>(content.data()), content.size()));
}

void Folder::write_to(const std::filesystem::path& folder, const std::string& name, const Bytes& content) {
  std::ofstream(folder / name, std::ios::binary)
      .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Result isa_lint(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Result result;
  result.exit_code = cli::run(arguments, out, err);
  result.out = out.str();
  result.err = err.str();
  return result;
}

} // namespace kiln::isa::testing
