// MFMA against a matrix product with a different value in every place, laid out as AMD's matrix calculator documents.
#include "tests/exec/lane_program.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;

// How a type packs small integers, which every type here holds exactly.
struct Packing {
  const char* name;
  int bits;
  u32 (*code)(int value, bool fnuz);
};
u32 pack_f32(int v, bool) { return as_bits(static_cast<float>(v)); }
u32 pack_f16(int v, bool) { return to_half(static_cast<float>(v)).bits; }
u32 pack_bf16(int v, bool) { return to_bfloat(static_cast<float>(v)).bits; }
u32 pack_fp8(int v, bool fnuz) { return encode_small(fnuz ? e4m3fnuz_format : e4m3fn_format, v, Rounding::nearest_even, false); }
u32 pack_bf8(int v, bool fnuz) { return encode_small(fnuz ? e5m2fnuz_format : e5m2_format, v, Rounding::nearest_even, false); }
u32 pack_i8(int v, bool) { return static_cast<u32>(v) & 0xffU; }
const Packing f32{"f32", 32, pack_f32}, f16{"f16", 16, pack_f16}, bf16{"bf16", 16, pack_bf16}, fp8{"fp8", 8, pack_fp8}, bf8{"bf8", 8, pack_bf8}, i8{"i8", 8, pack_i8};

int a_value(int block, int i, int k) { return (block * 5 + i * 3 + k * 7 + i * k) % 7 - 3; }
int b_value(int block, int k, int j) { return (block * 3 + j * 5 + k * 2 + j * k * 3) % 7 - 3; }
int c_value(int block, int i, int j) { return block * 1000 + i * 32 + j; }

// Registers of an operand: element e of lane l is the side's row l % side, column (l / side) * per_lane + e of a block.
std::vector<Lanes64> source(int side, int k, int blocks, const Packing& p, bool fnuz, int (*value)(int, int, int), bool transposed) {
  const int per_lane = side * k * blocks / 64, per_word = 32 / p.bits;
  std::vector<Lanes64> registers(static_cast<std::size_t>(std::max(1, per_lane / per_word)), Lanes64{});
  for (int lane = 0; lane < 64; ++lane)
    for (int e = 0; e < per_lane; ++e) {
      const int row = lane % side, group = lane / side, block = blocks > 1 ? group : 0, column = blocks > 1 ? e : group * per_lane + e;
      const u32 code = p.code(transposed ? value(block, column, row) : value(block, row, column), fnuz);
      registers[static_cast<std::size_t>(e / per_word)][static_cast<std::size_t>(lane)] |= code << (p.bits * (e % per_word));
    }
  return registers;
}

void check(const std::string& name, int side, int k, int blocks, const Packing& a, const Packing& b, const char* arch, bool accumulation) {
  CAPTURE(name);
  const bool fnuz = std::string(arch) == "gfx942", integer = &a == &i8;
  std::vector<Lanes64> in = source(side, k, blocks, a, fnuz, a_value, false);
  const int words = static_cast<int>(in.size());
  for (const Lanes64& r : source(side, k, blocks, b, fnuz, b_value, true)) in.push_back(r);
  const int results = side * side * blocks / 64;
  // Rows of C and D by register, as documented: groups of four rows, alternating between halves or quarters of the lanes.
  const auto place = [&](int lane, int reg) {
    const int block = side == 4 ? lane / 4 : reg / (side * side / 64), r = side == 4 ? reg : reg % (side * side / 64);
    const int i = side == 32 ? 8 * (r / 4) + 4 * (lane / 32) + r % 4 : side == 16 ? 4 * (lane / 16) + r : r;
    return std::array<int, 3>{block, i, lane % side};
  };
  // C goes through LDS-free moves: it is computed from the lane number with a table in memory, one dword a register.
  std::vector<Lanes64> c;
  for (int reg = 0; reg < results; ++reg)
    c.push_back(each_lane([&](int lane) {
      const auto [block, i, j] = place(lane, reg);
      return integer ? static_cast<u32>(c_value(block, i, j)) : as_bits(static_cast<float>(c_value(block, i, j)));
    }));
  for (const Lanes64& r : c) in.push_back(r);
  // The operands start at even registers: v[128..], v[144..], and C at v[64..] or a[64..], where D goes as well.
  std::string body;
  for (int w = 0; w < 2 * words; ++w) body += fmt::format("v_mov_b32 v{}, v{}\n", (w < words ? 128 : 144 - words) + w, w + 1);
  const char file = accumulation ? 'a' : 'v';
  for (int r = 0; r < results; ++r)
    body += accumulation ? fmt::format("v_accvgpr_write_b32 a{}, v{}\n", 64 + r, 2 * words + 1 + r) : fmt::format("v_mov_b32 v{}, v{}\n", 64 + r, 2 * words + 1 + r);
  const auto span = [](char letter, int first, int n) { return n == 1 ? fmt::format("{}{}", letter, first) : fmt::format("{}[{}:{}]", letter, first, first + n - 1); };
  body += fmt::format("s_mov_b64 exec, 0\n s_nop 7\n {} {}, {}, {}, {}\n s_mov_b64 exec, -1\n s_nop 7\n s_nop 7\n", name, span(file, 64, results), span('v', 128, words),
                      span('v', 144, words), span(file, 64, results));
  if (accumulation)
    for (int r = 0; r < results; ++r) body += fmt::format("v_accvgpr_read_b32 v{}, a{}\n", 64 + r, 64 + r);
  const LaneResult r = run({.body = body, .inputs = in, .results = results, .accumulation = accumulation, .arch = arch});
  REQUIRE_MESSAGE(r.run.findings.empty(), to_text(r.run.findings.empty() ? Finding{} : r.run.findings[0]));
  for (int reg = 0; reg < results; ++reg)
    for (int lane = 0; lane < 64; ++lane) {
      const auto [block, i, j] = place(lane, reg);
      int want = c_value(block, i, j);
      for (int kk = 0; kk < k; ++kk) want += a_value(block, i, kk) * b_value(block, kk, j);
      const u32 got = r.v[static_cast<std::size_t>(reg)][static_cast<std::size_t>(lane)];
      CHECK((integer ? static_cast<int>(got) : static_cast<int>(as_float(got))) == want);
    }
}

} // namespace

