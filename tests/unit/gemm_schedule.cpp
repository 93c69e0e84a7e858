// The order of a skinny GEMM's schedules: bytes of A against balance, balance before bytes in flight.
#include "gen/families/schedule.h"
#include "gen/families/skinny_gemm/register_model.h"
#include "gen/spec/math.h"
#include <algorithm>
#include <doctest/doctest.h>

using namespace kiln;

namespace {

std::vector<SkinnyGemmConfig> configs_of(const KernelSpec& spec, const Target& to) {
  std::vector<SkinnyGemmConfig> result;
  for (const Schedule& schedule : candidates(make_plan(spec, to), to)) result.push_back(std::get<SkinnyGemmConfig>(schedule.config));
  return result;
}

std::vector<SkinnyGemmConfig> four_bits(const Target& to, std::int64_t m, std::int64_t n, std::int64_t group) {
  const std::int64_t k = 4096;
  return configs_of(KernelSpec("gemm").output("c", f32,
                                              matmul_nt_w4(input("a", f16, {dynamic("m", 1, m), k}), input("b", u8, {n, k / 2}),
                                                           input("scale", f16, {n, k / group}), input("zero", u8, {n, k / group}), group)),
                    to);
}

std::vector<SkinnyGemmConfig> eight_bits(const Target& to, std::int64_t m, std::int64_t n, std::int64_t k) {
  return configs_of(
      KernelSpec("gemm").output("c", f32, matmul_nt(input("a", to.fp8(), {dynamic("m", 1, m), k}), input("b", to.fp8(), {n, k}))), to);
}

double a_for_b(const SkinnyGemmConfig& c) { return static_cast<double>(gemm_a_loads(c)) / c.b_loads(); }

} // namespace

TEST_CASE("a tile so narrow that it reads A more often than L2 keeps up with does not come first") {
  for (const std::string_view arch : known_archs())
    for (const std::int64_t m : {16, 32, 48, 64})
      for (const std::int64_t n : {4096, 5000, 14336})
        for (const std::int64_t group : {32, 64, 128}) {
          CAPTURE(arch);
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(group);
          const auto configs = four_bits(target(arch), m, n, group);
          for (const SkinnyGemmConfig& c : configs) CHECK(a_for_b(configs.front()) <= std::max(4.0, a_for_b(c)));
        }
  // 32 rows on 304 CUs: only tiles of 16 columns keep them all busy alike, and would read 8 bytes of A for each one of B.
  const Target gfx942 = target("gfx942");
  const auto configs = four_bits(gfx942, 32, 4096, 128);
  CHECK(configs.front().tile_n == 64);
  CHECK(gemm_balance(configs.front(), gfx942) < 0.97);
  const auto narrowest = std::ranges::min_element(configs, {}, &SkinnyGemmConfig::tile_n);
  CHECK(narrowest->tile_n == 16);
  CHECK(gemm_balance(*narrowest, gfx942) > 0.97);
}

TEST_CASE("a tile that reads A less often does not come first if the CUs that it leaves idle cost more") {
  const Target gfx950 = target("gfx950");
  const auto configs = configs_of(
      KernelSpec("gemm").output("c", f32, matmul_nt(input("a", f16, {dynamic("m", 1, 48), 1024}), input("b", gfx950.fp8(), {2304, 1024}))),
      gfx950);
  CHECK(configs.front().tile_n == 32);
  const auto widest = std::ranges::max_element(configs, {}, &SkinnyGemmConfig::tile_n);
  CHECK(widest->tile_n == 64);
  CHECK(gemm_balance(*widest, gfx950) < 0.6);
  CHECK(gemm_balance(configs.front(), gfx950) > 0.7);
}

TEST_CASE("if A is little, balance comes first") {
  const Target gfx942 = target("gfx942");
  const auto configs = four_bits(gfx942, 16, 4096, 128);
  CHECK(configs.front().tile_n == 16);
  CHECK(gemm_balance(configs.front(), gfx942) > 0.97);
  for (const std::string_view arch : known_archs())
    for (const auto& [n, k] : {std::pair(2304, 16384), std::pair(13312, 16384), std::pair(16384, 6656)})
      CHECK(gemm_balance(eight_bits(target(arch), 8, n, k).front(), target(arch)) >= 0.97);
}

TEST_CASE("a ring of two comes first if it keeps as much in flight as longer ones of narrower tiles") {
  const auto configs = four_bits(target("gfx950"), 64, 14336, 128);
  REQUIRE(configs.size() > 1);
  CHECK(configs.front().ring == 2);
  for (const SkinnyGemmConfig& c : configs) CHECK(kib_behind_a_wait(configs.front()) >= kib_behind_a_wait(c));
}
