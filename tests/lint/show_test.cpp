// isa_lint show: the listing has loops, waits, outstanding operations and findings in place.
#include "tests/lint/cli_checks.h"
#include <doctest/doctest.h>

using namespace kiln::isa::testing;

TEST_CASE("show: loops indented, waits explained, what is outstanding, findings in place") {
  const Folder folder;
  const Result r = isa_lint({"show", folder.write("k.s", plain_text("gfx942")), "--rule", "all", "--kernel", "k"});
  CHECK(r.exit_code == 0);
  CHECK(has(r.out, "loop 0 (0xc to "));
  CHECK(has(r.out, "^ vmcnt(0): of 1 outstanding waits for all: global_load_dword at 0xc; the youngest 0 instructions ago"));
  CHECK(has(r.out, "! WAIT"));
  CHECK(has(r.out, "; to block_1"));
  // Before the wait for the load, one vector memory operation is outstanding.
  const std::size_t at = r.out.find("s_waitcnt vmcnt(0)");
  REQUIRE(at != std::string::npos);
  const std::string margin = r.out.substr(r.out.rfind('\n', at) + 1, 14);
  CHECK(margin == "      14     1");
}

TEST_CASE("show: expcnt has a column where something counts in it") {
  const Folder folder;
  const std::string file = folder.write("k.s", plain_text("gfx942", "k", "  ds_gws_init v0 gds\n  s_waitcnt expcnt(0)\n"));
  const Result r = isa_lint({"show", file});
  CHECK(r.exit_code == 0);
  CHECK(has(r.out, " address    vm  lgkm   exp\n"));
  CHECK(has(r.out, "           1     1    s_waitcnt expcnt(0)\n"));
  CHECK(has(r.out, "^ expcnt(0): of 1 outstanding waits for all: ds_gws_init at 0x0"));
  CHECK_FALSE(has(isa_lint({"show", folder.write("plain.s", plain_text("gfx942"))}).out, "lgkm   exp"));
}
