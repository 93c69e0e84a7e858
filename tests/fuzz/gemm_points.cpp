// Random points of skinny GEMMs: every schedule that is offered for one compiles and keeps its ISA contract, and every method
// that takes the point has a schedule that does. Seeds KILN_GEMM_FIRST (1) up to KILN_GEMM_COUNT (6) of them; 500 make more than
// 2,000 kernels.
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "gen/reference/random.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/build/inspect.h"
#include "runtime/compile/compile.h"
#include "tests/fuzz/seeds.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gemm_points_tests {
using namespace kiln;

namespace {

struct Point {
  KernelSpec spec;
  Target to;
};

// Scales of blocks, or weights of 4 bits, one in four preshuffled.
KernelSpec scaled_point(Random& random, const Target& to, std::int64_t m, std::int64_t n, std::int64_t k) {
  const Dim rows = dynamic("m", 1, m);
  const Layout layout = random.chance(25) ? Layout::preshuffled : Layout::contiguous;
  const bool packed = random.chance(50);
  const std::int64_t group = packed ? random.pick({32, 64, 96, 128, 256}) : scale_block, groups = group_count(k, group);
  if (packed) {
    const DType type = random.chance(50) ? f16 : bf16;
    return KernelSpec("w4").output("c", type,
                                   matmul_nt_w4(input("a", type, {rows, k}), input("b", u8, {n, k / 2}, layout),
                                                input("scale", type, {n, groups}), input("zero", u8, {n, groups}), group));
  }
  const DType type = random.chance(70) ? to.fp8() : i8;
  return KernelSpec("scaled").output("c", bf16,
                                     matmul_nt_scaled(input("a", type, {rows, k}), input("b", type, {n, k}, layout),
                                                      input("a_scale", f32, {rows, groups}),
                                                      input("b_scale", f32, {group_count(n, group), groups})));
}

// Epilogues that reduce groups of columns, of products whose rows are quantised or normed inside.
KernelSpec grouped_point(Random& random, const Target& to, std::int64_t m, std::int64_t n, std::int64_t k) {
  const Dim rows = dynamic("m", 1, m);
  const Expr a = input("a", bf16, {rows, k}), b = input("b", to.fp8(), {n, k});
  const Expr product = random.chance(50) ? matmul_nt_quantised(a, b)
                                         : matmul_nt_normed(a, b, input("weight", bf16, {k}), input("squares", f32, {rows, 128}),
                                                            input("scale", f32, {}), 1e-5F);
  if (random.chance(40)) return KernelSpec("normed").output("c", bf16, product);
  const Expr h = cast(bf16, product + input("residual", bf16, {rows, n}));
  return KernelSpec("squares").output("h", bf16, h).output("sums", f32, group_sum(h * h, random.pick({16, 32, 64, 128})));
}

// MXFP4 by MXFP4, with k of whole steps or not.
KernelSpec mx_point(Random& random, std::int64_t m, std::int64_t n, std::int64_t k) {
  const Dim rows = dynamic("m", 1, 2 * m);
  if (random.chance(60)) k = (k + 255) / 256 * 256;
  const std::int64_t groups = k / mx_block;
  const Expr product = matmul_nt_mx_mx(input("a", e2m1, {rows, k}), input("b", e2m1, {n, k}), input("a_scale", e8m0, {rows, groups}),
                                       input("b_scale", e8m0, {n, groups}));
  return KernelSpec("mx").output("c", bf16, random.chance(50) ? product : product + input("residual", bf16, {rows, n}));
}

Point random_point(std::uint64_t seed) {
  Random random(seed);
  const Target to = target(random.chance(50) ? "gfx942" : "gfx950");
  const auto pick = [&](std::initializer_list<std::int64_t> values) { return random.pick(values); };
  const DType e4 = to.fp8_e4m3(), e5 = to.fp8_e5m2();
  const std::pair<DType, DType> types[] = {{e4, e4},     {e4, e4}, {e4, e4},  {e4, e5},   {e5, e5}, {f16, f16},
                                           {bf16, bf16}, {i8, i8}, {f16, e4}, {bf16, e4}, {f16, i8}};
  const auto [a_type, b_type] = types[random.between(0, std::ssize(types) - 1)];
  const std::int64_t m = pick({1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 32, 48, 64});
  const std::int64_t n = random.chance(50) ? 64 * pick({1, 8, 18, 36, 64, 104, 208, 256}) : random.between(1, 20000);
  const std::int64_t k = 16 * (random.chance(50) ? pick({16, 64, 256, 416, 512, 1024}) : random.between(1, 1200));
  if (random.chance(12)) return {grouped_point(random, to, m, (n + 127) / 128 * 128, k), to};
  if (random.chance(30)) return {scaled_point(random, to, m, n, (k + 31) / 32 * 32), to};
  if (random.chance(12)) return {mx_point(random, m, n, (k + 31) / 32 * 32), to};
  const Expr a = input("a", a_type, {dynamic("m", 1, m), k});
  KernelSpec spec("gemm");
  switch (random.between(0, 3)) {
  case 0: {
    const Expr both = matmul_nt(a, input("b", b_type, {2 * n, k}));
    spec.output("c", e4, silu(columns(both, 0, n)) * columns(both, n, n) / scalar("s"));
    break;
  }
  case 1:
    spec.output("c", f16,
                matmul_nt(a, input("b", b_type, {n, k})) * input("a_scale", f32, {dynamic("m", 1, m), 1}) + input("bias", f16, {n}));
    break;
  case 2: spec.output("c", bf16, matmul_nt(a, input("b", b_type, {n, k})) + input("residual", bf16, {dynamic("m", 1, m), n})); break;
  default: spec.output("c", f32, matmul_nt(a, input("b", b_type, {n, k})));
  }
  return {spec, to};
}

// Methods other than the chosen one that take the point.
std::vector<std::string> other_methods(const GemmConfig& c, const Target& to) {
  if (c.a.quantises || (c.a.mx() && !to.has_scaled_mfma())) return {};
  std::vector<std::string> result;
  if (!why_invalid(with_shared_rows(c, ceil_div(c.rows, max_shared_rows)))) result.emplace_back("method=shared_rows");
  if (c.a.mx()) return result;
  result.emplace_back("method=matrix32");
  if (c.rows <= 8) result.emplace_back("method=sparse");
  if (c.rows <= 4) result.emplace_back("method=dot");
  if (c.b.plain() && !c.b.preshuffled) result.emplace_back("method=producers");
  return result;
}

} // namespace

