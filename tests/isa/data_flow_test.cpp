// DAT001 to DAT004: each planted defect is found on each target, with its path, and its mended twin is not.
#include "isa_checks/verdict/lint.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

namespace data_flow_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

struct Defect {
  std::string rule, name, broken, mended;
};

const Snippet around{.vgprs = 64,
                     .accum_offset = 32,
                     .sgprs = 48,
                     .lds_bytes = 8192,
                     .descriptor =
                         ".amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_user_sgpr_dispatch_ptr 1\n.amdhsa_user_sgpr_queue_ptr 1"};

const std::string load = "global_load_dword v1, v0, s[2:3]\n", use = "v_add_f32_e32 v2, v1, v1\n", wait = "s_waitcnt vmcnt(0)\n",
                  lgkm = "s_waitcnt lgkmcnt(0)\n", both = "s_waitcnt vmcnt(0) lgkmcnt(0)\n";

std::vector<Defect> waits() {
  const std::string other = "global_load_dword v5, v0, s[2:3]\n";
  const std::string mfma = "v_mfma_f32_16x16x16_f16 v[8:11], v[16:17], v[18:19], v[8:11]\n";
  return {
      {"DAT001", "no wait", load + use, load + wait + use},
      {"DAT001", "overwritten", load + "v_mov_b32_e32 v1, 0", load + wait + "v_mov_b32_e32 v1, 0"},
      {"DAT001", "one too many left", load + other + "s_waitcnt vmcnt(1)\n v_add_f32_e32 v2, v5, v5",
       load + other + "s_waitcnt vmcnt(1)\n" + use},
      {"DAT001", "the other counter", load + lgkm + use, load + wait + use},
      {"DAT001", "scalar", "s_load_dword s8, s[0:1], 0x0\n s_add_u32 s9, s8, 1",
       "s_load_dword s8, s[0:1], 0x0\n" + lgkm + "s_add_u32 s9, s8, 1"},
      {"DAT001", "scalar loads come in any order",
       "s_load_dword s8, s[0:1], 0x0\n s_load_dword s9, s[0:1], 0x4\n s_waitcnt lgkmcnt(1)\n s_mov_b32 s10, s8",
       "s_load_dword s8, s[0:1], 0x0\n s_load_dword s9, s[0:1], 0x4\n" + lgkm + "s_mov_b32 s10, s8"},
      {"DAT001", "LDS", "ds_read_b32 v1, v0\n" + use, "ds_read_b32 v1, v0\n" + lgkm + use},
      {"DAT001", "LDS behind a scalar load", "ds_read_b32 v1, v0\n s_load_dword s8, s[0:1], 0x0\n s_waitcnt lgkmcnt(1)\n" + use,
       "ds_read_b32 v1, v0\n s_load_dword s8, s[0:1], 0x0\n" + lgkm + use},
      {"DAT001", "flat needs both", "flat_load_dword v1, v[4:5]\n" + wait + use, "flat_load_dword v1, v[4:5]\n" + both + use},
      {"DAT001", "flat, one after the other", "flat_load_dword v1, v[4:5]\n" + lgkm + use,
       "flat_load_dword v1, v[4:5]\n" + lgkm + wait + use},
      {"DAT001", "on one of two paths", load + "s_cbranch_scc0 join\n" + wait + "join:\n" + use,
       load + "s_cbranch_scc0 join\n s_nop 0\njoin:\n" + wait + use},
      {"DAT001", "over the back edge", load + wait + "again:\n" + use + load + "s_cbranch_scc1 again",
       load + "again:\n" + wait + use + load + "s_cbranch_scc1 again"},
      {"DAT001", "stored", load + "global_store_dword v0, v1, s[2:3]", load + wait + "global_store_dword v0, v1, s[2:3]"},
      {"DAT001", "returning atomic", "global_atomic_add v1, v0, v3, s[2:3] sc0\n" + use,
       "global_atomic_add v1, v0, v3, s[2:3] sc0\n" + wait + use},
      {"DAT001", "as an address", load + "global_load_dword v1, v1, s[2:3]", load + wait + "global_load_dword v1, v1, s[2:3]"},
      {"DAT001", "matrix operand", "ds_read_b64 v[16:17], v0\n" + mfma, "ds_read_b64 v[16:17], v0\n" + lgkm + mfma},
      {"DAT001", "accumulation register", "global_load_dwordx4 a[0:3], v0, s[2:3]\n v_accvgpr_read_b32 v5, a2",
       "global_load_dwordx4 a[0:3], v0, s[2:3]\n" + wait + "v_accvgpr_read_b32 v5, a2"},
      {"DAT001", "a store before, not behind", "global_store_dword v0, v3, s[2:3]\n" + load + "s_waitcnt vmcnt(1)\n" + use,
       load + "global_store_dword v0, v3, s[2:3]\n s_waitcnt vmcnt(1)\n" + use},
      {"DAT001", "buffer", "buffer_load_dword v1, v0, s[4:7], 0 offen\n" + use, "buffer_load_dword v1, v0, s[4:7], 0 offen\n" + wait + use},
      {"DAT001", "lane exchange", "ds_bpermute_b32 v1, v0, v3\n" + use, "ds_bpermute_b32 v1, v0, v3\n" + lgkm + use},
      {"DAT001", "last register of four", "global_load_dwordx4 v[8:11], v0, s[2:3]\n v_mov_b32_e32 v2, v11",
       "global_load_dwordx4 v[8:11], v0, s[2:3]\n v_mov_b32_e32 v2, v12"},
      {"DAT001", "branch on it", "s_load_dword s8, s[0:1], 0x0\n s_cmp_eq_u32 s8, 0",
       "s_load_dword s8, s[0:1], 0x0\n" + lgkm + "s_cmp_eq_u32 s8, 0"}};
}

