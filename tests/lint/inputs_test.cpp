// Every kind of input, down to the code objects in it, and what is said of those that cannot be read.
#include "isa_checks/input/host_image.h"
#include "isa_checks/input/inputs.h"
#include "isa_checks/input/offload_bundle.h"
#include "isa_checks/object/code_object.h"
#include "tests/lint/files.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <map>

using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

struct Seen {
  std::vector<std::string> kernels; // "gfx942 k"
  std::vector<std::string> names;
  std::map<std::string, int> skipped;
  std::vector<std::string> errors;
};

Seen look(const Bytes& bytes, const InputOptions& options = {}) {
  Seen seen;
  const InputVisitor visitor{.object =
                                 [&](SharedBytes object, const std::string& name) {
                                   const CodeObject code = load_code_object(std::move(object), name);
                                   for (const Kernel& kernel : code.kernels())
                                     seen.kernels.push_back(std::string(code.target().name) + " " + kernel.name);
                                   seen.names.push_back(name);
                                 },
                             .skipped = [&](const std::string& arch) { ++seen.skipped[arch]; },
                             .failed = [&](const Error& error) { seen.errors.push_back(error.what()); }};
  read_input(bytes, "in", options, visitor);
  return seen;
}

const std::string hip = "hipv4-amdgcn-amd-amdhsa--";

std::vector<Entry> three_architectures() {
  return {{"host-x86_64-unknown-linux-gnu-", {}},
          {hip + "gfx1100", Bytes(5000, 7)},
          {hip + "gfx942:sramecc+:xnack-", plain_object("gfx942")},
          {hip + "gfx950", plain_object("gfx950")}};
}

void check_three(const Seen& seen) {
  CHECK(seen.errors == std::vector<std::string>{});
  CHECK(seen.kernels == std::vector<std::string>{"gfx942 k", "gfx950 k"});
  CHECK(seen.skipped == std::map<std::string, int>{{"gfx1100", 1}});
}

} // namespace

TEST_CASE("a code object is read as it is") {
  const Seen seen = look(plain_object("gfx90a"));
  CHECK(seen.kernels == std::vector<std::string>{"gfx90a k"});
  CHECK(seen.names == std::vector<std::string>{"in"});
}

TEST_CASE("bundles, plain and compressed in every version and method") {
  const Bytes plain = bundle(three_architectures());
  check_three(look(plain));
  for (const int version : {1, 2, 3})
    for (const Compression method : {Compression::zlib, Compression::zstd}) {
      CAPTURE(version);
      check_three(look(compressed(plain, version, method)));
    }
}

TEST_CASE("only the architectures that were asked for are extracted") {
  const Seen seen = look(bundle(three_architectures()), {.archs = {"gfx950"}, .assembly_arch = {}});
  CHECK(seen.kernels == std::vector<std::string>{"gfx950 k"});
  CHECK(seen.skipped == std::map<std::string, int>{{"gfx1100", 1}, {"gfx942", 1}});
}

TEST_CASE("bundles in a row, of mixed kinds, each is found and named") {
  const Bytes plain = bundle(three_architectures());
  const Bytes row = in_a_row({plain, compressed(plain, 1, Compression::zstd), compressed(plain, 1, Compression::zlib),
                              compressed(plain, 3, Compression::zstd), plain});
  const Seen seen = look(row);
  CHECK(seen.errors == std::vector<std::string>{});
  CHECK(seen.kernels.size() == 10);
  CHECK(seen.skipped == std::map<std::string, int>{{"gfx1100", 5}});
  REQUIRE(seen.names.size() == 10);
  CHECK(seen.names[3] == "in, bundle 1, gfx950");
  CHECK(seen.names[8] == "in, bundle 4, gfx942:sramecc+:xnack-");
}

TEST_CASE("host programs: the section .hip_fatbin, and what .hipFatBinSegment points at") {
  const Bytes row = in_a_row({bundle(three_architectures()), compressed(bundle(three_architectures()), 2, Compression::zstd)});
  for (const auto& [section, wrapper, relocated] :
       {std::tuple{".hip_fatbin", false, false}, {".hip_fatbin", true, true}, {".rodata", true, false}, {".rodata", true, true}}) {
    CAPTURE(section);
    CAPTURE(relocated);
    const Seen seen = look(host_file({{section, row}, {".text", Bytes(64, 0x90)}}, wrapper, relocated));
    CHECK(seen.errors == std::vector<std::string>{});
    CHECK(seen.kernels.size() == 4);
  }
  const Seen none = look(host_file({{".text", Bytes(64, 0x90)}}));
  REQUIRE(none.errors.size() == 1);
  CHECK(none.errors[0] == "in: it is a host program or library without device code (it has no section .hip_fatbin); give one "
                          "that was built from HIP, or a code object");
}

