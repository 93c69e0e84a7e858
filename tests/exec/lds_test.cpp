// LDS instructions: atomics of every kind with and without a result, two-address exchanges, M0 forms, gfx950's transposing reads.
#include "tests/exec/lane_program.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <random>

namespace lds_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

// What an atomic makes of a memory value and its data.
struct AtomicCase {
  const char* name; // without "ds_", "_rtn" and the width
  const char* type; // before the width
  int bits;
  u64 (*now)(u64 old, u64 data, u64 second);
  bool two = false;
  bool returns_only = false;
};
template <class T> T as(u64 x) { return std::bit_cast<T>(static_cast<std::conditional_t<sizeof(T) == 8, u64, u32>>(x)); }
template <class T> u64 from(T x) { return std::bit_cast<std::conditional_t<sizeof(T) == 8, u64, u32>>(x); }
template <int bits> i64 sext(u64 x) { return static_cast<i64>(x << (64 - bits)) >> (64 - bits); }
u64 halves_sum(u64 a, u64 b) {
  u64 r = 0;
  for (int s = 0; s < 32; s += 16)
    r |= u64{encode_small(f16_format,
                          static_cast<double>(decode_small(f16_format, a >> s & 0xffffU)) +
                              static_cast<double>(decode_small(f16_format, b >> s & 0xffffU)),
                          Rounding::nearest_even, false)}
         << s;
  return r;
}
#define KILN_BOTH_WIDTHS(name, type, formula)                                                                                              \
  {name, type, 32,                                                                                                                         \
   [](u64 old, [[maybe_unused]] u64 data, [[maybe_unused]] u64 second) -> u64 {                                                            \
     constexpr int bits = 32;                                                                                                              \
     return (formula) & 0xffffffffU;                                                                                                       \
   }},                                                                                                                                     \
  {                                                                                                                                        \
    name, type, 64, [](u64 old, [[maybe_unused]] u64 data, [[maybe_unused]] u64 second) -> u64 {                                           \
      constexpr int bits = 64;                                                                                                             \
      return formula;                                                                                                                      \
    }                                                                                                                                      \
  }
const AtomicCase atomics[] = {
    KILN_BOTH_WIDTHS("add", "u", (void(bits), old + data)),
    KILN_BOTH_WIDTHS("sub", "u", (void(bits), old - data)),
    KILN_BOTH_WIDTHS("rsub", "u", (void(bits), data - old)),
    KILN_BOTH_WIDTHS("inc", "u", (void(bits), old >= data ? 0 : old + 1)),
    KILN_BOTH_WIDTHS("dec", "u", (void(bits), old == 0 || old > data ? data : old - 1)),
    KILN_BOTH_WIDTHS("min", "i", static_cast<u64>(std::min(sext<bits>(old), sext<bits>(data)))),
    KILN_BOTH_WIDTHS("max", "i", static_cast<u64>(std::max(sext<bits>(old), sext<bits>(data)))),
    KILN_BOTH_WIDTHS("min", "u", (void(bits), std::min(old, data))),
    KILN_BOTH_WIDTHS("max", "u", (void(bits), std::max(old, data))),
    KILN_BOTH_WIDTHS("and", "b", (void(bits), old& data)),
    KILN_BOTH_WIDTHS("or", "b", (void(bits), old | data)),
    KILN_BOTH_WIDTHS("xor", "b", (void(bits), old ^ data)),
    {"mskor", "b", 32, [](u64 old, u64 data, u64 second) -> u64 { return ((old & ~data) | second) & 0xffffffffU; }, true},
    {"mskor", "b", 64, [](u64 old, u64 data, u64 second) -> u64 { return (old & ~data) | second; }, true},
    {"cmpst", "b", 32, [](u64 old, u64 data, u64 second) -> u64 { return old == data ? second : old; }, true},
    {"cmpst", "b", 64, [](u64 old, u64 data, u64 second) -> u64 { return old == data ? second : old; }, true},
    {"cmpst", "f", 32, [](u64 old, u64 data, u64 second) -> u64 { return as<float>(old) == as<float>(data) ? second : old; }, true},
    {"cmpst", "f", 64, [](u64 old, u64 data, u64 second) -> u64 { return as<double>(old) == as<double>(data) ? second : old; }, true},
    {"wrap", "b", 32, [](u64 old, u64 data, u64 second) -> u64 { return (old >= data ? old - data : old + second) & 0xffffffffU; }, true,
     true},
    {"wrxchg", "b", 32, [](u64, u64 data, u64) -> u64 { return data; }, false, true},
    {"wrxchg", "b", 64, [](u64, u64 data, u64) -> u64 { return data; }, false, true},
    {"add", "f", 32,
     [](u64 old, u64 data, u64) -> u64 {
       return from(static_cast<float>(static_cast<double>(as<float>(old)) + static_cast<double>(as<float>(data))));
     }},
    {"add", "f", 64, [](u64 old, u64 data, u64) -> u64 { return from(as<double>(old) + as<double>(data)); }},
    {"min", "f", 32, [](u64 old, u64 data, u64) -> u64 { return as<float>(data) < as<float>(old) ? data : old; }},
    {"max", "f", 64, [](u64 old, u64 data, u64) -> u64 { return as<double>(data) > as<double>(old) ? data : old; }},
    {"pk_add", "f", 16, [](u64 old, u64 data, u64) -> u64 { return halves_sum(old, data); }},
};

