// Expectations: each kind met and broken, and what the report says.
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/error.h"
#include "isa_checks/verdict/expectations.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace expectations_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

IsaReport report_of(std::string_view body, const Expectations& expectations, const Snippet& snippet = {.vgprs = 32, .accum_offset = 32}) {
  const CodeObject object = assemble_kernel(body, "gfx942", snippet);
  Disassembler disassembler(object.target());
  const Program program = build_program(object.kernel("k"), disassembler);
  return check_isa(program, kernel_facts(object, object.kernel("k"), program.instructions), expectations);
}

void check_result(const IsaReport& report, const ExpectationResult& expected) {
  REQUIRE(report.results.size() == 1);
  CHECK(report.results[0].name == expected.name);
  CHECK(report.results[0].expected == expected.expected);
  CHECK(report.results[0].found == expected.found);
  CHECK(report.results[0].met == expected.met);
  CHECK(report.results[0].evidence == expected.evidence);
  CHECK(report.met() == expected.met);
}

constexpr std::string_view mixed = "  global_load_dwordx4 v[0:3], v4, s[2:3]\n  global_load_dwordx4 v[0:3], v4, "
                                   "s[2:3]\n  buffer_load_dword v0, off, s[0:3], 0\n"
                                   "  global_store_dwordx2 v4, v[0:1], s[2:3]\n  ds_read_b128 v[0:3], v4\n  "
                                   "ds_write2_b64 v4, v[0:1], v[2:3] offset1:1\n";

} // namespace

TEST_CASE("nothing asked, nothing reported") {
  const IsaReport report = report_of(mixed, {});
  CHECK(report.results.empty());
  CHECK(report.met());
}

TEST_CASE("scratch and spills") {
  check_result(report_of("", {.no_scratch = true}), {"no_scratch", "0 bytes", "0 bytes per lane, 0 scratch instructions", true, {}});
  check_result(report_of("  scratch_load_dword v0, off, s0", {.no_scratch = true}, {.scratch_bytes = 16}),
               {"no_scratch", "0 bytes", "16 bytes per lane, 1 scratch instruction", false, {"0x0: scratch_load_dword v0, off, s0"}});
  check_result(report_of("", {.no_spills = true}), {"no_spills", "0 registers", "0 VGPR, 0 SGPR", true, {}});
  check_result(report_of("", {.no_spills = true}, {.spills = 2}), {"no_spills", "0 registers", "2 VGPR, 0 SGPR", false, {}});
}

TEST_CASE("granted spills may be moved outside of loops that load, and not within") {
  const Expectations granted{.no_spills = true, .max_vgpr_spills = 2};
  const auto with = [](std::string_view before, std::string_view within) {
    return fmt::format("  {}\nloop:\n  global_load_dwordx4 v[0:3], v4, s[2:3]\n  {}\n  s_waitcnt vmcnt(0)\n  s_cbranch_scc1 loop\n", before,
                       within);
  };
  const Snippet two{.vgprs = 40, .accum_offset = 32, .spills = 2};
  const IsaReport outside = report_of(with("v_accvgpr_write_b32 a0, v9", "s_nop 0"), granted, two);
  CHECK(outside.met());
  REQUIRE(outside.results.size() == 3);
  CHECK(outside.results[0].expected == "0 SGPR");
  CHECK(outside.results[1].name == "max_vgpr_spills");
  CHECK(outside.results[1].expected == "<= 2");
  const IsaReport within = report_of(with("s_nop 0", "v_accvgpr_read_b32 v9, a0"), granted, two);
  CHECK_FALSE(within.met());
  REQUIRE(within.results.size() == 3);
  CHECK(within.results[2].name == "spills_in_loops");
  CHECK(within.results[2].found == "1 move");
  CHECK(within.results[2].evidence.size() == 1);
  CHECK(report_of(with("s_nop 0", "v_readlane_b32 s4, v9, 0"), granted, two).met()); // nothing is spilled to lanes
  CHECK_FALSE(report_of(with("s_nop 0", "s_nop 0"), granted, {.vgprs = 40, .accum_offset = 32, .spills = 3}).met());
}

