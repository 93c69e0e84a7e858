// Damaged bytes: every truncation and thousands of changed bytes of small objects end in an error or a result, never a
// crash.
#include "isa_checks/analysis/facts.h"
#include "isa_checks/analysis/waits/waits.h"
#include "isa_checks/decode/program.h"
#include "isa_checks/error.h"
#include "tests/isa/linked.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>
#include <random>

namespace corrupt_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

constexpr std::string_view body = R"(
  s_load_dwordx2 s[0:1], s[0:1], 0x0
loop:
  global_load_dwordx4 v[0:3], v4, s[0:1]
  s_waitcnt vmcnt(0)
  v_pk_add_f32 v[0:1], v[0:1], v[2:3]
  ds_write_b64 v4, v[0:1]
  s_cmp_lg_u32 s2, 0
  s_cbranch_scc1 loop
)";

Bytes object_bytes(std::string_view arch) {
  return assemble(kernel_text(body, arch, {.vgprs = 40, .accum_offset = 20, .lds_bytes = 2048}), target_facts(arch));
}

// Everything that a tool would do with the bytes. Returns whether they were accepted.
bool exercise(const Bytes& bytes) {
  try {
    const CodeObject object = load_code_object(bytes, "damaged");
    Disassembler disassembler(object.target());
    for (const Kernel& kernel : object.kernels()) {
      const Program program = build_program(kernel, disassembler);
      const KernelFacts facts = kernel_facts(object, kernel, program.instructions);
      CHECK_FALSE(to_text(facts).empty());
      CHECK_FALSE(to_json(facts).empty());
      CHECK_FALSE(to_json(analyse_waits(program), program).empty());
    }
    return true;
  } catch (const Error& error) {
    CHECK_FALSE(error.subject.empty());
    CHECK_FALSE(error.fact.empty());
    CHECK_FALSE(error.remedy.empty());
    return false;
  }
}

} // namespace

TEST_CASE("every truncation is an error") {
  for (const bool linked : {false, true}) {
    Bytes bytes = object_bytes("gfx942");
    if (linked) bytes = link(bytes);
    REQUIRE(exercise(bytes));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      CAPTURE(size);
      CHECK_FALSE(exercise(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))));
    }
  }
}

TEST_CASE("changed bytes") {
  constexpr unsigned seed = 20240817;
  std::mt19937 random(seed);
  INFO("seed ", seed);
  int accepted = 0, refused = 0;
  for (std::string_view arch : {"gfx90a", "gfx942", "gfx950"})
    for (const bool linked : {false, true}) {
      const Bytes good = linked ? link(object_bytes(arch)) : object_bytes(arch);
      for (int round = 0; round < 1000; ++round) {
        Bytes bytes = good;
        for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
          bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random() % 4 == 0 ? 0xff : random());
        ++(exercise(bytes) ? accepted : refused);
      }
    }
  CHECK(accepted > 500); // most of a small object is code, padding and names
  CHECK(refused > 500);
}

TEST_CASE("every value of the machine flag") {
  Bytes bytes = object_bytes("gfx942");
  constexpr std::size_t flags_at = 48; // e_flags of a 64-bit ELF header
  for (unsigned machine = 0; machine < 256; ++machine) {
    CAPTURE(machine);
    bytes[flags_at] = static_cast<std::uint8_t>(machine);
    if (find_target_by_machine(machine)) {
      CHECK(exercise(bytes));
      continue;
    }
    CHECK_THROWS_AS(load_code_object(bytes), UnknownArch);
  }
  bytes[flags_at] = 0x2c; // gfx900
  CHECK_THROWS_WITH_AS(load_code_object(bytes, "old.co"),
                       "old.co: it is for gfx900, which is not in the target table; give a code object "
                       "for one of gfx90a, gfx942, gfx950",
                       UnknownArch);
}

TEST_CASE("files that are something else") {
  const auto fact_of = [](Bytes bytes) {
    try {
      load_code_object(std::move(bytes), "file");
    } catch (const Error& error) {
      return error.fact;
    }
    return std::string();
  };
  CHECK(fact_of({}) == "it does not begin with the ELF magic bytes");
  CHECK(fact_of({'h', 'e', 'l', 'l', 'o'}) == "it does not begin with the ELF magic bytes");
  Bytes bytes = object_bytes("gfx942");
  Bytes changed = bytes;
  changed[4] = 1;
  CHECK(fact_of(changed) == "its ELF class is 1, AMDGPU code objects are 64-bit (class 2)");
  changed = bytes;
  changed[5] = 2;
  CHECK(fact_of(changed) == "its byte order is 2, AMDGPU code objects are little-endian (1)");
  changed = bytes;
  changed[7] = 0;
  CHECK(fact_of(changed) == "its OS ABI is 0, HSA code objects have 64");
  changed = bytes;
  changed[18] = 62; // x86-64
  CHECK(fact_of(changed) == "its ELF machine is 62, AMDGPU is 224");
  CHECK_THROWS_WITH_AS(load_code_object_file("no/such/file.co"),
                       "no/such/file.co: it cannot be opened for reading; check the path and its permissions", Error);
}

TEST_CASE("a metadata note that nests without end") {
  const Bytes deep(100'000, 0x91); // an array of one, of one, of one, ...
  CHECK_THROWS_WITH_AS(parse_metadata(deep, "note"),
                       "note: its metadata note nests deeper than 32 levels; rebuild it, or check that it was copied whole", Error);
  const Bytes huge{0xdd, 0xff, 0xff, 0xff, 0xff}; // an array of 2^32 - 1 elements, of which none comes
  CHECK_THROWS_AS(parse_metadata(huge, "note"), Error);
  const Bytes odd_keys{0x82, 0x90, 0x01, 0x90, 0x02}; // a map with arrays as keys
  CHECK(parse_metadata(odd_keys, "note").kernels.empty());
}

} // namespace corrupt_test
