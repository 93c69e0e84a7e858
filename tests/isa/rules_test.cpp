// Every rule on a few lines of assembly: one text on which it fires, one much like it on which it stays silent.
#include "isa_checks/verdict/expectations.h"
#include "isa_checks/verdict/lint.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>
#include <regex>
#include <set>

namespace rules_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

struct Case {
  std::string id, fires, silent;
  const char* arch = "gfx942";
  Snippet firing = wide, quiet = wide;
};

// "1 loads": every message is built from counts, and a count may be one.
void check_number(const std::string& message) {
  static const std::regex one_of_many("(^|[ (])1 [A-Za-z0-9_-]*[^s ]s($|[ ,;:)])");
  CHECK_MESSAGE(!std::regex_search(message, one_of_many), message);
}

bool found(const Case& c, const std::string& body, const Snippet& snippet) {
  const CodeObject object = assemble_kernel(body, c.arch, snippet);
  const std::vector<Finding> findings = lint(analyse(object, object.kernel("k")), {.only = {c.id}});
  for (const Finding& f : findings) check_number(f.message);
  return !findings.empty();
}

const std::string wait_all = "s_waitcnt vmcnt(0) lgkmcnt(0)\n";
const std::string load16 = "global_load_dwordx4 v[0:3], v4, s[2:3]\n", load4 = "global_load_dword v0, v4, s[2:3]\n";
const std::string lane4 = "v_lshlrev_b32_e32 v4, 2, v0\n", lane4k = "v_lshlrev_b32_e32 v4, 12, v0\n";
const std::string mfma = "v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], v[0:3]\n";
const std::string mfma_next = "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n";

std::vector<Case> memory_cases() {
  return {{"MEM001", loop(load4), loop(load16 + load16 + load4)},
          {"MEM002", "flat_load_dword v0, v[2:3]", load4},
          {"MEM003", lane4k + load4, lane4 + load4},
          {"MEM004", loop("global_load_dword v0, v[2:3], off\n v_lshl_add_u64 v[2:3], v[2:3], 0, s[0:1]"),
           loop(load4 + "v_add_u32_e32 v4, 4, v4")},
          {"MEM005", loop(load4 + "v_lshlrev_b64 v[6:7], 2, v[6:7]\n v_ashrrev_i32_e32 v9, 31, v8"),
           loop(load4 + "v_ashrrev_i32_e32 v9, 31, v8")},
          {"MEM006", "global_load_dword v0, v4, s[2:3] sc0 sc1",
           "global_load_dword v0, v4, s[2:3] sc1\n global_atomic_add v4, v0, s[2:3] sc1"}, // sc1 alone: agent scope
          {"MEM008", lane4k + load4, "v_mul_u32_u24_e32 v4, 0x204, v0\n" + load4},
          {"MEM009", loop("s_load_dword s4, s[0:1], 0x0"), "s_load_dword s4, s[0:1], 0x0\n" + loop("s_nop 0")},
          {"MEM010", load4 + "global_load_dword v1, v4, s[2:3] offset:4",
           load4 + "global_load_dword v1, v4, s[2:3] offset:8\n v_add_u32_e32 v4, 4, v4\n global_load_dword v2, v4, s[2:3] offset:4"},
          {"MEM011", loop(load4 + wait_all + "ds_write_b32 v5, v0"),
           loop(load4 + wait_all + "v_add_f32_e32 v0, v0, v0\n ds_write_b32 v5, v0")}};
}

std::vector<Case> lds_cases() {
  return {{"LDS001", loop("ds_read_b32 v0, v4\n ds_read_b32 v1, v4 offset:4"),
           loop("ds_read_b32 v0, v4\n v_add_u32_e32 v4, 8, v4\n ds_read_b32 v1, v4 offset:4")},
          {"LDS002", "v_lshlrev_b32_e32 v4, 7, v0\n ds_read_b32 v1, v4", "v_mul_u32_u24_e32 v4, 0x84, v0\n ds_read_b32 v1, v4"},
          {"LDS003", loop(times(4, "ds_read_u16_d16 v20, v4") + mfma), loop(times(4, "ds_read_u16_d16 v20, v4")), "gfx950"}};
}

