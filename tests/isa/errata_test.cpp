// Rules of published faults of chips (ERR) and compilers (CMP): which form and place fires, and which of it breaks a contract.
#include "isa_checks/verdict/errata.h"
#include "isa_checks/verdict/expectations.h"
#include "isa_checks/verdict/lint.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>
#include <string>
#include <vector>

namespace errata_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

using Severities = std::vector<Severity>;

const Snippet arguments{.vgprs = 64,
                        .accum_offset = 64,
                        .sgprs = 96,
                        .descriptor = ".amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_user_sgpr_dispatch_ptr 1"};

std::vector<Finding> findings(const char* id, const std::string& body, const char* arch = "gfx950") {
  const CodeObject object = assemble_kernel(body, arch, arguments);
  return lint(analyse(object, object.kernel("k")), {.only = {id}});
}

// What the rule says, by severity; the contract is broken by errors and by nothing else.
Severities severities(const char* id, const std::string& body, const char* arch = "gfx950") {
  const CodeObject object = assemble_kernel(body, arch, arguments);
  const KernelAnalysis k = analyse(object, object.kernel("k"));
  Severities result;
  for (const Finding& f : lint(k, {.only = {id}})) result.push_back(f.severity);
  const IsaReport report = check_isa(k, {.no_errata = true});
  const bool error = !result.empty() && result.front() == Severity::error;
  CHECK(report.met() == !error);
  if (error) CHECK(report.results.front().found.ends_with(id));
  return result;
}

constexpr Severity error = Severity::error, info = Severity::info;

} // namespace

TEST_CASE("ERR and CMP: on without being asked for, and chosen by family") {
  CHECK(rules_named("ERR", "--only") == std::vector<std::string>{"ERR001", "ERR002"});
  CHECK(rules_named("CMP", "--only") == std::vector<std::string>{"CMP001", "CMP002", "CMP003"});
  for (const Rule& rule : all_rules())
    if (is_published_fault(rule.id)) CHECK_MESSAGE(rule.on, rule.id);
}

TEST_CASE("ERR: the chip and the form decide") {
  const std::string fma = "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[0:1] op_sel:[0,1,0]";
  CHECK(severities("ERR001", fma) == Severities{error});
  CHECK(severities("ERR001", fma, "gfx942") == Severities{});
  CHECK(severities("ERR001", "v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]") == Severities{info});
  CHECK(severities("ERR001", "v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]") == Severities{});
  CHECK(severities("ERR001", fma + " op_sel_hi:[1,0,1]") == Severities{}); // changes halves, and broadcasts none
  const std::string scaled = "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3], ";
  CHECK(severities("ERR002", scaled + "v20, 33") == Severities{error});
}

TEST_CASE("CMP001: two kinds of matrix instructions on one accumulator, as far apart as a C that overlaps in part needs") {
  const std::string first = "v_mfma_f32_16x16x32_f16 v[0:3], v[8:11], v[12:15], v[0:3]\n", // 4 passes: 6 states
      second = "v_mfma_f32_16x16x16_f16 v[0:3], v[16:17], v[18:19], v[0:3]\n",
                    other = "v_mfma_f32_16x16x16_f16 v[4:7], v[16:17], v[18:19], v[4:7]\n";
  CHECK(severities("CMP001", first + second) == Severities{info});
  CHECK(severities("CMP001", first + first) == Severities{});
  CHECK(severities("CMP001", first + other) == Severities{});                                 // other registers
  const std::string narrow = "v_mfma_f32_16x16x16_bf16 v[0:3], v[16:17], v[18:19], v[0:3]\n"; // gfx942: 5 states
  CHECK(severities("CMP001", second + "s_nop 3\n" + narrow, "gfx942") == Severities{info});
  CHECK(severities("CMP001", second + "s_nop 4\n" + narrow, "gfx942") == Severities{});
  CHECK(severities("CMP001",
                   "v_mfma_f32_16x16x16f16 v[0:3], v[8:9], v[10:11], v[0:3]\n v_mfma_f32_16x16x16bf16_1k v[0:3], v[8:9], v[10:11], "
                   "v[0:3]",
                   "gfx90a") == Severities{});
  CHECK(severities("CMP001", first + "s_nop 4\n" + second) == Severities{info});
  CHECK(severities("CMP001", first + "s_nop 5\n" + second) == Severities{});
  CHECK(severities("CMP001", first + other + other + second) == Severities{}); // whose passes the second waits for
  CHECK(severities("CMP001", loop(second + first)) == Severities{info, info}); // over the back edge, too
  CHECK(severities("CMP001", "v_mfma_f32_16x16x32_f16 a[0:3], v[8:11], v[12:15], a[0:3]\n v_mfma_f32_16x16x16_f16 a[0:3], v[16:17], "
                             "v[18:19], a[0:3]") == Severities{info});
  const auto found = findings("CMP001", first + second);
  REQUIRE(found.size() == 1);
  CHECK(found[0].message == "accumulates on the result of 0x0 v_mfma_f32_16x16x32_f16, another instruction, 3 wait states after it; 6 if "
                            "that is not forwarded");
}

