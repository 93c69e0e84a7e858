// Readers of untrusted bytes take a bounded multiple of the input: each case is an input that took gigabytes before.
#include "isa_checks/cli/policy.h"
#include "isa_checks/error.h"
#include "isa_checks/input/inputs.h"
#include "isa_checks/object/code_object.h"
#include "isa_checks/object/yaml.h"
#include "tests/isa/linked.h"
#include "tests/lint/files.h"
#include <cstdio>
#include <cstring>
#include <doctest/doctest.h>
#include <functional>
#include <llvm/BinaryFormat/ELF.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

constexpr std::size_t mib = 1 << 20;

// Runs `read` in a process of its own that may grow by `most` bytes. True when it ends by itself, with a result or an Error.
bool fits(std::size_t most, const std::function<void()>& read) {
#if defined(__SANITIZE_ADDRESS__) // which reserves terabytes
  (void)most;
  (void)read;
  return true;
#else
  const pid_t child = fork();
  if (child == 0) {
    unsigned long pages = 0;
    std::FILE* const statm = std::fopen("/proc/self/statm", "r");
    if (!statm || std::fscanf(statm, "%lu", &pages) != 1) _exit(3);
    const rlim_t limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + most;
    const rlimit both{limit, limit};
    if (setrlimit(RLIMIT_AS, &both) != 0) _exit(3);
    try {
      read();
    } catch (const Error&) {
    } catch (...) { // bad_alloc
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
#endif
}

void append(Bytes& to, std::string_view text) {
  for (const char c : text) to.push_back(static_cast<std::uint8_t>(c));
}

// A note of one kernel whose arguments are `count` empty maps.
Bytes empty_arguments(std::uint16_t count) {
  Bytes note{0x81};
  note.push_back(0xae);
  append(note, "amdhsa.kernels");
  note.insert(note.end(), {0x91, 0x82, 0xa5});
  append(note, ".name");
  note.push_back(0xa1);
  append(note, "k");
  note.push_back(0xa5);
  append(note, ".args");
  note.insert(note.end(), {0xdc, static_cast<std::uint8_t>(count >> 8), static_cast<std::uint8_t>(count)});
  note.insert(note.end(), count, 0x80);
  return note;
}

// A gfx942 object with further sections: a note, and symbol tables that all lie over the same bytes.
class Forged {
public:
  explicit Forged(Bytes object) : bytes_(std::move(object)) {
    std::memcpy(&header_, bytes_.data(), sizeof header_);
    sections_.resize(header_.e_shnum);
    std::memcpy(sections_.data(), bytes_.data() + header_.e_shoff, sections_.size() * sizeof sections_[0]);
  }
  std::size_t add(std::uint32_t type, const Bytes& content, std::uint32_t link = 0) {
    llvm::ELF::Elf64_Shdr s{};
    s.sh_type = type;
    s.sh_offset = bytes_.size();
    s.sh_size = content.size();
    s.sh_link = link;
    if (type == llvm::ELF::SHT_SYMTAB) s.sh_entsize = sizeof(llvm::ELF::Elf64_Sym);
    bytes_.insert(bytes_.end(), content.begin(), content.end());
    sections_.push_back(s);
    return sections_.size() - 1;
  }
  void repeat(std::size_t section, int times) { sections_.insert(sections_.end(), static_cast<std::size_t>(times), sections_[section]); }
  llvm::ELF::Elf64_Shdr& section(std::size_t i) { return sections_[i]; }
  std::size_t find(std::uint32_t type) const {
    for (std::size_t i = 0; i < sections_.size(); ++i)
      if (sections_[i].sh_type == type) return i;
    return 0;
  }
  const Bytes& bytes() const { return bytes_; }
  Bytes done() {
    header_.e_shoff = bytes_.size();
    header_.e_shnum = static_cast<std::uint16_t>(sections_.size());
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    const auto* const raw = reinterpret_cast<const std::uint8_t*>(sections_.data());
    bytes_.insert(bytes_.end(), raw, raw + sections_.size() * sizeof sections_[0]);
    return bytes_;
  }

private:
  Bytes bytes_;
  llvm::ELF::Elf64_Ehdr header_{};
  std::vector<llvm::ELF::Elf64_Shdr> sections_;
};

// Symbols like the object's k.kd, `count` of them, their names given by name(i).
Bytes symbols_like(Forged& object, std::size_t count, const std::function<std::uint32_t(std::size_t)>& name) {
  const auto table = object.section(object.find(llvm::ELF::SHT_SYMTAB));
  const auto strings = object.section(table.sh_link);
  Bytes result;
  for (std::uint64_t at = 0; at < table.sh_size; at += sizeof(llvm::ELF::Elf64_Sym)) {
    llvm::ELF::Elf64_Sym symbol;
    std::memcpy(&symbol, object.bytes().data() + table.sh_offset + at, sizeof symbol);
    const char* const text = reinterpret_cast<const char*>(object.bytes().data() + strings.sh_offset + symbol.st_name);
    if (std::strcmp(text, "k.kd") != 0) continue;
    for (std::size_t i = 0; i < count; ++i) {
      symbol.st_name = name(i);
      const auto* const raw = reinterpret_cast<const std::uint8_t*>(&symbol);
      result.insert(result.end(), raw, raw + sizeof symbol);
    }
  }
  return result;
}

void read_all(const Bytes& bytes) {
  InputVisitor visitor;
  visitor.object = [](const SharedBytes& object, const std::string& name) { load_code_object(object, name); };
  visitor.skipped = [](const std::string&) {};
  visitor.failed = [](const Error&) {};
  read_input(bytes, "input", {}, visitor);
}

} // namespace

TEST_CASE("metadata: arguments that are empty maps") {
  const Bytes note = empty_arguments(0xffff);
  CHECK(fits(2 * mib, [&] { parse_metadata(note, "note"); }));
}

TEST_CASE("ELF: symbol tables over the same bytes, all naming one kernel with many arguments") {
  Forged object(link(plain_object("gfx942")));
  Bytes note{7, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0};
  append(note, std::string_view("AMDGPU\0", 8));
  const Bytes metadata = empty_arguments(4000);
  const auto size = static_cast<std::uint32_t>(metadata.size());
  std::memcpy(&note[4], &size, sizeof size);
  note.insert(note.end(), metadata.begin(), metadata.end());
  const std::size_t table = object.find(llvm::ELF::SHT_SYMTAB);
  Bytes names;
  append(names, std::string_view("\0k.kd\0", 6));
  const std::size_t strings = object.add(llvm::ELF::SHT_STRTAB, names);
  const Bytes symbols = symbols_like(object, 100, [](std::size_t) { return 1U; });
  REQUIRE(symbols.size() == 100 * sizeof(llvm::ELF::Elf64_Sym));
  object.section(table).sh_type = llvm::ELF::SHT_PROGBITS;
  object.section(object.find(llvm::ELF::SHT_NOTE)).sh_type = llvm::ELF::SHT_PROGBITS;
  object.add(llvm::ELF::SHT_NOTE, note);
  object.repeat(object.add(llvm::ELF::SHT_SYMTAB, symbols, static_cast<std::uint32_t>(strings)), 60);
  const Bytes bytes = object.done();
  CHECK(bytes.size() < 20'000);
  CHECK(fits(16 * mib, [&] { load_code_object(bytes); }));
}

TEST_CASE("ELF: names of kernels that overlap in the string table") {
  Forged object(link(plain_object("gfx942")));
  constexpr std::size_t length = 200'000, count = 4000;
  Bytes names(length, 'a');
  append(names, std::string_view(".kd\0", 4));
  const std::size_t strings = object.add(llvm::ELF::SHT_STRTAB, names);
  const Bytes symbols = symbols_like(object, count, [](std::size_t i) { return static_cast<std::uint32_t>(i); });
  object.section(object.find(llvm::ELF::SHT_SYMTAB)).sh_type = llvm::ELF::SHT_PROGBITS;
  object.add(llvm::ELF::SHT_SYMTAB, symbols, static_cast<std::uint32_t>(strings));
  const Bytes bytes = object.done();
  CHECK_THROWS_AS(load_code_object(bytes), Error);
  CHECK(fits(32 * mib, [&] { load_code_object(bytes); }));
}

TEST_CASE("bundles: sizes that lie, and streams that grow without end") {
  const std::string id = "hipv4-amdgcn-amd-amdhsa--gfx942";
  Bytes lying = bundle({{id, Bytes(64, 1)}});
  const std::uint64_t claimed = 500 * mib;
  std::memcpy(&lying[40], &claimed, sizeof claimed); // the entry's size
  CHECK(fits(16 * mib, [&] { read_all(lying); }));
  const Bytes zeros = bundle({{id, Bytes(300 * mib, 0)}});
  for (const Compression method : {Compression::zlib, Compression::zstd}) {
    const Bytes small = compressed(zeros, 3, method);
    CHECK(fits(3 * 1024 * small.size() + 48 * mib, [&] { read_all(small); })); // three times: the buffer grows by doubling
  }
}

TEST_CASE("zstd: a window that the header asks for and nothing fills") {
  Bytes frame{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88}; // magic, no content size, a window of 128 MiB
  frame.insert(frame.end(), {0x01, 0x00, 0x00});   // an empty last block
  Bytes bytes{'C', 'C', 'O', 'B', 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  CHECK(fits(16 * mib, [&] { read_all(bytes); }));
}

TEST_CASE("YAML, JSON: many small values; settings that have no end") {
  std::string list = "[";
  for (int i = 0; i < 20'000; ++i) list += "{},";
  list += "{}]";
  CHECK(fits(64 * mib, [&] { parse_yaml(list, "list"); }));
  CHECK(fits(64 * mib, [] { cli::read_text_file("/dev/zero"); }));
}