TEST_CASE("granted spills: each kind of registers has a line of its own") {
  const auto broken = [](const Expectations& e, int vgprs, int sgprs) {
    std::string names;
    for (const ExpectationResult& result : report_of("", e, {.spills = vgprs, .sgpr_spills = sgprs}).results)
      if (!result.met) names += result.name + ' ';
    return names;
  };
  const Expectations sgprs{.no_spills = true, .max_sgpr_spills = 5}, both{.no_spills = true, .max_sgpr_spills = 5, .max_vgpr_spills = 2};
  CHECK(broken(sgprs, 0, 5).empty());
  CHECK(broken(sgprs, 0, 6) == "max_sgpr_spills ");
  CHECK(broken(sgprs, 1, 5) == "no_spills ");
  CHECK(broken(both, 2, 5).empty());
  CHECK(broken(both, 3, 6) == "max_vgpr_spills max_sgpr_spills ");
}

TEST_CASE("registers, LDS and occupancy") {
  check_result(report_of("", {.max_vgprs = 32}), {"max_vgprs", "<= 32", "32", true, {}});
  check_result(report_of("", {.max_vgprs = 31}), {"max_vgprs", "<= 31", "32", false, {}});
  check_result(report_of("", {.max_lds_bytes = 100}, {.lds_bytes = 101}), {"max_lds_bytes", "<= 100", "101", false, {}});
  check_result(report_of("", {.max_lds_bytes = 101}, {.lds_bytes = 101}), {"max_lds_bytes", "<= 101", "101", true, {}});
  check_result(report_of("", {.min_waves_per_simd = 8}, {.vgprs = 65, .accum_offset = 68}),
               {"min_waves_per_simd", ">= 8", "7, limited by vgprs", false, {}});
  check_result(report_of("", {.min_waves_per_simd = 8}), {"min_waves_per_simd", ">= 8", "8, limited by wave_slots", true, {}});
}

TEST_CASE("what cannot be read keeps no promise, unless no wave comes to it") {
  check_result(report_of("  .long 0xffffffff", {}),
               {"decodable", "all code", "1 word that LLVM cannot decode", false, {"0x0: .long 0xffffffff"}});
  CHECK(report_of("  s_branch over\n  .long 0xffffffff\nover:", {}).results.empty());
}

TEST_CASE("widths, with exceptions and with a least count") {
  check_result(report_of(mixed, {.global_loads = {.min_bytes = 16}}),
               {"global_loads", ">= 16 B", "16B x2, 4B x1", false, {"0x10: buffer_load_dword v0, off, s[0:3], 0"}});
  check_result(report_of(mixed, {.global_loads = {.min_bytes = 4}}), {"global_loads", ">= 4 B", "16B x2, 4B x1", true, {}});
  check_result(report_of(mixed, {.global_loads = {.min_bytes = 16, .exceptions = 1}}),
               {"global_loads", ">= 16 B but for 1", "16B x2, 4B x1", true, {}});
  check_result(report_of(mixed, {.global_loads = {.min_bytes = 16, .exceptions = 1, .at_least = 3}}),
               {"global_loads", ">= 16 B but for 1, at least 3 of them", "16B x2, 4B x1", false, {}});
  check_result(report_of(mixed, {.global_loads = {.min_bytes = 16, .exceptions = 1, .at_least = 2}}),
               {"global_loads", ">= 16 B but for 1, at least 2 of them", "16B x2, 4B x1", true, {}});
  check_result(report_of(mixed, {.global_stores = {.min_bytes = 16}}),
               {"global_stores", ">= 16 B", "8B x1", false, {"0x18: global_store_dwordx2 v4, v[0:1], s[2:3]"}});
  check_result(report_of(mixed, {.lds = {.min_bytes = 16}}), {"lds", ">= 16 B", "16B x2", true, {}});
  check_result(report_of("  ds_add_u32 v0, v1\n  ds_read_b64 v[0:1], v2", {.lds = {.min_bytes = 16}}),
               {"lds", ">= 16 B", "8B x1", false, {"0x8: ds_read_b64 v[0:1], v2"}});
}

TEST_CASE("required and forbidden instructions") {
  check_result(report_of("  v_cvt_pk_fp8_f32 v0, v1, v2", {.required = {"v_cvt_pk_fp8_f32"}}),
               {"required v_cvt_pk_fp8_f32", "some", "1", true, {}});
  check_result(report_of("", {.required = {"v_cvt_pk_fp8_f32"}}), {"required v_cvt_pk_fp8_f32", "some", "0", false, {}});
  check_result(report_of("", {.forbidden = {"flat_"}}), {"forbidden flat_", "none", "0", true, {}});
  check_result(report_of("  flat_load_dword v0, v[2:3]\n  s_nop 0\n  flat_store_dword v[2:3], v0", {.forbidden = {"flat_"}}),
               {"forbidden flat_", "none", "2", false, {"0x0: flat_load_dword v0, v[2:3]", "0xc: flat_store_dword v[2:3], v0"}});
}