// The shape of ROCm/FlyDSL#1087: of four pairs that were to be spilled, three were copied.
TEST_CASE("CMP002: a pair of scalars that nothing writes goes through lanes into a descriptor") {
  const std::string copies = "s_mov_b64 s[56:57], s[0:1]\n s_mov_b64 s[58:59], s[0:1]\n", dropped = "s_mov_b64 s[60:61], s[2:3]\n",
                    last = "s_mov_b64 s[62:63], s[2:3]\n";
  std::string spill, reload;
  for (int i = 0; i < 8; ++i) spill += "v_writelane_b32 v40, s" + std::to_string(56 + i) + ", " + std::to_string(i) + "\n";
  for (int i = 4; i < 6; ++i) reload += "v_readlane_b32 s" + std::to_string(44 + i) + ", v40, " + std::to_string(i) + "\n";
  const std::string load = "s_movk_i32 s50, 0x400\n s_mov_b32 s51, 0x27000\n s_nop 4\n buffer_load_dword v1, v0, s[48:51], 0 offen\n";
  CHECK(severities("CMP002", copies + last + spill + reload + load) == Severities{error});
  CHECK(findings("DAT002", copies + last + spill + reload + load).empty()); // one defect, one rule
  CHECK(severities("CMP002", copies + dropped + last + spill + reload + load) == Severities{});
  CHECK(severities("CMP002", copies + last + spill + reload) == Severities{}); // it is not used
  const auto found = findings("CMP002", copies + last + spill + reload + load);
  REQUIRE(found.size() == 1);
  CHECK(found[0].message.find("s60 is read, and nothing writes it on any path; what comes of it goes by lane 4 of v40 into") == 0);

  // The register is used as a whole, too: what other instructions write counts as defined, and they read what v_writelane left of it.
  const std::string whole = "v_mov_b32_e32 v40, v0\n global_store_dword v0, v40, s[0:1]\n";
  CHECK(severities("CMP002", whole + copies + last + spill + reload + load) == Severities{error});
  CHECK(severities("CMP002", copies + last + spill + whole + reload + load) == Severities{});
  CHECK(severities("CMP002", copies + last + spill + "v_accvgpr_write_b32 a0, v40\n v_accvgpr_read_b32 v41, a0\n") == Severities{});
}

// What llvm/llvm-project#225054 does: the lane has a value, of another variable. Nothing in the machine code tells the two apart.
TEST_CASE("CMP002: a lane with the value of another variable is defined") {
  const std::string begin = "v_writelane_b32 v40, s0, 0\n v_writelane_b32 v40, s1, 1\n s_mov_b32 s60, 7\n";
  const std::string body = "v_readlane_b32 s48, v40, 0\n v_readlane_b32 s49, v40, 1\n s_load_dword s10, s[48:49], 0x0\n "
                           "s_waitcnt lgkmcnt(0)\n s_cmp_lg_u32 s10, 0\n v_writelane_b32 v40, s60, 1\n";
  CHECK(severities("CMP002", begin + "again:\n" + body + "s_cbranch_scc1 again") == Severities{});
}

TEST_CASE("CMP003: what may tell others of a write-back waits for it") {
  const std::string back = "buffer_wbl2 sc1\n", store = "global_store_dword v0, v1, s[0:1]\n", wait = "s_waitcnt vmcnt(0)\n";
  for (const char* arch : {"gfx942", "gfx950"}) {
    CHECK(severities("CMP003", back + store, arch) == Severities{error});
    CHECK(severities("CMP003", back + wait + store, arch) == Severities{});
    CHECK(severities("CMP003", wait + back + store, arch) == Severities{error});
    CHECK(severities("CMP003", back + "s_barrier", arch) == Severities{error});
    CHECK(severities("CMP003", back + "global_load_dword v1, v0, s[0:1]\n s_waitcnt vmcnt(1)\n" + store, arch) == Severities{});
    CHECK(severities("CMP003", back + "s_waitcnt lgkmcnt(0)\n" + store, arch) == Severities{error});
    CHECK(severities("CMP003", back + "ds_write_b32 v0, v1\n", arch) == Severities{}); // nobody else sees LDS
    CHECK(severities("CMP003", back, arch) == Severities{});                           // the end of a kernel is a release of its own
    CHECK(severities("CMP003", back + "s_cbranch_scc0 over\n" + wait + "over:\n" + store, arch) == Severities{error});
  }
}

} // namespace errata_test