std::vector<Case> wait_cases() {
  return {{"WAIT001", loop(load16 + wait_all), loop(load16 + times(64, "v_nop") + wait_all)},
          {"WAIT002", loop(load16 + wait_all), loop(load16 + times(5, "v_nop") + wait_all)},
          {"WAIT003",
           loop(load16 + "global_load_dwordx4 v[8:11], v4, s[2:3]\n s_waitcnt vmcnt(0)\n v_add_f32_e32 v5, v0, v0\n s_waitcnt vmcnt(0)\n "
                         "v_add_f32_e32 v5, v8, v8"),
           // A wait for another counter completes nothing: following the advice would read v8 too early.
           loop(load16 + "global_load_dwordx4 v[8:11], v4, s[2:3]\n s_waitcnt vmcnt(0)\n v_add_f32_e32 v5, v0, v0\n s_waitcnt lgkmcnt(0)\n "
                         "v_add_f32_e32 v5, v8, v8\n s_waitcnt vmcnt(0)")},
          {"WAIT004", times(70, load4) + wait_all, times(10, load4) + wait_all},
          {"WAIT005", loop(load4 + wait_all + "v_mov_b32_e32 v9, v0"),
           loop("global_load_dword v1, v4, s[2:3]\n s_waitcnt vmcnt(1)\n v_mov_b32_e32 v9, v0\n" +
                load4)}, // a load is in flight at the back edge
          {"WAIT006", loop("ds_read_b32 v0, v4\n s_waitcnt lgkmcnt(0)"),
           loop("ds_read_b32 v0, v4\n" + times(3, "v_nop") + "s_waitcnt lgkmcnt(0)")},
          {"WAIT007", loop("s_load_dword s4, s[0:1], 0x0\n s_waitcnt lgkmcnt(0)"),
           "s_load_dword s4, s[0:1], 0x0\n s_waitcnt lgkmcnt(0)\n" + loop("s_nop 0")},
          {"SYNC001", loop(load16 + "s_waitcnt vmcnt(0)\n s_barrier\n" + times(8, "v_nop")),
           loop(load16 + "s_waitcnt vmcnt(0)\n s_barrier\n v_add_f32_e32 v5, v0, v0\n" + times(8, "v_nop"))},
          {"SYNC002", "s_barrier\n s_nop 0\n s_barrier", "s_barrier\n ds_write_b32 v0, v1\n s_barrier"},
          {"SYNC003", "s_barrier", "s_barrier", "gfx942", {.workgroup_size = 64}, {.workgroup_size = 128}}};
}

std::vector<Case> resource_cases() {
  return {{"SPL001", "scratch_load_dword v0, off, s0", load4},
          {"SPL002", "", "v_accvgpr_write_b32 a0, v0", "gfx942", {.scratch_bytes = 64, .spills = 3}, {.spills = 3}},
          {"SPL004",
           loop(times(5, "v_accvgpr_write_b32 a0, v0")),
           loop(times(5, "v_accvgpr_write_b32 a0, v0") + times(5, mfma)),
           "gfx942",
           {.vgprs = 32, .accum_offset = 16},
           {.vgprs = 32, .accum_offset = 16}},
          {"SPL005", "", "", "gfx942", {.descriptor = ".amdhsa_uses_dynamic_stack 1"}, {}},
          {"OCC001", "", "", "gfx942", {.vgprs = 70, .accum_offset = 72}, {.vgprs = 94, .accum_offset = 96}},
          {"OCC002", "", "", "gfx942", {.lds_bytes = 20000}, {.lds_bytes = 8192}},
          {"OCC003", "", "", "gfx942", {.sgprs = 102}, {.sgprs = 100}},
          {"LCH001", "", "", "gfx942", {.workgroup_size = 1024}, {.workgroup_size = 512}},
          {"LCH002",
           "",
           "",
           "gfx942",
           {.vgprs = 120, .accum_offset = 120, .workgroup_size = 1024},
           {.vgprs = 100, .accum_offset = 100, .workgroup_size = 1024}},
          {"LCH004",
           "s_load_dword s4, s[0:1], 0x10",
           "s_load_dword s4, s[0:1], 0x8",
           "gfx942",
           {.descriptor = ".amdhsa_user_sgpr_kernarg_segment_ptr 1"},
           {.descriptor = ".amdhsa_user_sgpr_kernarg_segment_ptr 1"}},
          {"CF005", loop(times(17000, "s_nop 0")), loop(times(1000, "s_nop 0"))}};
}

