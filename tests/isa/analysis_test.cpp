// The analyses of a kernel: operands, lane addresses, bank conflicts, coalescing, occupancy steps, matrix operations, issue.
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/analysis/lanes/lane_value.h"
#include "isa_checks/analysis/readers.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace analysis_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

KernelAnalysis analysis_of(std::string_view body, std::string_view arch = "gfx942",
                           const Snippet& snippet = {.vgprs = 64, .accum_offset = 64}) {
  const CodeObject object = assemble_kernel(body, arch, snippet);
  static std::vector<CodeObject> alive; // analyses point into their bytes
  alive.push_back(object);
  return analyse(object, object.kernel("k"));
}

RegisterRange v(int first, int count = 1) { return {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(count)}; }
RegisterRange s(int first, int count = 1) { return {static_cast<std::uint16_t>(reg::sgpr + first), static_cast<std::uint16_t>(count)}; }

void check_use(const char* text, const std::vector<RegisterRange>& writes, const std::vector<RegisterRange>& reads) {
  CAPTURE(text);
  const KernelAnalysis k = analysis_of(text);
  const RegisterUse& use = k.instruction(0).use;
  CHECK(std::vector(use.writes().begin(), use.writes().end()) == writes);
  CHECK(std::vector(use.reads().begin(), use.reads().end()) == reads);
}

const MemoryAccess& last_access(const KernelAnalysis& k) { return k.memory.accesses.back(); }

LaneValue lane_ids(std::uint32_t mask) {
  LaneValue value;
  for (std::uint32_t i = 0; i < 64; ++i) value.lane[i] = i;
  value.mask = mask;
  return value;
}

} // namespace

TEST_CASE("registers that instructions write and read") {
  check_use("v_add_f32_e32 v0, v1, v2", {v(0)}, {v(1), v(2)});
  check_use("v_fma_f32 v0, -v1, |v2|, s3", {v(0)}, {v(1), v(2), s(3)});
  check_use("v_fmac_f32_e32 v0, v1, v2", {v(0)}, {v(0), v(1), v(2)});
  check_use("v_add_co_u32_e32 v0, vcc, v1, v2", {v(0), {reg::vcc, 2}}, {v(1), v(2)});
  check_use("v_mad_u64_u32 v[0:1], s[2:3], v4, v5, v[6:7]", {v(0, 2), s(2, 2)}, {v(4), v(5), v(6, 2)});
  check_use("v_cmp_gt_u32_e64 s[4:5], v0, v1", {s(4, 2)}, {v(0), v(1)});
  check_use("v_cmpx_gt_u32_e32 vcc, v0, v1", {{reg::vcc, 2}, {reg::exec, 2}}, {v(0), v(1)});
  check_use("v_readfirstlane_b32 s0, v1", {s(0)}, {v(1)});
  check_use("v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf", {v(0)}, {v(0), v(1)});
  check_use("v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]", {{reg::agpr, 4}}, {v(4, 2), v(6, 2), {reg::agpr, 4}});
  check_use("global_load_dwordx4 v[0:3], v4, s[2:3] offset:16", {v(0, 4)}, {s(2, 2), v(4)});
  check_use("global_store_dwordx2 v4, v[0:1], s[2:3]", {}, {v(4), v(0, 2), s(2, 2)});
  check_use("global_load_lds_dword v0, s[2:3]", {}, {s(2, 2), v(0), {reg::m0, 1}});
  check_use("global_atomic_add v5, v0, v1, s[2:3] sc0", {v(5)}, {v(0), v(1), s(2, 2)});
  check_use("global_atomic_add v0, v1, s[2:3]", {}, {v(0), v(1), s(2, 2)});
  check_use("buffer_load_dword v0, v1, s[4:7], 0 offen", {v(0)}, {v(1), s(4, 4)});
  check_use("buffer_atomic_add v0, v1, s[4:7], 0 offen sc0", {v(0)}, {v(0), v(1), s(4, 4)});
  check_use("ds_read_b64 v[0:1], v2 offset:8", {v(0, 2)}, {v(2)});
  check_use("ds_write_b32 v0, v1", {}, {v(0), v(1)});
  check_use("ds_bpermute_b32 v0, v1, v2", {v(0)}, {v(1), v(2)});
  check_use("ds_add_rtn_u32 v0, v1, v2", {v(0)}, {v(1), v(2)});
  check_use("s_add_u32 s0, s1, 5", {s(0), {reg::scc, 1}}, {s(1)});
  check_use("s_cmp_eq_u32 s0, 1", {{reg::scc, 1}}, {s(0)});
  check_use("s_and_saveexec_b64 s[0:1], vcc", {s(0, 2), {reg::exec, 2}, {reg::scc, 1}}, {{reg::vcc, 2}, {reg::exec, 2}});
  check_use("s_mulk_i32 s0, 5", {s(0)}, {s(0)});
  check_use("v_cvt_pk_fp8_f32 v0, v1, v2", {v(0)}, {v(1), v(2)}); // begins a register
  check_use("v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", {v(0)}, {v(0), v(1), v(2)});
  check_use("v_cvt_f32_ubyte0_sdwa v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD", {v(0)}, {v(1), v(0)});
  check_use("s_load_dwordx4 s[4:7], s[2:3], 0x10", {s(4, 4)}, {s(2, 2)});
}