std::vector<Defect> uninitialised() {
  const std::string written = "v_mov_b32_e32 v3, 0\n", out = "\n global_store_dword v0, v2, s[0:1]";
  const std::string mfma = "v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[4:5], a[0:3]\n global_store_dword v0, a1, s[0:1]\n",
                    operands = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n";
  const std::string shift = "v_lshlrev_b64 v[6:7], 2, v[4:5]\n global_store_dword v0, v7, s[0:1]";
  const std::string product = "v_mov_b32_e32 v4, 0\n v_mad_u64_u32 v[6:7], s[20:21], v0, v0, v[4:5]\n global_store_dword v0, ";
  const std::string add = "v_add_f32_e32 v2, v3, v0" + out, some = "v_cmp_eq_u32_e32 vcc, 0, v0\n";
  const std::string halves =
      "v_mov_b32_e32 v4, 0\n v_pk_add_f32 v[2:3], v[4:5], v[4:5] op_sel:[0,0] op_sel_hi:[1,1]\n global_store_dword v0, ";
  std::string zeros;
  for (int i = 0; i < 4; ++i) zeros += "v_accvgpr_write_b32 a" + std::to_string(i) + ", 0\n";
  const auto around_it = [&](const std::string& before) { // two guards, behind which the sum is not needed
    return operands + before +
           "s_cmp_lt_i32 s2, 1\n s_cbranch_scc1 none\n s_cmp_lt_i32 s3, 1\n s_cbranch_scc1 none\n"
           "v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[4:5], a[0:3]\n s_branch out\nnone:\n" +
           zeros + "out:\n global_store_dword v0, a1, s[0:1]\n";
  };
  return {
      {"DAT002", "vector", add, written + add},
      {"DAT002", "scalar", "s_add_u32 s20, s21, 1\n v_mov_b32_e32 v2, s20" + out,
       "s_mov_b32 s21, 0\n s_add_u32 s20, s21, 1\n v_mov_b32_e32 v2, s20" + out},
      {"DAT002", "base address", "global_load_dword v1, v0, s[20:21]", "s_mov_b64 s[20:21], s[0:1]\n global_load_dword v1, v0, s[20:21]"},
      {"DAT002", "vector address", "global_load_dword v1, v3, s[0:1]", written + "global_load_dword v1, v3, s[0:1]"},
      {"DAT002", "stored data", "global_store_dword v0, v3, s[0:1]", written + "global_store_dword v0, v3, s[0:1]"},
      {"DAT002", "on one of two paths", "s_cmp_eq_u32 s0, 0\n s_cbranch_scc1 join\n" + written + "join:\n " + add,
       "s_cmp_eq_u32 s0, 0\n s_cbranch_scc1 join\n s_nop 0\njoin:\n" + written + add},
      {"DAT002", "accumulator", operands + mfma, operands + zeros + mfma},
      {"DAT002", "half of a pair", "v_mov_b32_e32 v4, 0\n " + shift, operands + shift},
      {"DAT002", "one register of a pair",
       "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v6, 0\n v_mov_b32_e32 v7, 0\n v_pk_mul_f32 v[2:3], v[4:5], v[6:7]\n global_store_dwordx2 v0, "
       "v[2:3], s[0:1]",
       "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v6, 0\n v_mov_b32_e32 v7, 0\n v_pk_mul_f32 v[2:3], v[4:5], v[6:7] op_sel_hi:[0,1]\n "
       "global_store_dwordx2 v0, v[2:3], s[0:1]"},
      {"DAT002", "the half of a packed sum that is used", halves + "v3, s[0:1]", halves + "v2, s[0:1]"},
      {"DAT002", "a mask of lanes that are on", "s_and_b64 s[20:21], s[22:23], exec\n s_and_saveexec_b64 s[24:25], s[20:21]",
       "s_andn2_b64 s[20:21], s[22:23], exec\n s_and_saveexec_b64 s[24:25], s[20:21]"},
      {"DAT002", "chosen from another register", some + "v_cndmask_b32_e32 v2, v3, v0, vcc" + out,
       some + "v_cndmask_b32_e32 v2, v2, v0, vcc" + out},
      {"DAT002", "memory, not scratch", "global_store_dword v0, v3, s[0:1]", "scratch_store_dword off, v3, off"},
      {"DAT002", "a buffer of lanes, not one of scratch", "buffer_store_dword v3, v0, s[0:3], 0 offen",
       "buffer_store_dword v3, off, s[0:3], 0 offset:4"},
      {"CMP002", "a lane of spilled scalars",
       "v_writelane_b32 v20, s0, 0\n v_readlane_b32 s8, v20, 0\n v_readlane_b32 s9, v20, 1\n s_load_dword s10, s[8:9], 0x0",
       "v_writelane_b32 v20, s0, 0\n v_writelane_b32 v20, s1, 1\n v_readlane_b32 s8, v20, 0\n v_readlane_b32 s9, v20, 1\n s_load_dword "
       "s10, s[8:9], 0x0"},
      {"DAT002", "an accumulator, where another way around it brings a value", around_it(""), around_it(zeros)},
      {"DAT002", "the upper half of a product and sum", product + "v7, s[0:1]", product + "v6, s[0:1]"},
      {"DAT002", "through a copy", "v_mov_b32_e32 v4, v3\n v_add_f32_e32 v2, v4, v0" + out,
       written + "v_mov_b32_e32 v4, v3\n v_add_f32_e32 v2, v4, v0" + out},
      {"DAT002", "which lanes are on", "v_cmp_eq_u32_e32 vcc, v0, v3\n s_and_saveexec_b64 s[20:21], vcc",
       written + "v_cmp_eq_u32_e32 vcc, v0, v3\n s_and_saveexec_b64 s[20:21], vcc"},
      {"DAT002", "branch", "s_cbranch_vccz done\n s_nop 0\ndone:", "v_cmp_eq_u32_e32 vcc, 0, v0\n s_cbranch_vccz done\n s_nop 0\ndone:"},
      // What is computed and not used does no harm, nor does 0 * x, a row of a matrix that nobody looks at, or padding in LDS.
      {"DAT002", "used", add, "v_add_f32_e32 v2, v3, v0"},
      {"DAT002", "times 1", "s_mul_i32 s20, 1, s21\n v_mov_b32_e32 v2, s20" + out, "s_mul_i32 s20, 0, s21\n v_mov_b32_e32 v2, s20" + out},
      {"DAT002", "the row that is used", operands + "v_accvgpr_write_b32 a0, 0\n" + mfma, operands + "v_accvgpr_write_b32 a1, 0\n" + mfma},
      {"DAT002", "all of it", "ds_write_b64 v0, v[2:3]", written + "ds_write_b64 v0, v[2:3]"}};
}

