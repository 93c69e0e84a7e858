// MFMA of every shape and type against a matrix product whose elements tell every position from every other, laid out as AMD's
// matrix instruction calculator documents.
#include "tests/exec/lane_program.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace matrix_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// How a type packs integers of [-range / 2, range / 2], all of which it holds exactly.
struct Packing {
  const char* name;
  int bits, range;
  u64 (*code)(int value, bool fnuz);
};
u64 pack_f64(int v, bool) { return as_bits(static_cast<double>(v)); }
u64 pack_f32(int v, bool) { return as_bits(static_cast<float>(v)); }
u64 pack_f16(int v, bool) { return to_half(static_cast<float>(v)).bits; }
u64 pack_bf16(int v, bool) { return to_bfloat(static_cast<float>(v)).bits; }
u64 pack_fp8(int v, bool fnuz) { return encode_small(fnuz ? e4m3fnuz_format : e4m3fn_format, v, Rounding::nearest_even, false); }
u64 pack_bf8(int v, bool fnuz) { return encode_small(fnuz ? e5m2fnuz_format : e5m2_format, v, Rounding::nearest_even, false); }
u64 pack_i8(int v, bool) { return static_cast<u32>(v) & 0xffU; }
const Packing f64{"f64", 64, 2047, pack_f64}, f32{"f32", 32, 1023, pack_f32}, xf32{"xf32", 32, 1023, pack_f32},
    f16{"f16", 16, 1023, pack_f16}, bf16{"bf16", 16, 255, pack_bf16}, fp8{"fp8", 8, 33, pack_fp8}, bf8{"bf8", 8, 17, pack_bf8},
    i8{"i8", 8, 255, pack_i8};

struct Shape {
  int side, k, blocks;
  int positions() const { return side * k * blocks; }
};
// The value at a position of A or B: a digit of its number to the base of the type's range. Over all turns no two positions have
// the same values.
int digit(int position, int range, int turn) {
  for (; turn > 0; --turn) position /= range;
  return position % range - range / 2;
}
int turns_of(const Shape& s, int range) {
  int turns = 1;
  for (int n = range; n < s.positions(); n *= range) ++turns;
  return turns;
}

struct Source { // the values of A or B
  Shape shape;
  const Packing& type;
  int turn;
  bool is_b;
  int at(int block, int row, int column) const { // row of A or column of B, and k
    const int position = (block * shape.side + row) * shape.k + column;
    return digit(is_b ? shape.positions() - 1 - position : position, type.range, turn);
  }
};
int c_value(int block, int i, int j) { return block * 1024 + i * 32 + j; }

// Registers: element e of lane l is row l % side, column (l / side) * per_lane + e; of several blocks each group of lanes has one.
// f64 4x4x4 has its blocks side by side and its columns in the groups of 16 lanes.
std::vector<Lanes64> source(const Source& o, bool fnuz) {
  const auto [side, k, blocks] = o.shape;
  const int per_lane = side * k * blocks / 64, bits = o.type.bits;
  std::vector<Lanes64> registers(static_cast<std::size_t>(std::max(1, per_lane * bits / 32)), Lanes64{});
  for (int lane = 0; lane < 64; ++lane)
    for (int e = 0; e < per_lane; ++e) {
      int row = lane % side, block = blocks > 1 ? lane / side : 0, column = blocks > 1 ? e : lane / side * per_lane + e;
      if (bits == 64 && side == 4) block = lane / 4 % 4, column = lane / 16;
      const u64 code = o.type.code(o.at(block, row, column), fnuz);
      const auto word = static_cast<std::size_t>(e * bits / 32), l = static_cast<std::size_t>(lane);
      registers[word][l] |= static_cast<u32>(code << (e * bits % 32));
      if (bits == 64) registers[word + 1][l] = static_cast<u32>(code >> 32);
    }
  return registers;
}