// Values that meet often: equal to memory, wrapped, floats.
u64 value(const AtomicCase& c, std::mt19937& random) {
  const u32 r = static_cast<u32>(random());
  if (c.type[0] == 'f') {
    const double x = static_cast<double>(r % 17) - 8.5 + (r / 32 % 2 == 0 ? 0.25 : 0);
    if (c.bits == 16) return encode_small(f16_format, x, Rounding::nearest_even, false) * 0x10001U;
    return c.bits == 64 ? from(x) : from(static_cast<float>(x));
  }
  const u64 wide = r % 3 == 0 ? r % 4 : r % 3 == 1 ? ~u64{r % 4} : u64{r} << 32 | static_cast<u32>(random());
  return c.bits == 64 ? wide : wide & 0xffffffffU;
}

} // namespace

TEST_CASE("LDS atomics: every operation, width and form") {
  std::mt19937 random(9);
  int cases = 0;
  for (const AtomicCase& c : atomics)
    for (const bool returns : {false, true}) {
      if (c.returns_only && !returns) continue;
      const int words = c.bits == 64 ? 2 : 1;
      const std::string name = fmt::format("ds_{}{}_{}{}", c.name, returns ? "_rtn" : "", c.type, c.bits);
      CAPTURE(name);
      for (int turn = 0; turn < 3; ++turn) {
        std::array<std::array<u64, 64>, 3> x{}; // memory, data, second data
        for (std::size_t i = 0; i < 64; ++i)
          for (auto& column : x) column[i] = value(c, random);
        std::vector<Lanes64> in;
        for (const auto& column : x)
          for (int w = 0; w < 2; ++w)
            in.push_back(each_lane([&](int i) { return static_cast<u32>(column[static_cast<std::size_t>(i)] >> (32 * w)); }));
        const auto reg = [&](int first) { return words == 1 ? fmt::format("v{}", first) : fmt::format("v[{}:{}]", first, first + 1); };
        // v1, v2 to memory; v[10:11] and v[12:13] are the data; inactive lanes must not take part.
        std::string body = "v_mov_b32 v10, v3\n v_mov_b32 v11, v4\n v_mov_b32 v12, v5\n v_mov_b32 v13, v6\n v_mov_b32 v14, v1\n v_mov_b32 "
                           "v15, v2\n v_mov_b32 v66, 7\n v_mov_b32 v67, 7\n v_lshlrev_b32 v20, 3, v0\n"
                           "ds_write_b64 v20, v[14:15]\n s_waitcnt lgkmcnt(0)\n s_mov_b32 exec_lo, 0xf0ffffff\n";
        body += fmt::format("{} {}v20, {}{}\n", name, returns ? reg(66) + ", " : "", reg(10), c.two ? ", " + reg(12) : "");
        body += "s_mov_b64 exec, -1\n s_waitcnt lgkmcnt(0)\n ds_read_b64 v[64:65], v20\n s_waitcnt lgkmcnt(0)";
        const LaneResult r = run({.body = body, .inputs = in, .results = 4, .lds_bytes = 512});
        REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
        for (std::size_t i = 0; i < 64; ++i, ++cases) {
          const bool on = i < 24 || i >= 28;
          const u64 old = x[0][i], want = on ? c.now(c.bits == 64 ? old : old & 0xffffffffU, x[1][i], x[2][i]) : old;
          const u64 got = r.v[0][i] | u64{r.v[1][i]} << 32, back = r.v[2][i] | u64{r.v[3][i]} << 32;
          if (c.bits == 64) CHECK(got == want);
          else CHECK((got & 0xffffffffU) == (want & 0xffffffffU));
          if (returns && on) CHECK((c.bits == 64 ? back : back & 0xffffffffU) == (c.bits == 64 ? old : old & 0xffffffffU));
          if (!returns || !on) CHECK(back == 0x700000007ULL);
        }
      }
    }
  MESSAGE(fmt::format("{} cases of LDS atomics", cases));
}