std::vector<Defect> races() {
  const std::string address = "v_lshlrev_b32_e32 v1, 2, v0\n", write = "ds_write_b32 v1, v0\n", barrier = "s_barrier\n";
  const std::string next = "ds_read_b32 v2, v1 offset:256\n"; // what the next wave wrote
  const std::string far = address + "v_xor_b32_e32 v3, 0x300, v1\n";
  const std::string guard = "s_cmp_lt_i32 s2, 1\n s_cbranch_scc1 done\n";
  const std::string sdwa = "v_mov_b32_e32 v4, 2\n v_lshlrev_b32_sdwa v1, v4, v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD "
                           "src1_sel:WORD_0\n";
  const std::string mirrored = "v_xor_b32_e32 v3, 0xfc, v1\n v_xor_b32_e32 v3, 0x100, v3\n";
  return {{"DAT003", "nothing between", address + write + next, address + write + lgkm + barrier + next},
          {"DAT003", "no barrier", address + write + lgkm + next, address + write + lgkm + barrier + next},
          {"DAT003", "no wait", address + write + barrier + next, address + write + lgkm + barrier + next},
          {"DAT003", "barrier before the wait", address + write + barrier + lgkm + next, address + write + lgkm + barrier + next},
          {"DAT003", "mirrored over waves", address + mirrored + write + lgkm + "ds_read_b32 v2, v3",
           address + mirrored + write + lgkm + "ds_read_b32 v2, v1"},
          {"DAT003", "both halves", address + "ds_write2_b32 v1, v0, v0 offset1:64\n" + lgkm + "ds_read_b32 v2, v1 offset:256",
           address + "ds_write2_b32 v1, v0, v0 offset1:64\n" + lgkm + barrier + "ds_read_b32 v2, v1 offset:256"},
          // Pairs of waves that are further apart, the second barrier of a loop, a guard that is the same in all waves, SDWA.
          {"DAT003", "of four waves, the last and the first", far + write + lgkm + "ds_read_b32 v2, v3",
           far + write + lgkm + barrier + "ds_read_b32 v2, v3"},
          {"DAT003", "read, then written", address + next + lgkm + write, address + next + lgkm + barrier + write},
          {"DAT003", "the second barrier of a loop", address + "again:\n" + write + lgkm + barrier + next + lgkm + "s_cbranch_scc1 again",
           address + "again:\n" + write + lgkm + barrier + next + lgkm + barrier + "s_cbranch_scc1 again"},
          {"DAT003", "behind a guard", guard + address + write + lgkm + next + "done:\n",
           guard + address + write + lgkm + barrier + next + "done:\n"},
          {"DAT003", "an address by SDWA", sdwa + write + lgkm + next, sdwa + write + lgkm + barrier + next},
          {"DAT003", "all waves take the branch", guard + address + write + lgkm + next + "done:\n",
           "v_readfirstlane_b32 s8, v0\n s_cmp_lt_i32 s8, 64\n s_cbranch_scc1 done\n" + address + write + lgkm + next + "done:\n"},
          {"DAT003", "over the back edge", address + "again:\n" + next + lgkm + barrier + write + lgkm + "s_cbranch_scc1 again",
           address + "again:\n" + next + lgkm + barrier + write + lgkm + barrier + "s_cbranch_scc1 again"}};
}

