// Listings: what they look like, and that they assemble to the same bytes.
#include "isa_checks/decode/listing.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>

namespace listing_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

TEST_CASE("labels, addresses and loops") {
  const CodeObject object =
      assemble_kernel("  s_nop 0\ntop:\n  v_mov_b32_e32 v0, 1\n  s_cbranch_scc1 top\n  s_branch 100\n  s_nop 1", "gfx942");
  Disassembler disassembler(object.target());
  const std::string text = listing(build_program(object.kernel("k"), disassembler));
  CHECK(text.find("block_0:\n  s_nop 0 ") == 0);
  CHECK(text.find("block_1:                                                        ; loop 0 (0x4 to 0x8), depth 1\n") != std::string::npos);
  CHECK(text.find("\n    s_cbranch_scc1 block_1                                      ; 0x8\n") != std::string::npos);
  CHECK(text.find("\n  s_branch 100 ") != std::string::npos); // leaves the kernel
  CHECK(text.find("; unreachable\n  s_nop 1 ") != std::string::npos);
}

TEST_CASE("a listing of compiled code assembles to the same bytes") {
  for (std::string_view arch : {"gfx942", "gfx950"}) {
    const std::string path = std::string(KILN_SOURCE_DIR "/tests/isa/row_norm.") + std::string(arch) + ".s";
    std::ifstream file(path);
    REQUIRE(file);
    std::stringstream source;
    source << file.rdbuf();
    const CodeObject object = load_code_object(assemble(source.str(), target_facts(arch), path), path);
    Disassembler disassembler(object.target());
    const Kernel& kernel = object.kernel("row_norm");
    std::string text = listing(build_program(kernel, disassembler));
    const auto end = text.rfind("s_endpgm");
    REQUIRE(end != std::string::npos);
    text.resize(end); // the snippet brings its own
    const CodeObject again = assemble_kernel(text, arch);
    const Kernel& copy = again.kernel("k");
    CHECK(Bytes(copy.code.begin(), copy.code.end()) == Bytes(kernel.code.begin(), kernel.code.end()));
  }
}

} // namespace listing_test
