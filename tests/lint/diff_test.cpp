// isa_lint diff: regressions by work done, thresholds, kernels that came and went.
#include "tests/lint/cli_checks.h"
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace kiln::isa::testing;
using nlohmann::json;

TEST_CASE("diff: nothing, worse, better, thresholds, kernels that came and went") {
  const Folder folder;
  const std::string before = folder.write("old/k.s", clean_text()), after = folder.write("new/k.s", scratch_text());
  const Result same = isa_lint({"diff", before, before});
  CHECK(same.exit_code == 0);
  CHECK(has(same.out, "0 of 1 kernel changed"));
  const Result worse = isa_lint({"diff", before, after});
  CHECK(worse.exit_code == 1);
  CHECK(has(worse.out, "! scratch_bytes      0 -> 16 B"));
  CHECK(has(worse.out, "! came: SPL001 error"));
  const Result better = isa_lint({"diff", after, before});
  CHECK(better.exit_code == 0);
  CHECK(has(better.out, "went: SPL001 error"));
  CHECK(isa_lint({"diff", before, after, "--only", "SPL002", "--threshold", "scratch_bytes=off,global_width=off"}).exit_code ==
        1); // other_hot_instructions
  CHECK(isa_lint({"diff", before, after, "--only", "SPL002", "--threshold", "scratch_bytes=off,other_hot_instructions=1000"}).exit_code ==
        0);
  const Result renamed =
      isa_lint({"diff", folder.at("old"), folder.write("other/k.s", plain_text("gfx942", "second", "  s_nop 0\n")), "--json"});
  CHECK(renamed.exit_code == 0);
  CHECK(has(isa_lint({"diff", folder.at("old"), folder.at("other/k.s")}).out, "0 of 0 kernels changed, 0 got worse; 1 new, 1 gone"));
  const json changes = json::parse(renamed.out)["kernels"];
  REQUIRE(changes.size() == 2);
  CHECK(changes[0]["kernel"] == "second");
  CHECK(changes[0]["added"] == true);
  CHECK(changes[1]["removed"] == true);
  check_refused({"diff", before, after, "--threshold", "speed=1"}, "there is no metric 'speed'");
  check_refused({"diff", before, after, "--threshold", "vgprs=few"}, "'few' is no percentage");
  check_refused({"diff", before}, "new");
}

TEST_CASE("diff compares what is done: float4 instead of float is no regression") {
  const Folder folder;
  const auto loop = [](const std::string& load, const std::string& more) {
    return plain_text("gfx942", "k",
                      "  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  s_waitcnt lgkmcnt(0)\nagain:\n  " + load +
                          " v[4:7], v0, s[4:5]\n  s_waitcnt vmcnt(0)\n" + more + "  s_sub_u32 s6, s6, 1\n  s_cbranch_scc0 again\n");
  };
  std::string adds;
  for (int i = 0; i < 4; ++i) adds += "  v_add_f32_e32 v8, v8, v" + std::to_string(4 + i) + "\n";
  std::string narrow = loop("global_load_dword", "  v_add_f32_e32 v8, v8, v4\n");
  narrow.replace(narrow.find("v[4:7]"), 6, "v4");
  const std::string before = folder.write("old/k.s", narrow), after = folder.write("new/k.s", loop("global_load_dwordx4", adds));
  const Result r = isa_lint({"diff", before, after, "--only", "SPL001"});
  CHECK(r.exit_code == 0); // more instructions, fewer for each byte
  CHECK(has(r.out, "hot_instructions"));
  CHECK(has(r.out, "  instructions_per_kib"));
  CHECK(isa_lint({"diff", after, before, "--only", "SPL001", "--threshold", "global_width=off,bytes_in_flight=off"}).exit_code == 1);
}

TEST_CASE("diff: what got worse stands first, and a kernel without LDS has no narrower accesses of it") {
  const Folder folder;
  const std::string lds = "  ds_read_b64 v[4:5], v0\n  s_waitcnt lgkmcnt(0)\n", none = "  s_nop 0\n  s_nop 0\n";
  const std::string spills = "again:\n  scratch_store_dword off, v0, off\n  s_waitcnt vmcnt(0)\n  s_cbranch_scc1 again\n";
  folder.write("old/a.s", plain_text("gfx942", "a", lds));
  folder.write("old/b.s", plain_text("gfx942", "b", none));
  folder.write("new/a.s", plain_text("gfx942", "a", none));
  folder.write("new/b.s", plain_text("gfx942", "b", spills));
  const Result r = isa_lint({"diff", folder.at("old"), folder.at("new")});
  CHECK(r.exit_code == 1);
  CHECK(r.out.starts_with("b (gfx942)\n"));
  CHECK(has(r.out, "lds_width          8 -> 0 B"));
  CHECK_FALSE(has(r.out, "! lds_width"));
  CHECK(has(r.out, "2 of 2 kernels changed, 1 got worse\n"));
}