TEST_CASE("assembly text names its target, or the caller does") {
  const auto bytes = [](const std::string& text) { return Bytes(text.begin(), text.end()); };
  std::string text = plain_text("gfx950");
  CHECK(look(bytes(text)).kernels == std::vector<std::string>{"gfx950 k"});
  const std::string directive = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx950\"";
  text.replace(text.find(directive), directive.size(), "");
  CHECK(look(bytes(text), {.archs = {}, .assembly_arch = "gfx950"}).kernels == std::vector<std::string>{"gfx950 k"});
  const Seen nameless = look(bytes(text));
  REQUIRE(nameless.errors.size() == 1);
  CHECK(nameless.errors[0].find("has no .amdgcn_target; say what it is for with --arch") != std::string::npos);
  CHECK(look(bytes(plain_text("gfx942")), {.archs = {"gfx950"}, .assembly_arch = {}}).skipped == std::map<std::string, int>{{"gfx942", 1}});
}

TEST_CASE("assembly text for a target with features keeps them") {
  std::string text = plain_text("gfx942");
  const std::string plain = "--gfx942\"", with = "--gfx942:sramecc+:xnack-\"";
  text.replace(text.find(plain), plain.size(), with);
  std::string id;
  const InputVisitor visitor{
      .object = [&](SharedBytes object, const std::string& name) { id = load_code_object(std::move(object), name).target_id(); },
      .skipped = [](const std::string&) {},
      .failed = [&](const Error& error) { id = error.what(); }};
  read_input(Bytes(text.begin(), text.end()), "in", {}, visitor);
  CHECK(id == "gfx942:sramecc+:xnack-");
}

TEST_CASE("assembly that does not assemble, that never ends, and that asks for all memory") {
  const auto error_of = [](const std::string& body) {
    const std::string text = plain_text("gfx942", "k", body);
    const Seen seen = look(Bytes(text.begin(), text.end()));
    REQUIRE(seen.errors.size() == 1);
    return seen.errors[0];
  };
  CHECK(error_of("v_nonsense v0\n").find("invalid instruction") != std::string::npos);
#if !defined(__SANITIZE_ADDRESS__) // which has no limit on address space
  const std::string much = error_of(".fill 4000000000, 8, 1\n");
  CHECK((much.find("needs more than 768 MiB") != std::string::npos || much.find("gave up on it") != std::string::npos));
#endif
}

TEST_CASE("damaged bundles are errors that say where") {
  const Bytes plain = bundle(three_architectures());
  const auto error_of = [](const Bytes& bytes) {
    const Seen seen = look(bytes);
    return seen.errors.size() == 1 ? seen.errors[0] : "errors: " + std::to_string(seen.errors.size());
  };
  Bytes changed = plain;
  changed[24 + 3] = 1; // the count
  CHECK(error_of(changed).find("claims 16777220 entries, at most 4096 are read") != std::string::npos);
  const Bytes cut(plain.begin(), plain.end() - 10);
  CHECK(error_of(cut).find("lies outside of it") != std::string::npos);
  CHECK(error_of(Bytes(plain.begin(), plain.begin() + 40)).find("ends inside an entry's") != std::string::npos);
  changed = plain;
  changed.resize(changed.size() + 100, 9);
  CHECK(error_of(changed).find("after 1 offload bundles, byte") != std::string::npos);
  for (const Compression method : {Compression::zlib, Compression::zstd}) {
    const Bytes good = compressed(plain, 2, method);
    changed = good;
    changed[4] = 9;
    CHECK(error_of(changed).find("has version 9, 1 to 3 are read") != std::string::npos);
    changed = good;
    changed[6] = 5;
    CHECK(error_of(changed).find("names method 5") != std::string::npos);
    changed = good;
    changed[11] = 0x7f; // the file's size
    CHECK(error_of(changed).find("are there") != std::string::npos);
    changed = compressed(plain, 1, method);
    changed.resize(changed.size() / 2);
    CHECK(error_of(changed).find("it ends early") != std::string::npos);
    changed = good;
    for (std::size_t i = 40; i < 60; ++i) changed[i] ^= 0x55;
    CHECK_FALSE(look(changed).errors.empty());
  }
  CHECK(error_of(compressed(Bytes(100, 1), 2, Compression::zstd)).find("what it decompresses to is no offload bundle") !=
        std::string::npos);
}

TEST_CASE("an entry may not begin inside of another, and a compressed one may not claim memory that it does not fill") {
  Bytes plain = bundle({{hip + "gfx942", plain_object("gfx942")}, {hip + "gfx950", plain_object("gfx950")}});
  const std::size_t second = 32 + 24 + hip.size() + 6; // the second header
  const std::uint64_t inside = 4096 + 8;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&inside), 8, plain.begin() + static_cast<std::ptrdiff_t>(second));
  const Seen overlap = look(plain);
  REQUIRE(overlap.errors.size() == 1);
  CHECK(overlap.errors[0].find("inside of what lies before it") != std::string::npos);
  const std::uint64_t huge = std::uint64_t{600} << 20;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&huge), 8, plain.begin() + static_cast<std::ptrdiff_t>(second + 8));
  const std::uint64_t later = 1 << 20;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(&later), 8, plain.begin() + static_cast<std::ptrdiff_t>(second));
  const Seen large = look(compressed(plain, 3, Compression::zstd));
  REQUIRE(large.errors.size() == 1);
}

