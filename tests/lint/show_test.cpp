// isa_lint show: the listing has loops, waits, outstanding operations and findings in place.
#include "isa_checks/decode/assembler.h"
#include "tests/lint/cli_checks.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>

using namespace kiln::isa::testing;

TEST_CASE("show: loops indented, waits explained, what is outstanding, findings in place") {
  const Folder folder;
  const Result r = isa_lint({"show", folder.write("k.s", plain_text("gfx942")), "--rule", "all", "--kernel", "k"});
  CHECK(r.exit_code == 0);
  CHECK(has(r.out, "loop 0 (0xc to "));
  CHECK(has(r.out, "depth 1, 123 clocks per trip, bound by memory"));
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
  CHECK(has(r.out, " address    vm  lgkm   exp  live  cost\n"));
  CHECK(has(r.out, "           1     1                s_waitcnt expcnt(0)\n"));
  CHECK(has(r.out, "^ expcnt(0): of 1 outstanding waits for all: ds_gws_init at 0x0"));
  CHECK_FALSE(has(isa_lint({"show", folder.write("plain.s", plain_text("gfx942"))}).out, "lgkm   exp"));
}

TEST_CASE("show: live registers at each instruction and at the peak, and the edges of the flow graph") {
  const Folder folder;
  const std::string body = "  v_mov_b32_e32 v1, 0\n  v_mov_b32_e32 v2, 0\n  s_cbranch_scc0 other\n  v_mov_b32_e32 v3, v1\n  s_branch out\n"
                           "other:\n  v_add_f32_e32 v3, v1, v2\nout:\n  global_store_dword v0, v3, s[0:1]\n";
  const Result r = isa_lint({"show", folder.write("k.s", plain_text("gfx942", "k", body))});
  CHECK(r.exit_code == 0);
  CHECK(has(r.out,
            "  live VGPRs       peak 3 (3 architectural + 0 accumulation) at 0x8: 2 of v_mov_b32_e32 (v[1:2]), 1 of the start (v0)\n"));
  CHECK(has(r.out, "block_0:  ; to 2, 1\n"));
  CHECK(has(r.out, "block_1:  ; to 3\n"));
  CHECK(has(r.out, "block_2:  ; from 0  ; other:\n")); // the label of the symbol table
  CHECK(has(r.out, "block_3:  ; from 1, 2  ; out:\n"));
  const std::size_t at = r.out.find("global_store_dword v0, v3");
  REQUIRE(at != std::string::npos);
  const std::string margin = r.out.substr(r.out.rfind('\n', at) + 1, 32);
  CHECK(margin.ends_with("     2     4")); // v0 and v3; clocks
}

TEST_CASE("show --sources: the lines that a line table names, from that folder and no other") {
  const Folder folder;
  const std::string mov = "  v_mov_b32_e32 v1, 0\n", text = plain_text("gfx942", "k", mov + "  v_mov_b32_e32 v2, 0\n");
  const std::size_t at = text.find(mov);
  REQUIRE(at != std::string::npos);
  const std::string place = fmt::format("; /elsewhere/k.kiln:{}", 1 + std::ranges::count(text.substr(0, at), '\n'));
  const std::string object =
      folder.write("k.o", assemble(text, kiln::isa::target_facts("gfx942"), "/elsewhere/k.kiln", {.line_tables = true}));
  const std::string spec = text.substr(0, at) + "  let t1 = x + y\r\n"; // ends before the second instruction's line
  const std::string sources = std::filesystem::path(folder.write("k.kiln", spec)).parent_path().string();
  const Result shown = isa_lint({"show", object, "--sources", sources});
  CHECK(shown.exit_code == 0);
  CHECK(has(shown.out, place + "  let t1 = x + y\n"));
  CHECK_FALSE(has(shown.out, "v_mov_b32_e32 v2, 0\r"));
  CHECK(has(isa_lint({"show", object}).out, place + "\n"));
  const Result wrong = isa_lint({"show", object, "--sources", sources + "/nowhere"});
  CHECK(wrong.exit_code != 0);
  CHECK(has(wrong.err, "nowhere: it is no folder; name the folder"));
}