std::vector<Defect> overwrites() {
  const std::string store = "global_store_dwordx4 v0, v[4:7], s[2:3]\n", clear = "v_mov_b32_e32 v5, 0\n";
  return {{"DAT004", "at once", store + clear, store + "s_nop 1\n" + clear},
          {"DAT004", "one state", store + "s_nop 0\n" + clear, store + "s_nop 0\n s_nop 0\n" + clear},
          {"DAT004", "three dwords", "global_store_dwordx3 v0, v[4:6], s[2:3]\n v_mov_b32_e32 v6, 0",
           "global_store_dwordx2 v0, v[4:5], s[2:3]\n" + clear},
          {"DAT004", "buffer", "buffer_store_dwordx4 v[4:7], v0, s[4:7], 0 offen\n s_nop 0\n" + clear,
           "buffer_store_dwordx4 v[4:7], v0, s[4:7], 0 offen\n s_nop 1\n" + clear},
          {"DAT004", "buffer, a scalar offset", "buffer_store_dwordx4 v[4:7], v0, s[4:7], s9 offen\n" + clear,
           "buffer_store_dwordx4 v[4:7], v0, s[4:7], s9 offen\n s_nop 0\n" + clear},
          {"DAT004", "a wait that leaves it", store + "s_waitcnt vmcnt(1)\n" + clear, store + "s_waitcnt vmcnt(0)\n" + clear},
          {"DAT004", "over the back edge", "again:\n" + clear + store + "s_cbranch_scc1 again",
           "again:\n s_nop 0\n" + clear + store + "s_cbranch_scc1 again"}};
}

std::vector<Finding> findings(const Defect& d, const std::string& body, const char* arch) {
  const CodeObject object = assemble_kernel(body, arch, around);
  return lint(analyse(object, object.kernel("k")), {.only = {d.rule}});
}

} // namespace