TEST_CASE("readers are followed over branches and end at the next write") {
  const KernelAnalysis k = analysis_of("  v_mov_b32_e32 v0, 0\n  s_cbranch_scc0 other\n  v_add_u32_e32 v1, v0, v0\n  v_mov_b32_e32 v0, 1\n"
                                       "  v_add_u32_e32 v2, v0, v0\nother:\n  v_mov_b32_e32 v3, v0\n");
  const Readers readers = readers_of(k.program, 0, v(0));
  CHECK(readers.complete);
  CHECK(readers.list == std::vector<Reader>{{2, 1}, {5, 1}});
}

TEST_CASE("a writer at the end of its block") {
  const KernelAnalysis k = analysis_of("  s_cbranch_scc0 other\n  v_mov_b32_e32 v0, 0\nother:\n  v_add_u32_e32 v1, v0, v0\n");
  CHECK(readers_of(k.program, 1, v(0)).list == std::vector<Reader>{{2, 0}});
}

TEST_CASE("lane values: what an unknown base leaves known") {
  const LaneValue id = lane_ids(0xc0); // of any of four waves
  CHECK(bit_and(id, constant_value(63)) == lane_ids(0));
  CHECK(bit_and(id, constant_value(127)) == lane_ids(0x40));
  const auto row = shift_right(id, constant_value(4), false);
  REQUIRE(row.has_value());
  CHECK(row->mask == 0xc);
  CHECK(row->lane[17] == 1);
  CHECK(shift_right(id, constant_value(6), false) == uniform_value(3));
  CHECK(shift_left(id, constant_value(4))->mask == 0xc00);
  CHECK(shift_left(id, constant_value(4))->step() == 16);
  CHECK(add(id, uniform_value())->step() == 1);
  CHECK(add(id, uniform_value())->zeros() == 0);
  CHECK(add(id, uniform_value(0x300))->mask == 0x3c0);
  CHECK_FALSE(bit_xor(add(id, uniform_value()).value(), id).has_value());
  CHECK(bit_or(shift_left(uniform_value(), constant_value(6)).value(), lane_ids(0))->step() == 1);
  // (id % 64) * 256 | id / 64 * 4: the base lies below the lanes.
  const auto column = bit_or(shift_left(lane_ids(0), constant_value(8)).value(), shift_left(uniform_value(3), constant_value(2)).value());
  REQUIRE(column.has_value());
  CHECK(column->step() == 256);
  CHECK(column->mask == 0xc);
  LaneValue later = lane_ids(0);
  for (auto& x : later.lane) x += 1024;
  CHECK(join(lane_ids(0), later)->zeros() == 10);
  CHECK(shift_right(join(later, lane_ids(0)).value(), constant_value(2), false)->step() == std::nullopt);
  CHECK(shift_right(join(later, lane_ids(0)).value(), constant_value(2), false)->lane[7] == 1);
  CHECK_FALSE(join(lane_ids(0), constant_value(0)).has_value());
}