TEST_CASE("every schedule that is offered for a product keeps its contract") {
  const std::uint64_t first = testing::number_from("KILN_GEMM_FIRST", 1), count = testing::number_from("KILN_GEMM_COUNT", 4);
  std::uint64_t compiled = 0, by_name = 0, shortened = 0;
  CompileOptions options = own_process_options(process_environment());
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Point point = random_point(seed);
    const Plan plan = make_plan(point.spec, point.to);
    for (const Schedule& schedule : candidates(plan, point.to)) {
      INFO("seed ", seed, " ", point.to.arch(), "\n", to_text(schedule), to_text(point.spec));
      try {
        const CodeObject object = compile(emit_source(plan, schedule, point.to), point.to, options);
        const Inspection seen = inspect(object, promises(plan, schedule, point.to));
        CHECK_MESSAGE(seen.report.met(), isa::to_text(seen.report));
        ++compiled;
      } catch (const Error& error) {
        FAIL_CHECK(std::string(error.what()));
      }
    }
    for (const std::string& method : other_methods(planned_config(plan, point.to), point.to)) {
      INFO("seed ", seed, " ", point.to.arch(), " ", method, "\n", to_text(point.spec));
      try {
        shortened += build_kernel(point.spec, point.to, options, {method}).rejected.size();
        ++by_name;
      } catch (const Error& error) {
        FAIL_CHECK(std::string(error.what()));
      }
    }
  }
  MESSAGE("skinny GEMM schedules that keep their contract: ", compiled, " as chosen, ", by_name, " by method, for which ", shortened,
          " longer rings did not");
  CHECK(compiled >= count);
  CHECK(by_name >= count);
}

} // namespace gemm_points_tests
