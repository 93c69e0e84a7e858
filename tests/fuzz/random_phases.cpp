// Random specs of several phases: products whose long rows are reduced, and products of rows that come from products, executed in two
// interleavings, launched twice on one workspace, and compared with the reference. KILN_PHASES_FIRST (1) and KILN_PHASES_COUNT (8) choose.
#include "gen/reference/random.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "tests/fuzz/seeds.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace random_phases_tests {
using namespace kiln;

namespace {

class PhaseGenerator {
public:
  PhaseGenerator(std::uint64_t seed, const Target& to) : random_(seed), to_(to), spec_(fmt::format("phases_{}", seed)) {
    m_ = dynamic("m", 1, random_.pick({1, 3, 8, 17, 40}));
    type_ = random_.pick({f16, bf16});
    k_ = 8 * random_.between(1, 40);
    n_ = random_.pick({1032, 1088, 1536, 2050, 4096});
  }

  KernelSpec generate() {
    const Expr x = input("x", type_, {m_, k_});
    Expr h = pointwise(matmul_nt(x, matrix("w", n_, k_)));
    const bool inner = random_.chance(60);
    if (inner) h = h + adapter(x);
    if (random_.chance(30)) spec_.output("early", type_, h);
    if (!inner || random_.chance(40)) h = reduced(h);
    else spec_.output("y", random_.pick({f32, type_}), h);
    return spec_;
  }

private:
  Expr matrix(const char* name, std::int64_t rows, std::int64_t k) { return input(name, type_, {rows, k}); }

  // A product of a product: with any rank, in f32 or rounded, and at times computed with in between.
  Expr adapter(const Expr& x) {
    const std::int64_t rank = 8 * random_.between(1, 8);
    Expr rows = matmul_nt(x, matrix("a", rank, k_));
    if (random_.chance(30)) rows = random_.chance(50) ? silu(rows) : rows / (1 + row_absmax(rows));
    if (random_.chance(60)) rows = cast(type_, rows);
    return matmul_nt(rows, matrix("b", n_, rank));
  }

  Expr pointwise(const Expr& x) {
    switch (random_.between(0, 3)) {
    case 0: return gelu_tanh(x + input("bias", type_, {n_})) + input("residual", type_, {m_, n_});
    case 1: return cast(type_, x * input("scale", f32, {m_, 1}));
    case 2: return max(x, 0) * input("other", type_, {m_, n_});
    default: return x;
    }
  }

  Expr reduced(const Expr& h) {
    const Expr scale = max(row_absmax(h), 1e-6) / max_finite(to_.fp8());
    switch (random_.between(0, 3)) {
    case 0: spec_.output("q", to_.fp8(), h / scale).output("s", f32, scale); break;
    case 1: spec_.output("y", type_, h * rsqrt(row_mean(h * h) + 1e-5) * input("weight", type_, {n_})); break;
    case 2: spec_.output("y", f32, h - row_mean(h)).output("largest", i32, row_argmax(h)); break;
    default: spec_.output("groups", f32, group_absmax(h, 256)).output("sum", f32, row_sum(h)); break;
    }
    return h;
  }

  Random random_;
  const Target& to_;
  KernelSpec spec_;
  Dim m_ = 1;
  DType type_ = f16;
  std::int64_t k_ = 0, n_ = 0;
};

} // namespace

TEST_CASE("random specs of several phases lie within their bounds") {
  const std::uint64_t first = testing::number_from("KILN_PHASES_FIRST", 1), count = testing::number_from("KILN_PHASES_COUNT", 8);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Target to = target(known_archs()[seed % known_archs().size()]);
    const KernelSpec spec = PhaseGenerator(seed, to).generate();
    CAPTURE(to_text(spec));
    CHECK(to_text(parse_spec(to_text(spec))) == to_text(spec));
    const BuiltKernel kernel = build_kernel(spec, to, own_process_options(process_environment()));
    const auto wrong =
        testing::check_orders(spec, kernel, random_inputs(spec, seed, {.dynamic_size = static_cast<std::int64_t>(1 + seed % 20)}),
                              {.count = 2, .launches = 2, .side_by_side = true});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

} // namespace random_phases_tests