TEST_CASE("bank conflicts of addresses that follow from the lane") {
  const auto passes = [](std::string_view address, std::string_view access, std::string_view arch) {
    const KernelAnalysis k = analysis_of(std::string(address) + "\n" + std::string(access), arch);
    const MemoryAccess& a = last_access(k);
    REQUIRE(a.banks);
    CHECK(a.lanes_known);
    return std::pair(a.banks->needed, a.banks->ideal);
  };
  using Passes = std::pair<std::uint32_t, std::uint32_t>;
  CHECK(passes("v_lshlrev_b32_e32 v1, 2, v0", "ds_read_b32 v2, v1", "gfx942") == Passes{2, 2});
  CHECK(passes("v_lshlrev_b32_e32 v1, 7, v0", "ds_read_b32 v2, v1", "gfx942") == Passes{64, 2});   // 32 floats apart: one bank
  CHECK(passes("v_mul_u32_u24_e32 v1, 0x84, v0", "ds_read_b32 v2, v1", "gfx942") == Passes{2, 2}); // 33 floats
  CHECK(passes("v_lshlrev_b32_e32 v1, 4, v0", "ds_read_b128 v[4:7], v1", "gfx942") == Passes{8, 8});
  CHECK(passes("v_lshlrev_b32_e32 v1, 4, v0", "ds_read_b128 v[4:7], v1", "gfx950") == Passes{4, 4});
  CHECK(passes("v_lshlrev_b32_e32 v1, 3, v0", "ds_read2_b32 v[4:5], v1 offset1:1", "gfx942").first == 8);
  CHECK(passes("v_and_b32_e32 v1, 15, v0\n v_lshlrev_b32_e32 v1, 8, v1", "ds_write_b32 v1, v2", "gfx942") == Passes{32, 2});
}

TEST_CASE("lanes that are off, and come on again") {
  const KernelAnalysis half = analysis_of("v_cmp_gt_u32_e32 vcc, 32, v0\n s_and_saveexec_b64 s[0:1], vcc\n v_lshlrev_b32_e32 v1, 7, v0\n"
                                          "ds_read_b32 v2, v1\n s_or_b64 exec, exec, s[0:1]\n ds_write_b32 v1, v2",
                                          "gfx942", {.vgprs = 8, .workgroup_size = 64});
  REQUIRE(half.memory.accesses.size() == 2);
  REQUIRE(half.memory.accesses[0].banks);
  CHECK(half.memory.accesses[0].lanes_known);
  CHECK(half.memory.accesses[0].banks->needed == 32);
  CHECK_FALSE(half.memory.accesses[1].banks); // v1 was computed in 32 lanes only
  const KernelAnalysis data =
      analysis_of("global_load_dword v3, v0, s[2:3]\n v_cmp_gt_u32_e32 vcc, 32, v3\n s_and_saveexec_b64 s[0:1], vcc\n"
                  "ds_read_b32 v2, v0 offset:4");
  CHECK_FALSE(last_access(data).lanes_known);
  CHECK(last_access(data).banks.has_value());
}

TEST_CASE("coalescing: lines that a load touches") {
  const auto lines = [](std::string_view body) {
    const KernelAnalysis k = analysis_of(body);
    REQUIRE(last_access(k).coalescing);
    return *last_access(k).coalescing;
  };
  const Coalescing dense = lines("v_lshlrev_b32_e32 v1, 2, v0\n global_load_dword v2, v1, s[2:3]");
  CHECK(dense.lines128 == 2);
  CHECK(dense.step == 4);
  CHECK(dense.efficiency() == 1);
  const Coalescing column = lines("v_lshlrev_b32_e32 v1, 12, v0\n global_load_dword v2, v1, s[2:3]");
  CHECK(column.lines128 == 64);
  CHECK(column.useful_bytes == 256);
  CHECK(column.efficiency() == doctest::Approx(1.0 / 32));
  // 64-bit addresses: base + (id << 4), as clang makes them.
  const Coalescing wide = lines("v_mov_b32_e32 v3, 0\n v_mov_b32_e32 v2, v0\n v_lshl_add_u64 v[4:5], v[2:3], 4, s[2:3]\n"
                                "global_load_dwordx4 v[8:11], v[4:5], off");
  CHECK(wide.lines128 == 8);
  const Coalescing broadcast = lines("buffer_load_dword v2, off, s[4:7], 0");
  CHECK(broadcast.lines128 == 1);
  CHECK(broadcast.useful_bytes == 4);
}