TEST_CASE("rules that have nothing to say") {
  const auto report_of_rules = [](std::string_view body, const Expectations& expectations) {
    const CodeObject object = assemble_kernel(body, "gfx942", {.vgprs = 32, .accum_offset = 32});
    return check_isa(analyse(object, object.kernel("k")), expectations);
  };
  constexpr std::string_view early = "  v_mfma_f32_16x16x32_fp8_fp8 a[0:3], v[0:1], v[2:3], a[0:3]\n  s_nop 5\n  v_accvgpr_read_b32 v4, a0";
  const IsaReport report = report_of_rules(early, {.no_findings = {"HAZ002:info"}});
  REQUIRE(report.results.size() == 1);
  CHECK_FALSE(report.met());
  CHECK(report.results[0].name == "no_findings HAZ002:info");
  CHECK(report.results[0].found == "1");
  REQUIRE(report.results[0].evidence.size() == 1);
  CHECK(report.results[0].evidence[0].starts_with("0xc: v_accvgpr_read_b32 v4, a0: reads what a matrix instruction writes"));
  CHECK(report_of_rules("  s_nop 0", {.max_instructions = 2, .no_findings = {"HAZ002"}}).met());
  CHECK(report_of_rules(early, {.no_findings = {"HAZ002"}}).met()); // an info breaks a contract only where that asks for it
  constexpr std::string_view wrong = "  v_mov_b32_e32 v1, v2\n  v_mov_b32_dpp v9, v1 row_shr:1 row_mask:0xf bank_mask:0xf";
  for (const char* entry : {"HAZ002", "HAZ002:warning", "HAZ002:error"})
    CHECK_FALSE(report_of_rules(wrong, {.no_findings = {entry}}).met());
  CHECK_THROWS_WITH_AS(report_of_rules("", {.no_findings = {"HAZ002:loud"}}), doctest::Contains("'loud' is no severity"), Error);
  CHECK_THROWS_WITH_AS(report_of_rules("", {.no_findings = {"HAZ999"}}), doctest::Contains("HAZ999"), Error);
  CHECK_THROWS_WITH_AS(report_of("", {.no_findings = {"HAZ002"}}), doctest::Contains("rules need a KernelAnalysis"), Error);
}

TEST_CASE("code size, and several at once in text and JSON") {
  check_result(report_of("  s_nop 0", {.max_instructions = 2}), {"max_instructions", "<= 2", "2", true, {}});
  check_result(report_of("  s_nop 0", {.max_instructions = 1}), {"max_instructions", "<= 1", "2", false, {}});
  const IsaReport report = report_of(mixed, {.no_scratch = true, .global_loads = {.min_bytes = 16}, .forbidden = {"flat_"}});
  REQUIRE(report.results.size() == 3);
  CHECK_FALSE(report.met());
  const std::string text = to_text(report);
  CHECK(text.starts_with("k (gfx942): NOT as expected\n"));
  CHECK(text.find("  FAIL global_loads                 expected >= 16 B, found 16B x2, 4B x1\n         0x10: "
                  "buffer_load_dword") != std::string::npos);
  const auto json = nlohmann::json::parse(to_json(report));
  CHECK(json["met"] == false);
  CHECK(json["results"][0]["met"] == true);
  CHECK(json["results"][1]["name"] == "global_loads");
  CHECK(json["results"][1]["evidence"].size() == 1);
}