TEST_CASE("things that are no input") {
  CHECK(look({}).errors ==
        std::vector<std::string>{"in: it is empty; give a code object (.co, .hsaco, .o), an offload bundle, a program or "
                                 "library with device code, or a .s file"});
  CHECK(look(Bytes(100, 'x')).errors.size() == 1);
  CHECK(arch_of_id("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+") == "gfx90a");
  CHECK(arch_of_id("hip-amdgcn-amd-amdhsa-gfx9-4-generic") == "gfx9-4-generic");
  CHECK(arch_of_id("host-x86_64-unknown-linux-gnu") == "");
}

TEST_CASE("folders: what looks like input, sorted; nothing is an error") {
  const Folder folder;
  folder.write("b/two.hsaco", plain_object("gfx942"));
  folder.write("a.co", plain_object("gfx950"));
  folder.write("notes.txt", std::string("hello"));
  folder.write("z.s", plain_text("gfx942"));
  CHECK(expand_paths({folder.path.string()}) == std::vector<std::string>{folder.at("a.co"), folder.at("b/two.hsaco"), folder.at("z.s")});
  const Folder empty;
  CHECK_THROWS_WITH_AS(expand_paths({empty.path.string()}), doctest::Contains("holds no file with device code"), Error);
  CHECK_THROWS_WITH_AS(expand_paths({folder.at("missing")}), doctest::Contains("there is no such file or folder"), Error);
  std::vector<std::string> failures;
  std::filesystem::create_symlink("loop", folder.path / "loop");
  CHECK(expand_paths({folder.at("missing"), folder.at("a.co"), empty.path.string(), folder.at("loop"), folder.at("z.s")},
                     [&](const Error& error) { failures.push_back(error.what()); }) ==
        std::vector<std::string>{folder.at("a.co"), folder.at("z.s")});
  REQUIRE(failures.size() == 3);
  CHECK(failures[0].find("there is no such file or folder") != std::string::npos);
  CHECK(failures[1].find("holds no file with device code") != std::string::npos);
  CHECK(failures[2].find("it cannot be reached: ") != std::string::npos);
}

TEST_CASE("a link beside its library is not read again") {
  const Folder folder;
  folder.write("lib.so.1", plain_object("gfx942"));
  std::filesystem::create_symlink("lib.so.1", folder.path / "lib.so");
  CHECK(expand_paths({folder.path.string()}) == std::vector<std::string>{folder.at("lib.so.1")});
}

TEST_CASE("compressed bundles: as large as stated, too large, and opened no further than what is wanted") {
  const std::string id = "hipv4-amdgcn-amd-amdhsa--";
  Bytes large_object = plain_object("gfx950");
  const std::size_t size = large_object.size();
  large_object.resize(24 << 20);
  for (std::size_t n = 0; n < 50'000; ++n) large_object[size + n] = static_cast<std::uint8_t>(n * n * 2654435761U >> 24);
  const Bytes padded = bundle({{id + "gfx942", plain_object("gfx942")}, {id + "gfx950", large_object}});
  for (const Compression method : {Compression::zlib, Compression::zstd}) {
    const Bytes small = compressed(padded, 3, method); // hundreds of times as large as it is
    CHECK(look(small).kernels == std::vector<std::string>{"gfx942 k", "gfx950 k"});
    Bytes lying = small;
    const std::uint64_t stated = 9000;
    std::memcpy(&lying[16], &stated, sizeof stated);
    const Seen cut = look(lying);
    REQUIRE(cut.errors.size() == 1);
    if (method == Compression::zlib) {
      CHECK(cut.errors[0].find("it holds more than the 9000 bytes that its header states") != std::string::npos);
      CHECK(look(lying, {.archs = {"gfx90a"}, .assembly_arch = {}}).errors.empty()); // nothing of it is wanted: its end is not looked at
    } else {
      CHECK(cut.errors[0].find("its zstd stream wants a window of more than ") != std::string::npos);
    }
    const std::uint64_t much = std::uint64_t{1} << 40;
    std::memcpy(&lying[16], &much, sizeof much);
    const Seen large = look(lying);
    REQUIRE(large.errors.size() == 1);
    CHECK(large.errors[0].find("it is too large: ") != std::string::npos);
    CHECK(large.errors[0].find("damaged") == std::string::npos);
  }
}