std::vector<Case> arithmetic_cases() {
  return {
      {"MTH001", "v_div_fixup_f32 v0, v1, v2, v3", "v_rcp_f32_e32 v0, v1"},
      {"MTH002", loop("v_rcp_iflag_f32_e32 v0, v1"), "outer:\n v_rcp_iflag_f32_e32 v0, v1\n" + loop("s_nop 0") + "s_cbranch_vccnz outer\n"},
      {"MTH003", "v_cvt_f64_f32_e32 v[0:1], v2\n v_cvt_f32_f64_e32 v2, v[0:1]", "v_cvt_f64_f32_e32 v[0:1], v2"},
      {"MTH004", "v_mul_f32_e32 v0, 0x3fb8aa3b, v1\n v_fmac_f32_e32 v0, 0x32a5705f, v1",
       "v_mul_f32_e32 v0, 0x3fb8aa3b, v1\n v_exp_f32_e32 v0, v0"},
      {"MTH005", loop("v_add_f32_e32 v0, v2, v4\n v_add_f32_e32 v1, v3, v5"), loop("v_add_f32_e32 v0, v2, v4\n v_add_f32_e32 v1, v0, v5")},
      {"MTH006", loop("v_add_f16_e32 v0, v2, v4\n v_add_f16_e32 v1, v3, v5"), loop("v_pk_add_f16 v0, v2, v4")},
      {"CVT001", "v_bfe_u32 v0, v1, 16, 1\n v_add3_u32 v0, v1, v0, s4", "v_bfe_u32 v0, v1, 8, 1\n v_add3_u32 v0, v1, v0, s4"},
      {"CVT002", "v_cvt_pk_fp8_f32 v0, v1, v1", "v_cvt_pk_fp8_f32 v0, v1, v2"},
      {"CVT003", "v_cvt_f32_f16_e32 v0, v1\n v_fma_f32 v2, v0, v0, v2", "v_cvt_f32_f16_e32 v0, v1\n v_add_f32_e32 v2, v0, v2"},
      {"MFM001", mfma, "v_mfma_f32_16x16x32_f16 v[0:3], v[8:11], v[12:15], v[0:3]", "gfx950"},
      {"MFM002", "v_cvt_f32_f16_e32 v8, v1\n v_mfma_f32_16x16x4_f32 v[0:3], v8, v9, v[0:3]",
       "v_mfma_f32_16x16x4_f32 v[0:3], v8, v9, v[0:3]"},
      {"MFM003", loop(mfma + "s_nop 6\n v_add_f32_e32 v20, v0, v1"),
       loop(mfma + times(7, "v_add_u32_e32 v21, v22, v21") + "v_add_f32_e32 v20, v0, v1")},
      {"MFM004", loop(mfma + mfma), loop(mfma + mfma_next)},
      {"MFM005", loop(load16 + times(8, "v_fma_f32 v20, v21, v22, v20")), loop(load16 + mfma + times(8, "v_fma_f32 v20, v21, v22, v20"))}};
}