TEST_CASE("MFMA: every shape puts every product where it belongs") {
  for (const char* arch : {"gfx942", "gfx950"})
    for (const bool accumulation : {false, true}) {
      for (const Packing* p : {&f16, &bf16}) {
        check(fmt::format("v_mfma_f32_16x16x16_{}", p->name), 16, 16, 1, *p, *p, arch, accumulation);
        check(fmt::format("v_mfma_f32_32x32x8_{}", p->name), 32, 8, 1, *p, *p, arch, accumulation);
        check(fmt::format("v_mfma_f32_4x4x4_16b_{}", p->name), 4, 4, 16, *p, *p, arch, accumulation);
        check(fmt::format("v_mfma_f32_16x16x4_4b_{}", p->name), 16, 4, 4, *p, *p, arch, accumulation);
        check(fmt::format("v_mfma_f32_32x32x4_2b_{}", p->name), 32, 4, 2, *p, *p, arch, accumulation);
        if (std::string(arch) == "gfx950") {
          check(fmt::format("v_mfma_f32_16x16x32_{}", p->name), 16, 32, 1, *p, *p, arch, accumulation);
          check(fmt::format("v_mfma_f32_32x32x16_{}", p->name), 32, 16, 1, *p, *p, arch, accumulation);
        }
      }
      check("v_mfma_f32_16x16x4_f32", 16, 4, 1, f32, f32, arch, accumulation);
      check("v_mfma_f32_32x32x2_f32", 32, 2, 1, f32, f32, arch, accumulation);
      check("v_mfma_f32_4x4x1_16b_f32", 4, 1, 16, f32, f32, arch, accumulation);
      check("v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, f32, f32, arch, accumulation);
      check("v_mfma_f32_32x32x1_2b_f32", 32, 1, 2, f32, f32, arch, accumulation);
      for (const Packing* a : {&fp8, &bf8})
        for (const Packing* b : {&fp8, &bf8}) {
          check(fmt::format("v_mfma_f32_16x16x32_{}_{}", a->name, b->name), 16, 32, 1, *a, *b, arch, accumulation);
          check(fmt::format("v_mfma_f32_32x32x16_{}_{}", a->name, b->name), 32, 16, 1, *a, *b, arch, accumulation);
        }
      check("v_mfma_i32_16x16x32_i8", 16, 32, 1, i8, i8, arch, accumulation);
      check("v_mfma_i32_32x32x16_i8", 32, 16, 1, i8, i8, arch, accumulation);
      check("v_mfma_i32_4x4x4_16b_i8", 4, 4, 16, i8, i8, arch, accumulation);
    }
  check("v_mfma_i32_16x16x64_i8", 16, 64, 1, i8, i8, "gfx950", true);
  check("v_mfma_i32_32x32x32_i8", 32, 32, 1, i8, i8, "gfx950", false);
}
