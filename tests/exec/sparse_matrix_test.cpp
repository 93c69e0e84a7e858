// SMFMAC against a matrix product with the sparse operand written out in full.
#include "tests/exec/lane_program.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace sparse_matrix_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;

struct Packing {
  const char* name;
  int bits, range; // every integer of [-range / 2, range / 2] is exact
};
constexpr Packing f16{"f16", 16, 1023}, bf16{"bf16", 16, 255}, fp8{"fp8", 8, 33}, bf8{"bf8", 8, 17}, i8{"i8", 8, 255};

u32 code_of(const Packing& t, int v, bool fnuz) {
  if (t.name == f16.name) return to_half(static_cast<float>(v)).bits;
  if (t.name == bf16.name) return to_bfloat(static_cast<float>(v)).bits;
  if (t.name == i8.name) return static_cast<u32>(v) & 0xffU;
  const SmallFloat& format = t.name == fp8.name ? (fnuz ? e4m3fnuz_format : e4m3fn_format) : (fnuz ? e5m2fnuz_format : e5m2_format);
  return encode_small(format, v, Rounding::nearest_even, false);
}
// A value is a digit of the position's number to the base of the range: over all turns no two positions have the same values.
struct Values {
  int range, turn;
  int digit(int position) const {
    for (int t = 0; t < turn; ++t) position /= range;
    return position % range - range / 2;
  }
  int a(int i, int n) const { return digit(i * 64 + n); } // n-th that is kept of row i
  int b(int k, int j) const { return digit(4095 - (k * 32 + j)); }
};
int first_of(int i, int group) { return (i + group) % 3; } // the two kept of a group of four
int second_of(int i, int group) { return first_of(i, group) + 1 + (i * group) % (3 - first_of(i, group)); }

void put(std::vector<Lanes64>& registers, int lane, int element, const Packing& t, u32 code) {
  const int in_word = 32 / t.bits;
  registers[static_cast<std::size_t>(element / in_word)][static_cast<std::size_t>(lane)] |= code << (t.bits * (element % in_word));
}

void check(const std::string& kind, int side, int k, const Packing& a, const Packing& b, const char* arch, int abid, bool explicit_set,
           const Values& values) {
  const std::string name = fmt::format("v_smfmac_{}_{}x{}x{}_{}{}", kind, side, side, k, a.name,
                                       b.bits == 8 && b.name != i8.name ? fmt::format("_{}", b.name) : "");
  CAPTURE(name);
  const bool fnuz = std::string(arch) == "gfx942";
  const int groups = 64 / side, dense = k / groups, words = dense * b.bits / 32, results = side * side / 64;
  std::vector<Lanes64> as(static_cast<std::size_t>(words / 2)), bs(static_cast<std::size_t>(words)), index(1);
  for (Lanes64& l : index)
    l = each_lane([&](int) { return abid == 0 ? 0U : 0x0badf00dU & ((1U << (dense * abid)) - 1); }); // other sets: noise
  for (int i = 0; i < side; ++i)
    for (int n = 0; n < k / 2; ++n) {
      const int lane = i + side * (n / (dense / 2)), e = n % (dense / 2), at = n % 2 == 0 ? first_of(i, n / 2) : second_of(i, n / 2);
      put(as, lane, e, a, code_of(a, values.a(i, n), fnuz));
      index[0][static_cast<std::size_t>(lane)] |= static_cast<u32>(at) << (dense * abid + 2 * e);
    }
  // 16 bytes of B in every lane, then the next 16: each part is side columns by groups of adjacent rows.
  const int chunk = 128 / b.bits;
  for (int kk = 0; kk < k; ++kk)
    for (int j = 0; j < side; ++j) {
      const int nth = kk / chunk; // the chunk among those of a column
      put(bs, j + side * (nth % groups), nth / groups * chunk + kk % chunk, b, code_of(b, values.b(kk, j), fnuz));
    }
  std::vector<Lanes64> in = as;
  in.insert(in.end(), bs.begin(), bs.end());
  in.push_back(index[0]);
  std::string body; // A at v128, B at v144, indices at v160, C and D at v64: 100 everywhere
  for (int w = 0; w < words / 2; ++w) body += fmt::format("v_mov_b32 v{}, v{}\n", 128 + w, 1 + w);
  for (int w = 0; w < words; ++w) body += fmt::format("v_mov_b32 v{}, v{}\n", 144 + w, 1 + words / 2 + w);
  body += fmt::format("v_mov_b32 v160, v{}\n", 1 + words / 2 + words);
  const bool integer = a.name == i8.name;
  for (int r = 0; r < results; ++r) body += fmt::format("v_mov_b32 v{}, {}\n", 64 + r, integer ? "0x64" : "0x42c80000");
  body += fmt::format("{} v[64:{}], v[128:{}], v[144:{}], v160{}\n s_nop 7\n s_nop 7\n", name, 63 + results, 127 + words / 2, 143 + words,
                      abid != 0      ? fmt::format(" abid:{}", abid)
                      : explicit_set ? " cbsz:1 abid:1"
                                     : "");
  const LaneResult r = run({.body = body, .inputs = in, .results = results, .arch = arch});
  REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
  for (int reg = 0; reg < results; ++reg)
    for (int lane = 0; lane < 64; ++lane) {
      const int i = side == 32 ? 8 * (reg / 4) + 4 * (lane / 32) + reg % 4 : 4 * (lane / 16) + reg, j = lane % side;
      int want = 100;
      for (int n = 0; n < k / 2; ++n)
        want += values.a(i, n) * values.b(4 * (n / 2) + (n % 2 == 0 ? first_of(i, n / 2) : second_of(i, n / 2)), j);
      const u32 got = r.v[static_cast<std::size_t>(reg)][static_cast<std::size_t>(lane)];
      CHECK((integer ? static_cast<int>(got) : static_cast<int>(as_float(got))) == want);
    }
}

void check_all_values(const std::string& kind, int side, int k, const Packing& a, const Packing& b, const char* arch, int abid,
                      bool explicit_set) {
  const int range = std::min(a.range, b.range);
  int turn = 0;
  for (int reach = 1; reach < 4096; reach *= range) check(kind, side, k, a, b, arch, abid, explicit_set, {range, turn++});
}

} // namespace

TEST_CASE("SMFMAC: every shape and type, every set of indices") {
  for (const char* arch : {"gfx942", "gfx950"})
    for (const int scale : {1, 2}) {
      if (scale == 2 && std::string(arch) == "gfx942") continue;
      for (int set = 0; set < 4 / scale; ++set)
        for (const Packing* t : {&f16, &bf16}) {
          check_all_values("f32", 16, 32 * scale, *t, *t, arch, set, false);
          check_all_values("f32", 32, 16 * scale, *t, *t, arch, set, set == 0);
        }
      for (int set = 0; set < 2 / scale; ++set) {
        for (const Packing* a : {&fp8, &bf8})
          for (const Packing* b : {&fp8, &bf8}) {
            check_all_values("f32", 16, 64 * scale, *a, *b, arch, set, set == 0);
            check_all_values("f32", 32, 32 * scale, *a, *b, arch, set, false);
          }
        check_all_values("i32", 16, 64 * scale, i8, i8, arch, set, false);
        check_all_values("i32", 32, 32 * scale, i8, i8, arch, set, false);
      }
    }
}

} // namespace sparse_matrix_test