std::vector<Case> errata_cases() {
  const std::string fma = "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[0:1]",
                    scaled = "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3], ";
  const std::string first = "v_mfma_f32_16x16x32_f16 v[0:3], v[8:11], v[12:15], v[0:3]\n", unlike = first + mfma,
                    unlike_later = first + "s_nop 5\n" + mfma;
  const std::string reload = "v_readlane_b32 s8, v20, 0\n v_readlane_b32 s9, v20, 1\n s_load_dword s10, s[8:9], 0x0";
  const Snippet arguments{.vgprs = 64, .accum_offset = 64, .sgprs = 48, .descriptor = ".amdhsa_user_sgpr_kernarg_segment_ptr 1"};
  return {{"ERR001", fma + " op_sel:[0,1,0]", fma + " op_sel_hi:[1,0,1]", "gfx950"},
          {"ERR002", scaled + "s4, v21", scaled + "v20, v21", "gfx950"},
          {"CMP001", unlike, unlike_later, "gfx950"},
          {"CMP002", "v_writelane_b32 v20, s40, 0\n v_writelane_b32 v20, s1, 1\n" + reload,
           "v_writelane_b32 v20, s0, 0\n v_writelane_b32 v20, s1, 1\n" + reload, "gfx942", arguments, arguments},
          {"CMP003", "buffer_wbl2 sc1\n global_store_dword v4, v1, s[2:3]",
           "buffer_wbl2 sc1\n s_waitcnt vmcnt(0)\n global_store_dword v4, v1, s[2:3]"}};
}

std::vector<Case> control_cases() {
  const std::string by_lane = "again:\n v_cmp_lt_u32_e32 vcc, v1, v2\n s_or_b64 s[4:5], vcc, s[4:5]\n s_andn2_b64 exec, exec, "
                              "s[4:5]\n s_cbranch_execnz again";
  const std::string waterfall = "again:\n v_readfirstlane_b32 s8, v1\n v_cmp_eq_u32_e32 vcc, s8, v1\n s_and_saveexec_b64 s[4:5], "
                                "vcc\n s_xor_b64 exec, exec, s[4:5]\n s_cbranch_execnz again";
  const std::string branch = "v_cmp_lt_u32_e32 vcc, v1, v2\n s_and_saveexec_b64 s[4:5], vcc\n v_nop\n s_or_b64 exec, exec, s[4:5]";
  return {{"CF001", by_lane, loop("s_cmp_lt_u32 s0, s1")},
          {"CF002", waterfall, by_lane},
          {"CF003", loop(branch), branch + "\n" + loop("s_nop 0")},
          {"CF004", loop("s_swappc_b64 s[30:31], s[2:3]"), "s_swappc_b64 s[30:31], s[2:3]\n" + loop("s_nop 0")},
          {"ATM001", "global_atomic_add v0, v1, v2, s[2:3] sc0",
           "global_atomic_add v0, v1, v2, s[2:3] sc0\n s_waitcnt vmcnt(0)\n global_store_dword v1, v0, s[2:3]"},
          {"ATM002", "global_atomic_add v1, v2, s[2:3] sc1", "global_atomic_add v1, v2, s[2:3]"},
          {"ATM003", loop("global_atomic_cmpswap v0, v1, v[2:3], s[2:3] sc0"), "global_atomic_cmpswap v0, v1, v[2:3], s[2:3] sc0"},
          {"HAZ001", loop("s_nop 3\n v_nop"), loop("s_nop 0\n" + times(40, "v_add_u32_e32 v0, v1, v0"))},
          {"HAZ003", "global_load_lds_dword v0, s[2:3]\n ds_read_b32 v1, v2",
           "global_load_lds_dword v0, s[2:3]\n s_waitcnt vmcnt(0)\n ds_read_b32 v1, v2"}};
}

std::vector<Case> bounds_cases() {
  const Snippet lds{.vgprs = 128, .accum_offset = 128, .sgprs = 48, .lds_bytes = 1024};
  const Snippet arguments{.descriptor = ".amdhsa_user_sgpr_kernarg_segment_ptr 1"}; // 24 bytes of them
  const std::string lane16 = "v_lshlrev_b32_e32 v4, 4, v0\n";
  return {{"BND001", lane4 + "ds_read_b32 v1, v4 offset:4", lane4 + "ds_read_b32 v1, v4", "gfx942", lds, lds},
          {"BND002", "s_load_dword s4, s[0:1], 0x18", "s_load_dword s4, s[0:1], 0x14", "gfx942", arguments, arguments},
          {"BND003", "v_mov_b32_e32 v8, v0", "v_mov_b32_e32 v7, v0", "gfx942", {.vgprs = 8}, {.vgprs = 8}},
          {"BND004", lane16 + "ds_read_b128 v[8:11], v4 offset:4", lane16 + "ds_read_b128 v[8:11], v4 offset:16"}};
}

} // namespace