TEST_CASE("planted defects of data flow") {
  for (const char* arch : {"gfx942", "gfx950"}) {
    std::map<std::string, int> planted;
    for (const auto& defects : {waits(), uninitialised(), races(), overwrites()})
      for (const Defect& d : defects) {
        CAPTURE(arch);
        CAPTURE(d.rule);
        CAPTURE(d.name);
        const auto found = findings(d, d.broken, arch), twin = findings(d, d.mended, arch);
        REQUIRE(found.size() == 1);
        CHECK(found[0].severity == Severity::error);
        CHECK(found[0].path.size() >= 2); // where it begins, and where it goes wrong
        CHECK_MESSAGE(twin.empty(), (twin.empty() ? "" : twin[0].message));
        ++planted[d.rule];
        ++planted["all"];
      }
    CHECK(planted["all"] > 30);
  }
}

TEST_CASE("the path of a finding names the branches on the way") {
  const Defect d{"DAT001", "", load + "s_cbranch_scc0 join\n" + wait + "join:\n" + use, ""};
  const auto found = findings(d, d.broken, "gfx942");
  REQUIRE(found.size() == 1);
  CHECK(
      found[0].message ==
      "v1 is read before a wait for vmcnt has completed 0x0 global_load_dword, which fills it: 8 clocks behind it, the data takes longer");
  CHECK(found[0].path == std::vector<std::string>{"0x0 global_load_dword v1, v0, s[2:3]", "0x8 s_cbranch_scc0 1, taken to 0x10",
                                                  "0x10 v_add_f32_e32 v2, v1, v1"});
}

TEST_CASE("DAT001: a path does not take a branch against what it has decided") {
  const std::string compare = "s_cmp_eq_u32 s8, 1\n", over = compare + "s_cbranch_scc1 over\n" + load + "over:\n";
  const auto found = [](const std::string& body) { return findings({"DAT001", "", "", ""}, body + "done:\n", "gfx942"); };
  // The load is behind s8 != 1: what is behind s8 == 1 does not meet it.
  CHECK(found(over + compare + "s_cbranch_scc0 done\n" + use).empty());
  CHECK(found(over + "s_cmp_lg_u32 s8, 1\n s_cbranch_scc1 done\n" + use).empty());
  CHECK(found(over + "s_cmp_gt_u32 s8, 0\n s_cbranch_scc0 done\n s_cmp_lt_u32 s8, 2\n s_cbranch_scc0 done\n" + use).empty());
  CHECK(found(compare + "s_cbranch_scc1 done\n" + load + compare + "s_cbranch_scc0 done\n" + use).empty()); // decided before the load
  // Another register, another value, or one that was written between.
  CHECK(found(over + "s_cmp_eq_u32 s9, 1\n s_cbranch_scc0 done\n" + use).size() == 1);
  CHECK(found(over + "s_cmp_eq_u32 s8, 2\n s_cbranch_scc0 done\n" + use).size() == 1);
  CHECK(found(over + "s_mov_b32 s8, s9\n" + compare + "s_cbranch_scc0 done\n" + use).size() == 1);
  // The nearer way is excluded, the longer is not.
  const auto longer = found(over + compare +
                            "s_cbranch_scc1 behind\n s_mov_b32 s8, 0\n s_nop 0\nbehind:\n s_cmp_eq_u32 s8, 0\n"
                            "s_cbranch_scc0 done\n" +
                            use);
  CHECK(longer.size() == 1);
}

TEST_CASE("DAT001: a counter that is full completes the oldest") {
  const auto count = [](int younger) {
    std::string body = "flat_load_dword v1, v[4:5]\n" + lgkm;
    for (int i = 0; i < younger; ++i) body += "global_load_dword v8, v0, s[2:3]\n";
    return findings({"DAT001", "", "", ""}, body + use, "gfx942").size();
  };
  CHECK(count(62) == 1);
  CHECK(count(63) == 0);
}

TEST_CASE("DAT001: what a comparison of scalars decides may be a promise of the host") {
  const auto severity = [](const std::string& condition) {
    const auto found = findings({"DAT001", "", "", ""}, load + condition + "s_cbranch_scc0 join\n" + wait + "join:\n" + use, "gfx942");
    REQUIRE(found.size() == 1);
    return found[0].severity;
  };
  CHECK(severity("s_cmp_eq_u32 s8, 0\n") == Severity::warning);
  CHECK(severity("s_and_b32 s8, s9, s10\n") == Severity::error);
}