TEST_CASE("an address that a loop advances keeps its lanes") {
  const KernelAnalysis k =
      analysis_of("v_lshlrev_b32_e32 v1, 2, v0\nloop:\n global_load_dword v2, v1, s[2:3]\n v_add_u32_e32 v1, 0x400, v1\n"
                  "s_cmp_lg_u32 s0, 0\n s_cbranch_scc1 loop");
  REQUIRE(last_access(k).coalescing);
  CHECK(last_access(k).coalescing->step == 4);
  REQUIRE(k.memory.loops.size() == 2);
  CHECK(k.memory.loops[0].loaded == 256);
  CHECK(k.memory.loops[0].missed_saddr == 0);
}

TEST_CASE("64-bit addresses that a loop advances") {
  const KernelAnalysis k =
      analysis_of("loop:\n global_load_dword v2, v[4:5], off\n v_lshl_add_u64 v[4:5], v[4:5], 0, s[0:1]\n flat_load_dword v3, v[6:7]\n"
                  "s_cbranch_scc1 loop\n global_load_dword v2, v[4:5], off");
  CHECK(k.memory.loops[0].missed_saddr == 1);
  CHECK(k.memory.loops[0].flat == 1);
  CHECK(k.memory.loops[1].missed_saddr == 0);
}

TEST_CASE("what the next wave costs") {
  const auto report = [](int vgprs, int lds, int size) {
    return occupancy_report(target_facts("gfx942"), {.vgprs = vgprs, .sgprs = 20, .lds_bytes = lds, .workgroup_size = size});
  };
  const OccupancyReport by_registers = report(101, 0, 256);
  CHECK(by_registers.now.waves_per_simd == 4);
  CHECK(by_registers.vgprs == OccupancyStep{5, 5, 5});
  CHECK_FALSE(by_registers.lds);
  CHECK(by_registers.spare_vgprs == 27);
  CHECK(to_text(by_registers).find("5 VGPRs fewer give 5 waves instead of 4\n") != std::string::npos);
  const OccupancyReport by_lds = report(64, 17000, 256);
  CHECK(by_lds.now.waves_per_simd == 3);
  CHECK(by_lds.lds == OccupancyStep{17000 - 16384, 4, 4});
  CHECK_FALSE(by_lds.vgprs);
}

TEST_CASE("matrix instructions: shape, time, chains and readers") {
  const KernelAnalysis k = analysis_of("v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], v[0:3]\n"
                                       "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n"
                                       "v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], v[0:3]\n s_nop 6\n v_add_f32_e32 v12, v0, v1");
  REQUIRE(k.matrix.uses.size() == 3);
  CHECK(k.matrix.uses[0].shape.cycles() == 16);
  CHECK(k.matrix.uses[0].shape.operations() == 8192);
  CHECK(k.matrix.uses[0].next_in_chain == 1);
  CHECK_FALSE(k.matrix.uses[1].next_reader);
  CHECK(k.matrix.uses[2].next_reader == 1);
  CHECK(k.matrix.uses[2].states_needed == 7);
  CHECK(k.matrix.uses[2].nop_states == 7);
  struct Case {
    const char *text, *arch;
    int cycles;
    std::int64_t operations;
  };
  for (const Case& c : {Case{"v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]", "gfx942", 32, 16384},
                        Case{"v_mfma_f32_16x16x4_f32 v[0:3], v4, v5, v[0:3]", "gfx950", 32, 2048},
                        Case{"v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], v[0:3]", "gfx942", 8, 2048},
                        Case{"v_mfma_f32_16x16x32_fp8_bf8 v[0:3], v[4:5], v[6:7], v[0:3]", "gfx942", 16, 16384},
                        Case{"v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7]", "gfx950", 64, 2048},
                        Case{"v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]", "gfx950", 16, 16384},
                        Case{"v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3]", "gfx950", 32, 65536},
                        Case{"v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[12:15], v[0:3] cbsz:4 blgp:4", "gfx950", 16, 65536},
                        Case{"v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10", "gfx942", 16, 16384},
                        Case{"v_mfma_f32_16x16x16f16 v[0:3], v[4:5], v[6:7], v[0:3]", "gfx90a", 32, 8192},
                        Case{"v_mfma_f32_32x32x4f16 v[0:31], v[32:33], v[34:35], v[0:31]", "gfx90a", 64, 16384}}) {
    CAPTURE(c.text);
    const KernelAnalysis one = analysis_of(c.text, c.arch);
    REQUIRE(one.matrix.uses.size() == 1);
    CHECK(one.matrix.uses[0].shape.cycles() == c.cycles);
    CHECK(one.matrix.uses[0].shape.operations() == c.operations);
  }
}