TEST_CASE("every rule fires on what it is for, and is silent on what looks like it") {
  std::set<std::string> covered{"SPL003", "LCH003", "LCH005", "LCH006", "PIN001", // below
                                "DAT001", "DAT002", "DAT003", "DAT004",           // data_flow_test.cpp
                                "HAZ002"};                                        // hazard_rules_test.cpp
  for (const auto& cases :
       {memory_cases(), lds_cases(), wait_cases(), resource_cases(), arithmetic_cases(), errata_cases(), control_cases(), bounds_cases()})
    for (const Case& c : cases) {
      CAPTURE(c.id);
      CHECK(found(c, c.fires, c.firing));
      CHECK_FALSE(found(c, c.silent, c.quiet));
      CHECK(covered.insert(c.id).second);
    }
  for (const Rule& rule : all_rules()) CHECK_MESSAGE(covered.contains(std::string(rule.id)), rule.id);
}

TEST_CASE("OCC002: registers that the descriptor allocates limit as well, but for those that LLVM adds where LDS limits") {
  const auto fires = [](const std::string& allocated) {
    std::string text = kernel_text("", "gfx942", {.lds_bytes = 20000});
    const std::string key = ".amdhsa_next_free_vgpr 8";
    text.replace(text.find(key), key.size(), ".amdhsa_next_free_vgpr " + allocated); // the metadata says 8 all the same
    const CodeObject object = load_code_object(assemble(text, target_facts("gfx942")), "snippet");
    return !lint(analyse(object, object.kernel("k")), {.only = {"OCC002"}}).empty();
  };
  CHECK(fires("8"));         // LDS allows 3 waves, 8 registers 8
  CHECK_FALSE(fires("168")); // no more than 3
  CHECK(fires("136"));       // the fewest that allow no more than 3: LLVM's own doing
  CHECK_FALSE(fires("256"));
}

TEST_CASE("rules on what a snippet cannot say") {
  const auto analysed = [](const CodeObject& object) { return analyse(object, object.kernel("k")); };
  const auto fires = [](const KernelAnalysis& k, const char* id, const LintOptions& more = {}) {
    LintOptions options = more;
    options.only = {id};
    return !lint(k, options).empty();
  };
  const CodeObject object =
      assemble_kernel("s_load_dword s4, s[0:1], 0x8\n v_mov_b32_e32 v40, 0\n v_mfma_f32_16x16x16_f16 v[44:47], v[8:9], v[10:11], v[44:47]",
                      "gfx942", {.vgprs = 64, .accum_offset = 64, .descriptor = ".amdhsa_user_sgpr_kernarg_segment_ptr 1"});
  KernelAnalysis k = analysed(object);
  CHECK_FALSE(fires(k, "SPL003"));
  k.facts.resources.sgpr_spills = 2;
  CHECK(fires(k, "SPL003"));
  CHECK(fires(k, "LCH003"));
  CHECK_FALSE(fires(k, "LCH005")); // nothing says that a compiler made it
  k.kernel.metadata->uniform_workgroup_size = 1;
  CHECK_FALSE(fires(k, "LCH003"));
  CHECK(fires(k, "LCH005")); // x is never loaded
  k.kernel.metadata->arguments.erase(k.kernel.metadata->arguments.begin());
  CHECK_FALSE(fires(k, "LCH005"));
  CHECK(fires(k, "LCH006"));
  k.facts.target_id = "gfx942:xnack-";
  CHECK_FALSE(fires(k, "LCH006"));
  CHECK_FALSE(fires(k, "PIN001"));
  CHECK(fires(k, "PIN001", {.pinned = PinnedRegisters{.first_vgpr = 40, .allowed = {"v_mfma_"}}}));
  CHECK_FALSE(fires(k, "PIN001", {.pinned = PinnedRegisters{.first_vgpr = 41, .allowed = {"v_mfma_"}}}));
}

