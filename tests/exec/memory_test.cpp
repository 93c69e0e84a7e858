// Memory instructions: device memory, LDS, lane exchanges, bounds.
#include "tests/exec/lane_program.h"
#include <cstring>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace memory_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
const Lanes64 lane_ids = each_lane([](int i) { return static_cast<u32>(i); });
bool has(const ExecResult& r, DefectKind kind) {
  for (const Defect& f : r.defects)
    if (f.kind == kind) return true;
  return false;
}

} // namespace

TEST_CASE("LDS: every width round-trips, at any lane order") {
  for (const int words : {1, 2, 3, 4}) {
    CAPTURE(words);
    const std::string width = fmt::format("b{}", 32 * words);
    const std::string data = words == 1 ? "v2" : fmt::format("v[2:{}]", words + 1),
                      back = words == 1 ? "v64" : fmt::format("v[64:{}]", 63 + words);
    // Written in lane order, read back mirrored.
    const std::string body =
        fmt::format("v_mul_u32_u24 v20, {0}, v0\n ds_write_{1} v20, {2}\n v_sub_u32 v21, 63, v0\n v_mul_u32_u24 v21, {0}, v21\n"
                    " s_waitcnt lgkmcnt(0)\n s_barrier\n ds_read_{1} {3}, v21\n s_waitcnt lgkmcnt(0)",
                    4 * words, width, data, back);
    std::vector<Lanes64> in{lane_ids}; // v1; wide data must start at an even register
    for (int w = 0; w < words; ++w) in.push_back(each_lane([=](int i) { return static_cast<u32>(1000 * w + i * 7); }));
    const LaneResult r = run({.body = body, .inputs = in, .results = words, .lds_bytes = 1024});
    CHECK(r.run.defects.empty());
    for (std::size_t w = 0; w < static_cast<std::size_t>(words); ++w)
      for (std::size_t i = 0; i < 64; ++i) CHECK(r.v[w][i] == in[w + 1][63 - i]);
  }
}

TEST_CASE("scalar stores write their words, and leave those beside them alone") {
  const LaneResult r = run({.body = "s_mov_b32 s40, 41\n s_mov_b32 s41, 43\n s_store_dwordx2 s[40:41], s[8:9], 0x4 glc\n"
                                    "s_waitcnt lgkmcnt(0)\n s_dcache_wb\n s_load_dwordx4 s[44:47], s[8:9], 0x0\n s_waitcnt lgkmcnt(0)\n"
                                    "v_mov_b32 v64, s44\n v_mov_b32 v65, s45\n v_mov_b32 v66, s46\n v_mov_b32 v67, s47",
                            .scalars = {5, 6, 7, 8},
                            .results = 4});
  CHECK(r.run.defects.empty());
  CHECK(r.v[0][0] == 5);
  CHECK(r.v[1][0] == 41);
  CHECK(r.v[2][0] == 43);
  CHECK(r.v[3][0] == 8);
}

TEST_CASE("LDS: sub-dword reads extend, and d16 forms make noise of the other half") {
  const std::string body =
      "v_lshlrev_b32 v20, 2, v0\n ds_write_b32 v20, v1\n v_mov_b32 v66, -1\n v_mov_b32 v67, -1\n s_waitcnt lgkmcnt(0)\n"
      "ds_read_i8 v64, v20 offset:1\n ds_read_u16 v65, v20 offset:2\n ds_read_u16_d16 v66, v20\n ds_read_u8_d16_hi v67, v20 offset:3\n "
      "s_waitcnt lgkmcnt(0)";
  const Lanes64 in = each_lane([](int i) { return 0x81f27f00U + static_cast<u32>(i) * 0x01030507U; });
  const LaneResult r = run({.body = body, .inputs = {in}, .results = 4, .lds_bytes = 256});
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(r.v[0][i] == static_cast<u32>(static_cast<int>(static_cast<signed char>(in[i] >> 8))));
    CHECK(r.v[1][i] == in[i] / 65536);
    CHECK(r.v[2][i] % 65536 == in[i] % 65536);
    CHECK((r.v[3][i] >> 16) == (in[i] >> 24));
    for (const u32 other : {r.v[2][i] >> 16, r.v[3][i] % 65536}) CHECK((other != 0xffff && other != 0)); // neither kept nor zero
  }
}