TEST_CASE("LDS: exchanges at two addresses, in units of one and of 64") {
  const Lanes64 a = each_lane([](int i) { return static_cast<u32>(i) * 3 + 1; }),
                b = each_lane([](int i) { return static_cast<u32>(i) * 5 + 1000; });
  for (const bool far : {false, true})
    for (const int words : {1, 2}) {
      const u32 unit = (far ? 64U : 1U) * 4U * static_cast<u32>(words), first = unit * 1, second = unit * (far ? 2 : 65);
      const std::string width = fmt::format("b{}", 32 * words), name = fmt::format("ds_wrxchg2{}_rtn_{}", far ? "st64" : "", width);
      CAPTURE(name);
      const std::string pairs = words == 1 ? "v[64:65], v20, v10, v12" : "v[64:67], v20, v[10:11], v[12:13]";
      std::string body =
          fmt::format("v_mov_b32 v10, v1\n v_mov_b32 v11, v2\n v_mov_b32 v12, v2\n v_mov_b32 v13, v1\n v_mov_b32 v64, 0\n v_mov_b32 v65, "
                      "0\n v_mov_b32 v66, 0\n v_mov_b32 v67, 0\n v_mul_u32_u24 v20, {}, v0\n v_mov_b32 v30, 77\n v_mov_b32 v31, 78\n"
                      "ds_write_{} v20, {} offset:{}\n ds_write_{} v20, {} offset:{}\n s_waitcnt lgkmcnt(0)\n {} {} offset0:1 offset1:{}\n "
                      "s_waitcnt lgkmcnt(0)\n"
                      "ds_read_b32 v68, v20 offset:{}\n ds_read_b32 v69, v20 offset:{}\n s_waitcnt lgkmcnt(0)",
                      4 * words, width, words == 1 ? "v30" : "v[30:31]", first, width, words == 1 ? "v30" : "v[30:31]", second, name, pairs,
                      far ? 2 : 65, first, second);
      const LaneResult r = run({.body = body, .inputs = {a, b}, .results = 6, .lds_bytes = 4096});
      REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
      for (std::size_t i = 0; i < 64; ++i) {
        for (std::size_t w = 0; w < static_cast<std::size_t>(2 * words); ++w) CHECK(r.v[w][i] == (words == 2 && w % 2 == 1 ? 78U : 77U));
        CHECK(r.v[4][i] == a[i]);
        CHECK(r.v[5][i] == b[i]);
      }
    }
}

TEST_CASE("LDS: a base below zero and an offset beyond it give an address within, modulo 2^32") {
  const Lanes64 in = each_lane([](int i) { return static_cast<u32>(i * 7 + 1); });
  const LaneResult r = run({.body = "v_lshlrev_b32 v20, 2, v0\n v_subrev_u32 v21, 256, v20\n ds_write_b32 v21, v1 offset:512\n "
                                    "s_waitcnt lgkmcnt(0)\n ds_read_b32 v64, v20 offset:256\n s_waitcnt lgkmcnt(0)",
                            .inputs = {in},
                            .results = 1,
                            .lds_bytes = 512});
  REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
  CHECK(r.v[0] == in);
}

