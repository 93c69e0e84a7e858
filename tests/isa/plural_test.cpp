// Numbers and their nouns in messages.
#include "isa_checks/plural.h"
#include "isa_checks/verdict/lint.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>

namespace plural_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

std::string first_message(const std::string& body, const std::string& rule) {
  const CodeObject object = assemble_kernel(body, "gfx942", {.vgprs = 128, .accum_offset = 128, .sgprs = 48});
  const std::vector<Finding> findings = lint(analyse(object, object.kernel("k")), {.only = {rule}});
  REQUIRE(findings.size() == 1);
  return findings[0].message;
}

} // namespace

TEST_CASE("a count and its noun") {
  CHECK(plural(1, "load") == "1 load");
  CHECK(plural(0, "load") == "0 loads");
  CHECK(plural(2, "memory access") == "2 memory accesses");
  CHECK(plural(1, "memory access") == "1 memory access");
  CHECK(plural(3, "branch") == "3 branches");
  CHECK(plural(1, "load brings", "loads bring") == "1 load brings");
  CHECK(plural(2, "load brings", "loads bring") == "2 loads bring");
}

TEST_CASE("messages about one thing and about several") {
  const std::string load = "global_load_dword v0, v4, s[2:3]\n", other = "global_load_dword v1, v4, s[2:3] offset:64\n";
  const auto loop = [](const std::string& body) { return "loop:\n" + body + " s_cbranch_scc1 loop\n"; };
  CHECK(first_message(loop(load), "MEM001") == "1 of the loop's 1 load moves less than 16 B per lane, the narrowest 4 B");
  CHECK(first_message(loop(load + other), "MEM001") == "2 of the loop's 2 loads move less than 16 B per lane, the narrowest 4 B");
  CHECK(first_message("flat_load_dword v0, v[2:3]\n", "MEM002") == "1 flat instruction, 0 in loops");
  const std::string copy = " s_waitcnt vmcnt(0)\n v_mov_b32_e32 v8, v0\n", copies = copy + " v_mov_b32_e32 v9, v1\n";
  CHECK(first_message(loop(load + copy), "WAIT005").starts_with("what 1 load brings is only copied"));
  CHECK(first_message(loop(load + other + copies), "WAIT005").starts_with("what 2 loads bring is only copied"));
  const std::string scratch = "scratch_load_dword v0, off, off\n";
  CHECK(
      first_message(scratch, "SPL001").ends_with(" a lane for arrays or other stack objects, 1 instruction that accesses it, 0 in loops"));
  CHECK(first_message(scratch + scratch, "SPL001")
            .ends_with(" a lane for arrays or other stack objects, 2 instructions that access it, 0 in loops"));
}

} // namespace plural_test
