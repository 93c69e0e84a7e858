// Points of shapes and types at which schedules are compared.
#include "tests/timing/schedule_points.h"
#include "gen/catalog/catalog.h"
#include "gen/reference/random.h"
#include <fmt/format.h>

namespace kiln::testing {
namespace {

SchedulePoint product(Random& random, const Target& to) {
  const auto pick = [&](std::initializer_list<std::int64_t> values) { return random.pick(values); };
  static constexpr std::string_view names[] = {
      "gemm", "gemm", "gemm", "gemm_bias", "gemm_swiglu_quant", "gemm_w8a16", "gemm_w4a16", "gemm_block_scaled"};
  CatalogOptions o;
  o.fp8 = to.fp8();
  const std::string name(names[random.between(0, std::ssize(names) - 1)]);
  const bool sixteen = name == "gemm_w8a16" || name == "gemm_w4a16" || random.chance(30);
  o.dtype = name == "gemm_block_scaled" ? to.fp8() : sixteen ? (random.chance(50) ? f16 : bf16) : to.fp8();
  o.m = pick({1, 2, 4, 8, 16, 32, 64});
  do {
    o.n = pick({512, 1024, 1280, 1792, 2048, 2304, 3584, 4096, 5120, 7168, 8192, 13312, 14336});
    o.k = pick({512, 1024, 2048, 3584, 4096, 6656, 7168, 8192, 16384});
  } while (o.n * o.k > (random.chance(20) ? 40 << 20 : 16 << 20)); // larger ones lie on a line, and take the executor long
  return {fmt::format("{} m={} n={} k={} {} {}", name, o.m, o.n, o.k, to_string(o.dtype), to.arch()), catalog_spec(name, o), to};
}

SchedulePoint rows_point(Random& random, const Target& to) {
  static constexpr std::string_view names[] = {
      "add_rmsnorm_quant", "add_rmsnorm_dynamic_quant", "rmsnorm",     "layernorm", "softmax",       "swiglu_quant", "gelu_mul", "silu_mul",
      "add_bias_gelu",     "per_token_quant",           "group_quant", "dequant",   "group_dequant", "scaled_add",   "cast"};
  CatalogOptions o;
  o.fp8 = to.fp8();
  const std::string name(names[random.between(0, std::ssize(names) - 1)]);
  o.dtype = random.chance(60) ? f16 : random.chance(80) ? bf16 : f32;
  o.cols = random.chance(85) ? random.pick({128, 512, 1024, 2048, 4096, 5120, 6656, 8192, 13312, 16384}) : random.between(100, 20000);
  const std::int64_t rows = random.pick({0, 1, 2, 8, 16, 64, 256, 1024, 4096});
  std::string text = to_text(catalog_spec(name, o));
  if (rows > 0) {
    const std::string any = "dim rows\n";
    text.replace(text.find(any), any.size(), fmt::format("dim rows[{0}..{0}]\n", rows));
  }
  return {fmt::format("{} rows={} cols={} {} {}", name, rows == 0 ? "any" : std::to_string(rows), o.cols, to_string(o.dtype), to.arch()),
          parse_spec(text), to};
}

} // namespace

SchedulePoint schedule_point(std::uint64_t seed) {
  Random random(seed);
  const Target to = target(random.chance(50) ? "gfx942" : "gfx950");
  return random.chance(55) ? product(random, to) : rows_point(random, to);
}

} // namespace kiln::testing