TEST_CASE("issue and roofline of a loop") {
  const KernelAnalysis k = analysis_of("loop:\n global_load_dwordx4 v[0:3], v4, s[2:3]\n v_fma_f32 v5, v6, v7, v5\n "
                                       "v_exp_f32_e32 v8, v8\n v_pk_fma_f32 v[10:11], v[12:13], v[14:15], v[10:11]\n"
                                       "s_cbranch_scc1 loop");
  const LoopIssue& loop = k.issue.loops.at(0);
  CHECK(loop.clocks_of(Pipe::valu) == 8);
  CHECK(loop.clocks_of(Pipe::trans) == 16);
  CHECK(loop.clocks_of(Pipe::vector_memory) == 64);
  CHECK(loop.operations == (2 + 4) * 64 * 4);
  CHECK(loop.memory_bytes == 4096);
  CHECK(loop.memory_bound()); // 4096 B at 8.3 B per clock
  CHECK(k.issue.loops.at(1).clocks_of(Pipe::valu) == 80);
  CHECK(k.concurrency.size() == 1);
  CHECK(bytes_for_bandwidth(target_facts("gfx942")) == 14632);
}

TEST_CASE("the whole analysis as text and JSON") {
  const KernelAnalysis k = analysis_of("loop:\n global_load_dword v0, v4, s[2:3]\n v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], "
                                       "v[10:11], v[0:3]\n s_cbranch_scc1 loop");
  const std::string text = to_text(k);
  for (const char* part : {"occupancy\n", "memory operations\n", "bytes in flight\n", "matrix operations\n", "issue and roofline\n"})
    CHECK(text.find(part) != std::string::npos);
  const auto json = nlohmann::json::parse(to_json(k));
  CHECK(json["memory"]["accesses"][0]["bytes"] == 4);
  CHECK(json["matrix"][0]["passes"] == 4);
  CHECK(json["issue"][0]["bound"] == "memory");
  CHECK(json["occupancy"]["spare_vgprs"] == 0);
}

TEST_CASE("gfx90a: cache policies by its own names, 32 banks, LDS transfers of 4 B, its clocks") {
  const KernelAnalysis k =
      analysis_of("v_lshlrev_b32_e32 v4, 4, v0\n ds_read_b128 v[8:11], v4\n global_atomic_add v5, v4, v1, s[2:3] glc\n"
                  "global_load_dword v6, v4, s[2:3] glc slc\n buffer_load_dword off, s[4:7], 0 lds\n s_waitcnt vmcnt(0)",
                  "gfx90a");
  REQUIRE(k.memory.accesses.size() == 4);
  CHECK(k.memory.accesses[0].banks->needed == 8);
  CHECK(k.memory.accesses[1].returns);
  CHECK((k.memory.accesses[2].sc0 && k.memory.accesses[2].nt && !k.memory.accesses[2].sc1));
  CHECK(k.memory.accesses[3].op.to_lds);
  REQUIRE(k.waits.points.size() == 1);
  CHECK(k.waits.points[0].waits_for.size() == 3);
  CHECK(k.facts.occupancy.waves_per_simd == 8);
  CHECK(bytes_for_bandwidth(*k.target) == 11912);
  CHECK_FALSE(to_json(k).empty());
}

TEST_CASE("a kernel without code, and one that does not decode") {
  const CodeObject object = assemble_kernel("", "gfx942");
  Kernel empty = object.kernel("k");
  empty.code = {};
  CHECK(analyse(object, empty).program.blocks.empty());
  const std::vector<std::uint8_t> noise(64, 0xff);
  Kernel damaged = object.kernel("k");
  damaged.code = noise;
  const KernelAnalysis k = analyse(object, damaged);
  CHECK(k.facts.undecodable > 0);
  CHECK(k.memory.accesses.empty());
  CHECK_FALSE(to_text(k).empty());
}

} // namespace analysis_test