// Block, row and column of result `reg` (32 or 64 bits) of a lane: groups of four rows, alternating between the halves or quarters
// of the lanes; f64 has one row of each quarter a register.
std::array<int, 3> place(const Shape& s, bool wide, int lane, int reg) {
  if (wide) return s.side == 16 ? std::array{0, 4 * reg + lane / 16, lane % 16} : std::array{lane / 4 % 4, lane / 16, lane % 4};
  const int block = s.side == 4 ? lane / 4 : reg / (s.side * s.side / 64), r = s.side == 4 ? reg : reg % (s.side * s.side / 64);
  return {block, s.side == 32 ? 8 * (r / 4) + 4 * (lane / 32) + r % 4 : s.side == 16 ? 4 * (lane / 16) + r : r, lane % s.side};
}

std::string span(char letter, int first, int n) {
  return n == 1 ? fmt::format("{}{}", letter, first) : fmt::format("{}[{}:{}]", letter, first, first + n - 1);
}

struct Product {
  std::vector<Lanes64> v;
  int results;
};
// A at v[128..], B at v[144..], C and D at v[64..] or a[64..]; C by c_value.
Product multiply(const std::string& name, const Shape& s, const Source& a, const Source& b, const char* arch, bool accumulation,
                 const std::string& suffix = "") {
  const bool fnuz = std::string(arch) == "gfx942", integer = &a.type == &i8, wide = &a.type == &f64;
  std::vector<Lanes64> in = source(a, fnuz);
  const int words = static_cast<int>(in.size()), results = s.side * s.side * s.blocks / 64 * (wide ? 2 : 1);
  for (const Lanes64& r : source(b, fnuz)) in.push_back(r);
  for (int reg = 0; reg < results; ++reg)
    in.push_back(each_lane([&](int lane) {
      const auto [block, i, j] = place(s, wide, lane, wide ? reg / 2 : reg);
      const int c = c_value(block, i, j);
      return wide ? static_cast<u32>(pack_f64(c, false) >> (reg % 2 * 32)) : integer ? static_cast<u32>(c) : as_bits(static_cast<float>(c));
    }));
  std::string body;
  for (int w = 0; w < 2 * words; ++w) body += fmt::format("v_mov_b32 v{}, v{}\n", (w < words ? 128 : 144 - words) + w, w + 1);
  const char file = accumulation ? 'a' : 'v';
  for (int r = 0; r < results; ++r)
    body += fmt::format("{} {}{}, v{}\n", accumulation ? "v_accvgpr_write_b32" : "v_mov_b32", file, 64 + r, 2 * words + 1 + r);
  body += fmt::format("s_mov_b64 exec, 0\n s_nop 7\n {} {}, {}, {}, {}{}\n s_mov_b64 exec, -1\n s_nop 15\n s_nop 7\n", name,
                      span(file, 64, results), span('v', 128, words), span('v', 144, words), span(file, 64, results), suffix);
  for (int r = 0; r < results && accumulation; ++r) body += fmt::format("v_accvgpr_read_b32 v{}, a{}\n", 64 + r, 64 + r);
  const LaneResult r = run({.body = body, .inputs = in, .results = results, .accumulation = accumulation, .arch = arch});
  REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
  return {r.v, results};
}
double result(const Product& p, const Packing& type, int reg, int lane) {
  const auto word = [&](int w) { return p.v[static_cast<std::size_t>(w)][static_cast<std::size_t>(lane)]; };
  if (&type == &f64) return as_double(word(2 * reg) | u64{word(2 * reg + 1)} << 32);
  return &type == &i8 ? static_cast<double>(static_cast<int>(word(reg))) : static_cast<double>(as_float(word(reg)));
}

int checked = 0; // results, of all shapes