TEST_CASE("WAIT003: LDS reads have to be complete before a barrier") {
  const auto body = [](const std::string& between) {
    return loop("ds_read_b32 v0, v4\n ds_read_b32 v1, v4 offset:512\n s_waitcnt lgkmcnt(0)\n v_add_f32_e32 v5, v0, v0\n" + between +
                "s_waitcnt lgkmcnt(0)\n v_add_f32_e32 v5, v1, v1");
  };
  CHECK(found({"WAIT003", "", ""}, body(""), wide));
  CHECK_FALSE(found({"WAIT003", "", ""}, body("s_barrier\n"), wide));
}

TEST_CASE("BND001: lanes and waves that a workgroup does not have touch nothing") {
  const auto severities = [](const std::string& body, int lanes) {
    const CodeObject object =
        assemble_kernel(body, "gfx942", {.vgprs = 32, .accum_offset = 32, .sgprs = 48, .lds_bytes = 512, .workgroup_size = lanes});
    std::vector<Severity> result;
    for (const Finding& f : lint(analyse(object, object.kernel("k")), {.only = {"BND001"}})) result.push_back(f.severity);
    return result;
  };
  const std::string read = lane4 + "ds_read_b32 v1, v4", far = "v_lshlrev_b32_e32 v4, 4, v0\n ds_read_b32 v1, v4"; // 4 or 16 B per lane
  CHECK(severities(read, 128).empty());
  CHECK(severities(read, 256) == std::vector{Severity::warning}); // in the last of four waves
  CHECK(severities(read, 1024).empty());                          // a bound, not a size
  CHECK(severities(far, 64) == std::vector{Severity::error});
  CHECK(severities(far, 32).empty());
  // The first two waves alone come there.
  CHECK(severities("v_readfirstlane_b32 s8, v0\n s_cmp_lt_u32 s8, 128\n s_cbranch_scc0 done\n" + read + "\ndone:\n", 256).empty());
}

TEST_CASE("MFM003 points at the s_nop, LDS002 names its model and joins places") {
  const auto of = [](const char* id, const std::string& body, const Snippet& snippet) {
    const CodeObject object = assemble_kernel(body, "gfx942", snippet);
    return lint(analyse(object, object.kernel("k")), {.only = {id}});
  };
  const auto stall = of("MFM003", loop(mfma + "v_nop\n s_nop 5\n v_add_f32_e32 v20, v0, v1"), wide);
  REQUIRE(stall.size() == 1);
  CHECK(stall[0].instruction == "s_nop 5");
  const auto banks = of("LDS002",
                        "v_lshlrev_b32_e32 v4, 7, v0\n v_lshlrev_b32_e32 v5, 5, v0\n" +
                            loop("ds_write_b128 v4, v[8:11]\n ds_write_b128 v4, v[8:11] offset:16\n ds_read_b64 v[12:13], v5"),
                        wide);
  REQUIRE(banks.size() == 2);
  CHECK(banks[0].severity == Severity::warning);
  CHECK(banks[0].message.find("by documented banks") != std::string::npos);
  CHECK(banks[0].message.ends_with("; 2 such places in the loop"));
  CHECK(banks[1].severity == Severity::info); // nobody has published what 8-byte reads see on gfx942
  CHECK(banks[1].message.find("by assumed banks") != std::string::npos);
  const auto all = of("LDS002", "v_lshlrev_b32_e32 v4, 7, v0\n" + loop("ds_read_b64 v[12:13], v4"), wide);
  REQUIRE(all.size() == 1);
  CHECK(all[0].severity == Severity::warning); // so many lanes meet whatever the banks are
}