TEST_CASE("full drains and bytes in flight of loops") {
  // A drain in the loop, another after it: only the first counts.
  constexpr std::string_view draining = "loop:\n  global_load_dwordx4 v[0:3], v4, s[2:3]\n  s_waitcnt vmcnt(0)\n  s_cbranch_scc1 loop\n"
                                        "  global_load_dword v0, v4, s[2:3]\n  s_waitcnt vmcnt(0)\n";
  check_result(report_of(draining, {.max_loop_drains = 0}), {"max_loop_drains", "<= 0", "1", false, {"0x8: s_waitcnt vmcnt(0)"}});
  check_result(report_of(draining, {.min_bytes_in_flight = 1}),
               {"min_bytes_in_flight", ">= 1", "0", false, {"loop 0 (0x0 to 0xc): 0 to 1024 bytes"}});
  constexpr std::string_view ring =
      "  global_load_dwordx4 v[0:3], v4, s[2:3]\nloop:\n  global_load_dwordx4 v[8:11], v4, s[2:3]\n  s_waitcnt "
      "vmcnt(1)\n"
      "  global_load_dwordx4 v[0:3], v4, s[2:3]\n  s_waitcnt vmcnt(1)\n  s_cbranch_scc1 loop\n";
  CHECK(report_of(ring, {.max_loop_drains = 0}).met());
  CHECK(report_of(ring, {.min_bytes_in_flight = 1024}).met());
  CHECK_FALSE(report_of(ring, {.min_bytes_in_flight = 1025}).met());
  check_result(report_of("  s_nop 0", {.min_bytes_in_flight = 1024}), {"min_bytes_in_flight", ">= 1024", "no loop that loads", true, {}});
  // A loop within the loop: one that sleeps polls a flag, and the outer one counts all the same; any other hides it.
  const auto nested = [](std::string_view first) {
    return fmt::format("loop:\n  global_load_dwordx4 v[0:3], v4, s[2:3]\npoll:\n  {}\n  s_cbranch_scc0 poll\n  s_waitcnt vmcnt(0)\n  "
                       "s_cbranch_scc1 loop\n",
                       first);
  };
  CHECK_FALSE(report_of(nested("s_sleep 1"), {.max_loop_drains = 0, .in_loops_with = "global_load"}).met());
  CHECK(report_of(nested("s_nop 1"), {.max_loop_drains = 0, .in_loops_with = "global_load"}).met());
}

TEST_CASE("streaming loops and what lies outside of them have widths of their own") {
  // A ring of two words and a scale; before the loop a narrow load, in it a wide access to LDS.
  const auto ring = [](std::string_view wait, std::string_view more) {
    return fmt::format(
        "  global_load_dwordx4 v[0:3], v4, s[2:3]\n  global_load_dword v12, v4, s[2:3]\nloop:\n  global_load_dwordx4 v[8:11], v4, "
        "s[2:3]\n  global_load_ubyte v13, v4, s[2:3]\n  {}\n  ds_read_b128 v[16:19], v4\n  {}\n  s_cbranch_scc1 loop\n",
        wait, more);
  };
  const std::string good = ring("s_waitcnt vmcnt(2)", "s_nop 0");
  check_result(report_of(good, {.loop_loads = {.min_bytes = 16, .exceptions = 1, .at_least = 1, .excepted = "scales"}}),
               {"loop_loads", ">= 16 B but for 1 (scales), at least 1 of them", "16B x1, 1B x1", true, {}});
  check_result(report_of(good, {.loop_loads = {.min_bytes = 16}}),
               {"loop_loads", ">= 16 B", "16B x1, 1B x1", false, {"loop 0 (0x10 to 0x30)", "0x18: global_load_ubyte v13, v4, s[2:3]"}});
  check_result(report_of(good, {.loads_outside_loops = {.min_bytes = 16}}),
               {"loads_outside_loops", ">= 16 B", "16B x1, 4B x1", false, {"0x8: global_load_dword v12, v4, s[2:3]"}});
  check_result(report_of(good, {.loop_lds = {.min_bytes = 16, .at_least = 1}}),
               {"loop_lds", ">= 16 B, at least 1 of them", "16B x1", true, {}});
  check_result(report_of(good, {.min_loops = 2}), {"min_loops", ">= 2", "1", false, {}});
  CHECK(report_of(good, {.min_loop_wait = 2}).met());
  check_result(report_of(good, {.min_loop_wait = 3}), {"min_loop_wait", ">= 3", "2", false, {"0x20: s_waitcnt vmcnt(2)"}});
  check_result(report_of(ring("s_waitcnt vmcnt(2)", "s_barrier"), {.max_loop_barriers = 0}),
               {"max_loop_barriers", "<= 0", "1", false, {"0x2c: s_barrier"}});
  check_result(report_of("  s_barrier\n" + good, {.max_barriers = 0}), {"max_barriers", "<= 0", "1", false, {"0x0: s_barrier"}});
  CHECK(report_of("  s_barrier\n" + good, {.max_loop_barriers = 0}).met());
  check_result(report_of("  s_nop 0", {.loop_loads = {.min_bytes = 16}}), {"loop_loads", ">= 16 B", "no loop that loads", true, {}});
}

} // namespace expectations_test