void check(const std::string& name, const Shape& s, const Packing& a_type, const Packing& b_type, const char* arch) {
  CAPTURE(name);
  const bool wide = &a_type == &f64;
  const int range = std::min(a_type.range, b_type.range);
  for (int turn = 0; turn < turns_of(s, range); ++turn)
    for (const bool accumulation : {false, true}) {
      const Source a{s, a_type, turn, false}, b{s, b_type, turn, true};
      const Product p = multiply(name, s, a, b, arch, accumulation);
      for (int reg = 0; reg < p.results / (wide ? 2 : 1); ++reg)
        for (int lane = 0; lane < 64; ++lane, ++checked) {
          const auto [block, i, j] = place(s, wide, lane, reg);
          double want = c_value(block, i, j);
          for (int kk = 0; kk < s.k; ++kk) want += static_cast<double>(a.at(block, i, kk)) * b.at(block, j, kk);
          CHECK(result(p, a_type, reg, lane) == want);
        }
    }
}

} // namespace

TEST_CASE("MFMA: every shape and type puts every product where it belongs") {
  checked = 0;
  const auto both = [](const std::string& name, const Shape& s, const Packing& a, const Packing& b) {
    for (const char* arch : {"gfx942", "gfx950"}) check(name, s, a, b, arch);
  };
  for (const Packing* p : {&f16, &bf16}) {
    both(fmt::format("v_mfma_f32_16x16x16_{}", p->name), {16, 16, 1}, *p, *p);
    both(fmt::format("v_mfma_f32_32x32x8_{}", p->name), {32, 8, 1}, *p, *p);
    both(fmt::format("v_mfma_f32_4x4x4_16b_{}", p->name), {4, 4, 16}, *p, *p);
    both(fmt::format("v_mfma_f32_16x16x4_4b_{}", p->name), {16, 4, 4}, *p, *p);
    both(fmt::format("v_mfma_f32_32x32x4_2b_{}", p->name), {32, 4, 2}, *p, *p);
    check(fmt::format("v_mfma_f32_16x16x32_{}", p->name), {16, 32, 1}, *p, *p, "gfx950");
    check(fmt::format("v_mfma_f32_32x32x16_{}", p->name), {32, 16, 1}, *p, *p, "gfx950");
  }
  both("v_mfma_f32_16x16x4_f32", {16, 4, 1}, f32, f32);
  both("v_mfma_f32_32x32x2_f32", {32, 2, 1}, f32, f32);
  both("v_mfma_f32_4x4x1_16b_f32", {4, 1, 16}, f32, f32);
  both("v_mfma_f32_16x16x1_4b_f32", {16, 1, 4}, f32, f32);
  both("v_mfma_f32_32x32x1_2b_f32", {32, 1, 2}, f32, f32);
  check("v_mfma_f32_16x16x8_xf32", {16, 8, 1}, xf32, xf32, "gfx942");
  check("v_mfma_f32_32x32x4_xf32", {32, 4, 1}, xf32, xf32, "gfx942");
  both("v_mfma_f64_16x16x4_f64", {16, 4, 1}, f64, f64);
  both("v_mfma_f64_4x4x4_4b_f64", {4, 4, 4}, f64, f64);
  for (const Packing* a : {&fp8, &bf8})
    for (const Packing* b : {&fp8, &bf8}) {
      both(fmt::format("v_mfma_f32_16x16x32_{}_{}", a->name, b->name), {16, 32, 1}, *a, *b);
      both(fmt::format("v_mfma_f32_32x32x16_{}_{}", a->name, b->name), {32, 16, 1}, *a, *b);
    }
  both("v_mfma_i32_16x16x32_i8", {16, 32, 1}, i8, i8);
  both("v_mfma_i32_32x32x16_i8", {32, 16, 1}, i8, i8);
  both("v_mfma_i32_4x4x4_16b_i8", {4, 4, 16}, i8, i8);
  both("v_mfma_i32_16x16x4_4b_i8", {16, 4, 4}, i8, i8);
  both("v_mfma_i32_32x32x4_2b_i8", {32, 4, 2}, i8, i8);
  check("v_mfma_i32_16x16x64_i8", {16, 64, 1}, i8, i8, "gfx950");
  check("v_mfma_i32_32x32x32_i8", {32, 32, 1}, i8, i8, "gfx950");
  MESSAGE(fmt::format("{} results of MFMA", checked));
}