TEST_CASE("LDS: two-address forms use their unit, st64 its stride") {
  const std::string body = "v_lshlrev_b32 v20, 2, v0\n ds_write2st64_b32 v20, v1, v2 offset0:1 offset1:3\n s_waitcnt lgkmcnt(0)\n"
                           "ds_read_b32 v64, v20 offset:256\n ds_read_b32 v65, v20 offset:768\n ds_read2_b32 v[66:67], v20 offset0:64 "
                           "offset1:192\n s_waitcnt lgkmcnt(0)";
  const Lanes64 a = each_lane([](int i) { return static_cast<u32>(i * i); }), b = each_lane([](int i) { return static_cast<u32>(~i); });
  const LaneResult r = run({.body = body, .inputs = {a, b}, .results = 4, .lds_bytes = 1024});
  CHECK(r.v[0] == a);
  CHECK(r.v[1] == b);
  CHECK(r.v[2] == a);
  CHECK(r.v[3] == b);
}

TEST_CASE("LDS atomics: every lane adds to one counter, and sees a different old value") {
  const std::string body = "v_mov_b32 v20, 0\n v_mov_b32 v21, 0\n ds_write_b32 v20, v21\n v_mov_b32 v22, 3\n ds_add_rtn_u32 v64, v20, v22\n"
                           "s_waitcnt lgkmcnt(0)\n ds_read_b32 v65, v20\n s_waitcnt lgkmcnt(0)";
  const LaneResult r = run({.body = body, .results = 2, .lds_bytes = 64});
  std::array<bool, 64> seen{};
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(r.v[1][i] == 192);
    REQUIRE(r.v[0][i] % 3 == 0);
    REQUIRE(r.v[0][i] / 3 < 64);
    CHECK_FALSE(seen[r.v[0][i] / 3]);
    seen[r.v[0][i] / 3] = true;
  }
}

TEST_CASE("lane exchanges through the LDS crossbar") {
  const Lanes64 data = each_lane([](int i) { return static_cast<u32>(100 + i); });
  const std::string body =
      "v_xor_b32 v20, 21, v0\n v_lshlrev_b32 v20, 2, v20\n ds_bpermute_b32 v64, v20, v1\n ds_permute_b32 v65, v20, v1\n"
      "ds_swizzle_b32 v66, v1 offset:swizzle(SWAP,16)\n ds_swizzle_b32 v67, v1 offset:swizzle(QUAD_PERM,3,2,1,0)\n"
      "ds_swizzle_b32 v68, v1 offset:swizzle(BROADCAST,8,5)\n s_waitcnt lgkmcnt(0)";
  const LaneResult r = run({.body = body, .inputs = {data}, .results = 5});
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(r.v[0][i] == 100 + (i ^ 21));
    CHECK(r.v[1][i] == 100 + (i ^ 21));
    CHECK(r.v[2][i] == 100 + (i ^ 16));
    CHECK(r.v[3][i] == 100 + (i ^ 3));
    CHECK(r.v[4][i] == 100 + (i / 8) * 8 + 5);
  }
}

TEST_CASE("device memory: widths, offsets, signs, d16") {
  const Lanes64 in = each_lane([](int i) { return 0x80c0a090U + static_cast<u32>(i) * 0x01010101U; });
  const std::string body = "v_lshlrev_b32 v20, 2, v0\n v_mov_b32 v66, 0\n v_add_co_u32 v22, vcc, s4, v20\n v_mov_b32 v23, s5\n "
                           "v_addc_co_u32 v23, vcc, 0, v23, vcc\n"
                           "global_load_sbyte v64, v20, s[4:5] offset:1\n global_load_ushort v65, v[22:23], off offset:2\n"
                           "global_load_short_d16_hi v66, v20, s[4:5]\n flat_load_dword v67, v[22:23]\n s_waitcnt vmcnt(0) lgkmcnt(0)";
  const LaneResult r = run({.body = body, .inputs = {in}, .results = 4});
  CHECK(r.run.defects.empty());
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(r.v[0][i] == static_cast<u32>(static_cast<int>(static_cast<signed char>(in[i] >> 8))));
    CHECK(r.v[1][i] == in[i] >> 16);
    CHECK((r.v[2][i] >> 16) == in[i] % 65536);
    CHECK(r.v[2][i] % 65536 != 0); // the other half is not kept
    CHECK(r.v[3][i] == in[i]);
  }
}