TEST_CASE("cost rules are silent where nothing is lost, and say less where little is") {
  const auto severities = [](const char* id, const std::string& body, const char* arch = "gfx942") {
    const CodeObject object = assemble_kernel(body, arch, wide);
    std::vector<Severity> result;
    for (const Finding& f : lint(analyse(object, object.kernel("k")), {.only = {id}})) result.push_back(f.severity);
    return result;
  };
  using Severities = std::vector<Severity>;
  const Severities none, info{Severity::info}, warning{Severity::warning};
  // A loop that sleeps polls a flag.
  for (const char* id : {"MEM001", "WAIT001", "WAIT002"}) CHECK(severities(id, loop("s_sleep 2\n" + load4 + wait_all)) == none);
  // So does one that loads the same address and compares what comes.
  const std::string poll = loop("global_load_dword v1, v4, s[2:3]\n s_waitcnt vmcnt(0)\n v_cmp_eq_u32_e32 vcc, 0, v1\n");
  for (const char* id : {"MEM001", "WAIT001", "WAIT002"}) CHECK(severities(id, poll) == none);
  // WAIT002: a burst that is waited for load by load.
  const std::string burst = "global_load_dwordx4 v[0:3], v4, s[2:3]\n global_load_dwordx4 v[8:11], v4, s[2:3] offset:16\n";
  CHECK(severities("WAIT002",
                   loop(burst + "s_waitcnt vmcnt(1)\n v_add_f32_e32 v5, v0, v0\n s_waitcnt vmcnt(0)\n v_add_f32_e32 v5, v8, v8")) == none);
  CHECK(severities("WAIT002", loop(burst + "s_waitcnt vmcnt(0)\n v_add_f32_e32 v5, v0, v0")) == warning);
  // WAIT005: a shuffle for what the same repetition computes is no copy for the next one.
  const std::string shuffle =
      load16 + "s_waitcnt vmcnt(0)\n v_mov_b32_e32 v8, v0\n v_mov_b32_e32 v9, v1\n v_mov_b32_e32 v10, v2\n v_mov_b32_e32 v11, v3\n";
  CHECK(severities("WAIT005", loop("v_add_f32_e32 v12, v8, v12\n" + shuffle)) == warning);
  CHECK(severities("WAIT005", loop(shuffle + "v_add_f32_e32 v12, v8, v12\n")) == none);
  // MEM010: what runs once brings little.
  CHECK(severities("MEM010", load4 + "global_load_dword v1, v4, s[2:3] offset:4") == info);
  // SPL001: an error where it runs again and again.
  CHECK(severities("SPL001", "scratch_load_dword v0, off, off") == warning);
  CHECK(severities("SPL001", loop("scratch_load_dword v0, off, off")) == Severities{Severity::error});
  // SYNC001: the loads came back long ago, are waited for behind the barrier anyway, or the wait is not in the inner loop.
  const std::string drain = "s_waitcnt vmcnt(0)\n s_barrier\n" + times(8, "v_nop");
  CHECK(severities("SYNC001", loop(load16 + drain)) == warning);
  CHECK(severities("SYNC001", loop(load16 + times(64, "v_nop") + drain)) == none);
  CHECK(severities("SYNC001", loop(load16 + "s_waitcnt vmcnt(0)\n s_barrier\n v_nop\n s_waitcnt vmcnt(0)\n" + times(8, "v_nop"))) == none);
  CHECK(severities("SYNC001", "outer:\n" + load16 + drain + loop("s_nop 0") + "s_cbranch_vccnz outer\n") == none);
  // WAIT003: so long after the loads a weaker wait waits no less.
  const std::string second = "global_load_dwordx4 v[8:11], v4, s[2:3]\n",
                    uses = "s_waitcnt vmcnt(0)\n v_add_f32_e32 v5, v0, v0\n s_waitcnt vmcnt(0)\n v_add_f32_e32 v5, v8, v8";
  CHECK(severities("WAIT003", loop(load16 + second + uses)) == warning);
  CHECK(severities("WAIT003", loop(load16 + second + times(64, "v_nop") + uses)) == none);
  const std::string reads = "ds_read_b32 v20, v4\n ds_read_b32 v21, v4 offset:512\n",
                    late = "s_waitcnt lgkmcnt(0)\n v_add_f32_e32 v5, v20, v20\n s_waitcnt lgkmcnt(0)\n v_add_f32_e32 v5, v21, v21";
  CHECK(severities("WAIT003", loop(reads + times(3, mfma) + late)) == warning);
  CHECK(severities("WAIT003", loop(reads + times(5, mfma) + late)) == none); // 16 clocks each
  // MFM003: s_nop behind the states that the reader needs waits for something else; a hundredth of the loop's time is little.
  const std::string stall = "s_nop 6\n v_add_f32_e32 v20, v0, v1";
  CHECK(severities("MFM003", loop(mfma + stall)) == warning);
  CHECK(severities("MFM003", loop(mfma + times(8, "v_add_u32_e32 v21, v22, v21") + stall)) == none);
  CHECK(severities("MFM003", loop(times(200, mfma_next) + mfma + stall)) == info);
  CHECK(severities("MFM003", loop(mfma + "s_nop 6\n" + times(8, "v_add_u32_e32 v21, v22, v21") + "v_add_f32_e32 v20, v0, v1")) == none);
  // MFM001, LDS002, MEM001: something else takes longer.
  CHECK(severities("MFM001", loop(times(8, mfma)), "gfx950") == warning);
  CHECK(severities("MFM001", loop(mfma + times(8, load16)), "gfx950") == info);
  const std::string apart = "v_lshlrev_b32_e32 v4, 7, v0\n";
  CHECK(severities("LDS002", apart + loop("ds_read_b128 v[12:15], v4")) == warning);
  CHECK(severities("LDS002", apart + loop("ds_read_b128 v[12:15], v4\n" + times(100, mfma))) == info);
  CHECK(severities("LDS002", apart + loop("ds_read_b64 v[8:9], v4"), "gfx950") == warning);
  CHECK(severities("LDS002", apart + loop("ds_read_b64_tr_b16 v[8:9], v4"), "gfx950") == info); // banks that nobody has published
  CHECK(severities("MEM001", loop(load4 + times(200, mfma))) == info);
  // Bound by memory, with 4 KB per wave in flight: wide loads would bring no more.
  const std::string next = "global_load_dword v1, v4, s[2:3]\n";
  const auto stream = [&](int pairs) { return loop(times(pairs, load4 + next) + times(4, mfma_next) + wait_all); };
  CHECK(severities("MEM001", stream(1)) == warning);
  CHECK(severities("MEM001", stream(16)) == info);
  CHECK(severities("MEM001", loop(load4 + times(20, "global_load_lds_dword v4, s[2:3]"))) == info); // a twentieth of the data
  CHECK(severities("MEM001", loop(load4 + wait_all) + "again:\n" + load4 + wait_all + "s_cbranch_scc0 again\n") ==
        warning); // alike: one finding
}

TEST_CASE("facts: accum_offset splits the registers, and hints hold only when nothing else limits") {
  const CodeObject object = assemble_kernel("v_accvgpr_write_b32 a3, 0", "gfx942", {.vgprs = 512, .accum_offset = 256, .sgprs = 48});
  const KernelFacts facts = analyse(object, object.kernel("k")).facts;
  CHECK(facts.resources.arch_vgprs == 256);
  CHECK(facts.resources.agprs == 256);
  const CodeObject unused = assemble_kernel("v_nop", "gfx942", {.vgprs = 512, .accum_offset = 256, .sgprs = 48});
  CHECK(analyse(unused, unused.kernel("k")).facts.resources.arch_vgprs == 256); // no wave has more
  const TargetFacts& target = target_facts("gfx942");
  CHECK(occupancy(target, {.vgprs = 168, .sgprs = 48, .lds_bytes = 0, .workgroup_size = 256}).next_vgprs > 0);
  CHECK(occupancy(target, {.vgprs = 168, .sgprs = 48, .lds_bytes = 20'000, .workgroup_size = 256}).next_vgprs ==
        0); // LDS allows no more either
}

} // namespace rules_test