TEST_CASE("a loop's findings of one cause are one, with all places") {
  const Defect d{"DAT001", "",
                 "again:\n" + load + "ds_read_b32 v4, v0\n" + use +
                     "v_add_f32_e32 v3, v1, v1\n global_load_dword v6, v0, s[2:3]\n v_mov_b32_e32 v7, v6\n s_cbranch_scc1 again",
                 ""};
  const auto found = findings(d, d.broken, "gfx942");
  REQUIRE(found.size() == 1);
  CHECK(found[0].message.ends_with("; 2 such places in the loop"));
  CHECK(found[0].others.size() == 3);
}

TEST_CASE("DAT001: severity follows the time that lies between") {
  const auto severity = [](const std::string& body) {
    const auto found = findings({"DAT001", "", "", ""}, body, "gfx942");
    REQUIRE(found.size() == 1);
    return found[0].severity;
  };
  const auto nops = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "s_nop 15\n"; // 64 clocks
    return text;
  };
  const std::string read = "ds_read_b32 v1, v0\n";
  CHECK(severity(read + use) == Severity::error);
  CHECK(severity(read + nops(1) + use) == Severity::warning); // it may be there, and nothing makes sure of it
  CHECK(severity(read + nops(130) + use) == Severity::info);  // 32 waves of 15 operations of 16 passes are done by then
  CHECK(severity(load + nops(13) + use) == Severity::error);  // from memory
  CHECK(severity(load + nops(15) + use) == Severity::warning);
  CHECK(severity(load + nops(1000) + use) == Severity::warning); // memory promises nothing
  CHECK(severity(load + "s_barrier\n" + use) == Severity::warning);
  CHECK(severity(read + "global_load_dword v5, v0, s[2:3]\n" + wait + use) == Severity::warning); // the wait takes long enough
  const std::string two = "s_cbranch_scc0 out\n s_nop 0\n s_cbranch_vccz out\n";
  CHECK(severity(load + two + use + "out:\n") == Severity::info);                                      // they may exclude each other
  CHECK(severity("again:\n" + load + two + use + wait + "s_branch again\nout:\n") == Severity::error); // but the loop goes on some time
}

TEST_CASE("DAT003: waves that have their SIMDs to themselves stay in step behind a barrier, and time orders them") {
  Snippet alone = around;
  alone.vgprs = 512;
  alone.accum_offset = 256;
  const auto severity = [](const std::string& body, const Snippet& snippet) {
    const CodeObject object = assemble_kernel(body, "gfx942", snippet);
    const auto found = lint(analyse(object, object.kernel("k")), {.only = {"DAT003"}});
    REQUIRE(found.size() == 1);
    return found[0].severity;
  };
  const std::string address = "v_lshlrev_b32_e32 v1, 2, v0\n", barrier = "s_barrier\n", write = "ds_write_b32 v1, v0\n";
  const std::string read = "ds_read_b32 v2, v1 offset:256\n" + lgkm, soon = read + write, late = read + "s_nop 15\n s_nop 15\n" + write;
  CHECK(severity(address + barrier + soon, alone) == Severity::warning);
  CHECK(severity(address + barrier + late, alone) == Severity::info);         // LDS has served all four waves by then
  CHECK(severity(address + barrier + late, around) == Severity::error);       // other waves on the SIMD hold up one of them
  CHECK(severity(address + late, alone) == Severity::error);                  // nothing brought them together
  CHECK(severity(address + barrier + wait + late, alone) == Severity::error); // they waited for memory, each as long as it took
  CHECK(severity(address + barrier + "ds_read_b32 v2, v1 offset:256\n" + write, alone) == Severity::error); // one behind the other
}

TEST_CASE("DAT004: a buffer store with a scalar offset reads its first register in time") {
  const auto severity = [](const std::string& overwrites) {
    const auto found = findings({"DAT004", "", "", ""}, "buffer_store_dwordx4 v[4:7], v0, s[4:7], s9 offen\n" + overwrites, "gfx950");
    REQUIRE(found.size() == 1);
    return found[0].severity;
  };
  CHECK(severity("v_mov_b32_e32 v4, 0") == Severity::info);
  CHECK(severity("v_pk_mul_f32 v[4:5], v[8:9], v[10:11]") == Severity::error);
  CHECK(severity("v_mov_b32_e32 v7, 0") == Severity::error);
}

TEST_CASE("DAT004: CDNA2 needs one state less") {
  const Defect d{"DAT004", "", "global_store_dwordx4 v0, v[4:7], s[2:3]\n s_nop 0\n v_mov_b32_e32 v5, 0", ""};
  CHECK(findings(d, d.broken, "gfx90a").empty());
  CHECK(findings(d, d.broken, "gfx942").size() == 1);
}

} // namespace data_flow_test