TEST_CASE("LDS: addresses from M0 and the lane, and counting of lanes") {
  const std::string body =
      "v_lshlrev_b32 v20, 2, v0\n v_mov_b32 v10, 100\n ds_write_b32 v20, v10\n s_waitcnt lgkmcnt(0)\n s_mov_b32 m0, 256\n s_nop 1\n "
      "ds_write_addtid_b32 v1 offset:16\n s_waitcnt lgkmcnt(0)\n"
      "ds_read_b32 v64, v20 offset:272\n ds_read_addtid_b32 v65 offset:16\n v_mov_b32 v66, 5\n v_mov_b32 v67, 5\n s_mov_b32 m0, 8\n "
      "s_mov_b64 exec, 0x1ff0\n s_nop 4\n ds_append v66 offset:4\n s_waitcnt lgkmcnt(0)\n ds_consume v67 offset:4\n"
      "s_waitcnt lgkmcnt(0)\n ds_append v67 offset:4\n s_mov_b64 exec, -1\n s_waitcnt lgkmcnt(0)\n ds_read_b32 v68, v20\n s_waitcnt "
      "lgkmcnt(0)";
  const Lanes64 in = each_lane([](int i) { return static_cast<u32>(i * i + 3); });
  const LaneResult r = run({.body = body, .inputs = {in}, .results = 5, .lds_bytes = 1024});
  REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
  CHECK(r.v[0] == in);
  CHECK(r.v[1] == in);
  for (std::size_t i = 0; i < 64; ++i) {
    const bool on = i >= 4 && i < 13; // nine lanes
    CHECK(r.v[2][i] == (on ? 100U : 5U));
    CHECK(r.v[3][i] == (on ? 100U : 5U)); // after append and consume it is 100 again
    CHECK(r.v[4][i] == (i == 3 ? 109U : 100U));
  }
}

TEST_CASE("gfx950: transposing reads give each lane a column of its sixteen lanes' block") {
  int cases = 0;
  for (const auto& [name, width, words] : {std::tuple{"ds_read_b64_tr_b16", 16, 2}, std::tuple{"ds_read_b64_tr_b8", 8, 2},
                                           std::tuple{"ds_read_b64_tr_b4", 4, 2}, std::tuple{"ds_read_b96_tr_b6", 6, 3}}) {
    CAPTURE(name);
    std::mt19937 random(static_cast<u32>(width));
    std::vector<Lanes64> in(static_cast<std::size_t>(words));
    for (Lanes64& l : in) l = each_lane([&](int) { return static_cast<u32>(random()); });
    // Lane i writes its piece at slot 63 - i, so that pieces are not in order in LDS; 16 bytes per slot.
    const std::string body =
        fmt::format("v_sub_u32 v20, 63, v0\n v_lshlrev_b32 v20, 4, v20\n v_mov_b32 v10, v1\n v_mov_b32 v11, v2\n {}ds_write_b64 v20, "
                    "v[10:11] offset:32\n {}s_waitcnt lgkmcnt(0)\n {} {}, v20 offset:32\n s_waitcnt lgkmcnt(0)",
                    words == 3 ? "v_mov_b32 v12, v3\n " : "", words == 3 ? "ds_write_b32 v20, v12 offset:40\n " : "", name,
                    words == 3 ? "v[64:66]" : "v[64:65]");
    const LaneResult r = run({.body = body, .inputs = in, .results = words, .lds_bytes = 2048, .arch = "gfx950"});
    REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
    const auto bits = [&](const std::vector<Lanes64>& v, int lane, int at) {
      u32 x = 0;
      for (int b = 0; b < width; ++b)
        x |= (v[static_cast<std::size_t>((at + b) / 32)][static_cast<std::size_t>(lane)] >> ((at + b) % 32) & 1U) << b;
      return x;
    };
    // The block of lanes 16 g to 16 g + 15 as a matrix: row r, column c is in lane 16 g + (16 r + c) / elements.
    const int elements = 32 * words / width;
    for (int lane = 0; lane < 64; ++lane)
      for (int row = 0; row < elements; ++row, ++cases) {
        const int nth = 16 * row + lane % 16;
        CHECK(bits(r.v, lane, row * width) == bits(in, lane / 16 * 16 + nth / elements, nth % elements * width));
      }
  }
  MESSAGE(fmt::format("{} elements of transposing reads", cases));
  const LaneResult partial =
      run({.body = "v_mov_b32 v20, 0\n v_mov_b32 v64, 0\n s_mov_b64 exec, 0xff\n s_nop 4\n ds_read_b64_tr_b16 v[64:65], v20",
           .lds_bytes = 64,
           .arch = "gfx950"});
  CHECK_FALSE(partial.run.completed);
}

} // namespace lds_test