TEST_CASE("MFMA: CBSZ and ABID share blocks of A, BLGP exchanges lanes of B") {
  for (const Shape& s : {Shape{16, 1, 4}, Shape{32, 1, 2}, Shape{4, 1, 16}}) {
    const std::string name = fmt::format("v_mfma_f32_{0}x{0}x1_{1}b_f32", s.side, s.blocks);
    const Source a{s, f32, 0, false}, b{s, f32, 0, true};
    const auto expect = [&](const std::string& suffix, auto a_block, auto b_lane) {
      CAPTURE(name + suffix);
      const Product p = multiply(name, s, a, b, "gfx942", false, suffix);
      for (int reg = 0; reg < p.results; ++reg)
        for (int lane = 0; lane < 64; ++lane) {
          const auto [block, i, j] = place(s, false, lane, reg);
          const int from = b_lane(block * s.side + j); // the lane that has column j of the block
          CHECK(result(p, f32, reg, lane) ==
                c_value(block, i, j) + static_cast<double>(a.at(a_block(block), i, 0)) * b.at(from / s.side, from % s.side, 0));
        }
    };
    const auto same = [](int x) { return x; };
    for (int cbsz = 1; 1 << cbsz <= s.blocks; ++cbsz)
      for (int abid = 0; abid < 1 << cbsz; ++abid)
        expect(fmt::format(" cbsz:{} abid:{}", cbsz, abid), [=](int block) { return (block >> cbsz << cbsz) + abid; }, same);
    expect(" blgp:1", same, [](int lane) { return lane % 32; });
    expect(" blgp:2", same, [](int lane) { return lane % 32 + 32; });
    expect(" blgp:3", same, [](int lane) { return (lane + 16) % 64; });
    for (int quarter = 0; quarter < 4; ++quarter)
      expect(fmt::format(" blgp:{}", 4 + quarter), same, [=](int lane) { return lane % 16 + 16 * quarter; });
  }
}

TEST_CASE("MFMA: xf32 keeps ten bits, to nearest even; f64 negates by BLGP; C may be a constant") {
  const auto first = [](const std::string& body, int results) {
    const LaneResult r = run({.body = body + "\n s_nop 15", .results = results});
    REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
    return r.v;
  };
  const std::string ones = "v_mov_b32 v10, 1.0\n v_mov_b32 v11, 0\n";
  const auto rounded = [&](u32 bits) { // A has `bits` in k = 0 of each group of lanes, B is 1 there
    return first(ones +
                     fmt::format("v_mov_b32 v12, {:#x}\n v_mov_b32 v13, 0\n v_mfma_f32_16x16x8_xf32 v[64:67], v[12:13], v[10:11], 0", bits),
                 4)[0][0];
  };
  CHECK(rounded(0x3f800000) == as_bits(4.0F)); // four groups of lanes
  CHECK(rounded(0x3f800fff) == as_bits(4.0F));
  CHECK(rounded(0x3f801000) == as_bits(4.0F)); // a tie, to even
  CHECK(rounded(0x3f803000) == as_bits(4 * as_float(0x3f804000)));
  CHECK(rounded(0x3f801001) == as_bits(4 * as_float(0x3f802000)));
  CHECK(rounded(0xbf7ff800) == as_bits(-4.0F));
  CHECK(rounded(0x7f800000) == 0x7f800000U);
  const std::string doubles = "v_mov_b32 v10, 0\n v_mov_b32 v11, 0x40080000\n"; // 3
  const auto negated = [&](int blgp) {
    const auto v = first(doubles + fmt::format("v_mfma_f64_4x4x4_4b_f64 v[64:65], v[10:11], v[10:11], 1.0 neg:[{},{},{}]", blgp & 1,
                                               blgp >> 1 & 1, blgp >> 2),
                         2);
    return as_double(v[0][0] | u64{v[1][0]} << 32);
  };
  for (int blgp = 0; blgp < 8; ++blgp) CHECK(negated(blgp) == 36.0 * ((blgp & 1) != (blgp >> 1 & 1) ? -1 : 1) + (blgp >= 4 ? -1 : 1));
}

} // namespace matrix_test