TEST_CASE("device memory: wide loads and stores, inactive lanes untouched") {
  // Each lane copies the 16 bytes of its neighbour pair; odd lanes are switched off and keep what was there.
  const std::string body =
      "v_lshlrev_b32 v20, 2, v0\n v_and_b32 v21, 0xf0, v20\n v_mov_b32 v64, 7\n v_mov_b32 v65, 7\n v_mov_b32 v66, 7\n v_mov_b32 v67, 7\n"
      "s_mov_b32 exec_lo, 0x55555555\n s_mov_b32 exec_hi, 0x55555555\n"
      "global_load_dwordx4 v[64:67], v21, s[4:5]\n s_waitcnt vmcnt(0)";
  const Lanes64 in = each_lane([](int i) { return static_cast<u32>(i + 1); });
  const LaneResult r = run({.body = body, .inputs = {in}, .results = 4});
  for (std::size_t w = 0; w < 4; ++w)
    for (std::size_t i = 0; i < 64; ++i) CHECK(r.v[w][i] == (i % 2 == 1 ? 7 : i / 4 * 4 + w + 1));
}

TEST_CASE("device atomics between workgroups add up, on several threads") {
  const kiln::isa::CodeObject object = assemble_kernel({.body = R"(
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  v_mov_b32 v3, 0x3f800000
  s_waitcnt lgkmcnt(0)
  global_atomic_add v1, v2, s[4:5]
  global_atomic_add_f32 v1, v3, s[4:5] offset:4
  s_waitcnt vmcnt(0))"});
  Memory memory;
  const std::uint64_t x = memory.allocate("x", 8);
  const std::uint64_t arguments[3] = {x, x, x};
  Grid grid;
  grid.workgroups = {20, 1, 1};
  grid.workgroup_size = {256, 1, 1};
  const ExecResult r = execute(object, "k", grid, std::as_bytes(std::span(arguments)), memory, {.threads = 2});
  u32 count = 0;
  float sum = 0;
  std::memcpy(&count, memory.bytes(x).data(), 4);
  std::memcpy(&sum, memory.bytes(x).data() + 4, 4);
  CHECK(r.completed);
  CHECK(r.waves.waves == 80);
  CHECK(count == 20 * 256);
  CHECK(sum == 20 * 256);
}

TEST_CASE("accesses outside every allocation are findings with lane and neighbour") {
  const LaneResult r =
      run({.body = "v_lshlrev_b32 v20, 2, v0\n v_add_u32 v20, 4, v20\n global_load_dword v64, v20, s[4:5]\n s_waitcnt vmcnt(0)",
           .inputs = {lane_ids}});
  REQUIRE(r.run.defects.size() == 1);
  const Defect& f = r.run.defects[0];
  CHECK(f.kind == DefectKind::out_of_bounds);
  CHECK(f.lane == 63);
  CHECK(f.text.starts_with("global_load_dword"));
  CHECK(f.message.find("0 bytes past the end of in (256 bytes)") != std::string::npos);
  for (std::size_t i = 0; i < 63; ++i) CHECK(r.v[0][i] == i + 1);
  CHECK(has(run({.body = "v_mov_b32 v20, 64\n v_mov_b32 v64, 0\n ds_write_b32 v20, v64\n s_waitcnt lgkmcnt(0)", .lds_bytes = 64}).run,
            DefectKind::out_of_bounds));
  CHECK(has(run({.body = "v_mov_b32 v20, 0\n v_mov_b32 v64, 0\n global_store_dword v20, v64, s[0:1]\n s_waitcnt vmcnt(0)"}).run,
            DefectKind::read_only_store));
  CHECK(has(run({.body = "v_mov_b32 v20, 2\n v_mov_b32 v64, 0\n global_atomic_add v20, v64, s[6:7]\n s_waitcnt vmcnt(0)"}).run,
            DefectKind::misaligned));
}

TEST_CASE("buffers: raw and structured ranges, out-of-range lanes read 0 and do not store") {
  // A raw buffer of 100 bytes over the input, and one of 10 records of 8 bytes.
  const std::string raw = "s_mov_b32 s20, s4\n s_mov_b32 s21, s5\n s_mov_b32 s22, 100\n s_mov_b32 s23, 0x00020000\n";
  const std::string body = raw + "v_lshlrev_b32 v20, 2, v0\n s_mov_b32 s30, 8\n buffer_load_dword v64, v20, s[20:23], 0 offen offset:4\n"
                                 "buffer_load_dword v65, v20, s[20:23], s30 offen\n s_or_b32 s21, s21, 0x80000\n s_mov_b32 s22, 10\n"
                                 "buffer_load_dword v66, v0, s[20:23], 0 idxen offset:4\n s_waitcnt vmcnt(0)\n"
                                 "s_mov_b32 s20, s6\n s_mov_b32 s21, s7\n s_mov_b32 s22, 1024\n buffer_store_dword v1, v20, s[20:23], 0 "
                                 "offen offset:1000\n s_waitcnt vmcnt(0)\n"
                                 "v_mov_b32 v67, 0";
  const LaneResult r = run({.body = body, .inputs = {lane_ids}, .results = 5 - 1});
  CHECK(r.run.defects.empty());
  for (u32 i = 0; i < 64; ++i) {
    CHECK(r.v[0][i] == (i < 24 ? i + 1 : 0));
    CHECK(r.v[1][i] == (i < 23 ? i + 2 : 0));
    CHECK(r.v[2][i] == (i < 10 ? 2 * i + 1 : 0));
  }
}

TEST_CASE("buffers: a stride without an index counts bytes; the lane's id as the index") {
  const std::string descriptor =
      "s_mov_b32 s20, s4\n s_or_b32 s21, s5, 0x80000\n s_mov_b32 s22, 100\n s_mov_b32 s23, 0x00020000\n v_lshlrev_b32 v20, 2, v0\n";
  const LaneResult r = run({.body = descriptor + "buffer_load_dword v64, v20, s[20:23], 0 offen\n s_mov_b32 s22, 20\n s_mov_b32 s23, "
                                                 "0x800000\n buffer_load_dword v65, off, s[20:23], 0 offset:4\n s_waitcnt vmcnt(0)",
                            .inputs = {lane_ids},
                            .results = 2});
  REQUIRE(r.run.defects.empty());
  for (u32 i = 0; i < 64; ++i) {
    CHECK(r.v[0][i] == (i < 25 ? i : 0));
    CHECK(r.v[1][i] == (i < 20 ? 2 * i + 1 : 0));
  }
}

TEST_CASE("buffers: swizzled records") {
  // 64 records of 16 bytes, swizzled by 8: word w of record r is word (r / 8 * 4 + w) * 8 + r % 8 of the buffer.
  const std::string descriptor = "s_mov_b32 s20, s6\n s_or_b32 s21, s7, 0x80100000\n s_mov_b32 s22, 64\n s_mov_b32 s23, 0\n";
  const std::string body = descriptor +
                           "v_mul_u32_u24 v10, 4, v0\n v_add_u32 v11, 1, v10\n v_add_u32 v12, 2, v10\n v_add_u32 v13, 3, v10\n "
                           "buffer_store_dwordx4 v[10:13], v0, s[20:23], 0 idxen\n s_waitcnt vmcnt(0)\n"
                           "v_lshlrev_b32 v20, 2, v0\n global_load_dword v64, v20, s[6:7]\n global_load_dword v65, v20, s[6:7] "
                           "offset:256\n buffer_load_ubyte v66, v0, s[20:23], 0 idxen offset:8\n v_sub_u32 v21, 63, v0\n"
                           "buffer_load_dwordx2 v[68:69], v21, s[20:23], 0 idxen offset:4\n v_mov_b32 v67, 0\n s_waitcnt vmcnt(0)";
  const LaneResult r = run({.body = body, .results = 6});
  REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
  for (u32 i = 0; i < 64; ++i) {
    const auto stored = [](u32 at) { return at / 32 * 32 + at % 8 * 4 + at / 8 % 4; }; // which word was put there
    CHECK(r.v[0][i] == stored(i));
    CHECK(r.v[1][i] == stored(64 + i));
    CHECK(r.v[2][i] == (4 * i + 2) % 256);
    CHECK(r.v[4][i] == 4 * (63 - i) + 1);
    CHECK(r.v[5][i] == 4 * (63 - i) + 2);
  }
}

} // namespace memory_test
