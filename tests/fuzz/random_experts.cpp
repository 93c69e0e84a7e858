// Random kernels with experts: routers, and products by expert of all kinds of weights with random epilogues, executed and compared with
// the reference. KILN_EXPERTS_FIRST and KILN_EXPERTS_COUNT choose the seeds; the normal run takes a small slice.
#include "gen/reference/random.h"
#include "gen/spec/math.h"
#include "tests/fuzz/seeds.h"
#include "tests/numeric/check_kernel.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace random_experts_tests {
using namespace kiln;

namespace {

class ExpertGenerator {
public:
  ExpertGenerator(std::uint64_t seed, const Target& to) : random_(seed), to_(to), name_(fmt::format("experts_{}", seed)) {
    most_ = random_.pick({1, 4, 8, 16, 32, 100});
    m_ = dynamic("m", 1, most_);
    experts_ = random_.between(1, 24);
    top_ = random_.between(1, std::min<std::int64_t>(experts_, 5));
    n_ = random_.chance(60) ? 8 * random_.between(1, 24) : random_.between(1, 150);
    k_ = 32 * random_.between(1, 16);
  }

  KernelSpec generate() { return random_.chance(15) ? router() : products(); }
  std::int64_t tokens() { return random_.between(1, most_); }

private:
  KernelSpec router() {
    const DType type = half();
    const std::int64_t n = random_.between(experts_, 130);
    const Expr logits = matmul_nt(input("a", type, {m_, k_}), input("b", type, {n, k_}));
    const Expr scores = random_.chance(50) ? sigmoid(logits) : logits;
    const Expr chosen = row_top(random_.chance(50) ? scores + input("bias", f32, {n}) : scores, top_), weights = pick(scores, chosen);
    KernelSpec spec(name_);
    spec.output("weights", f32, random_.chance(50) ? weights / (row_sum(abs(weights)) + 1) : exp(weights - row_max(weights)));
    spec.output("experts", i32, chosen);
    if (random_.chance(70)) spec.output("order", i32, expert_order(chosen, n)).output("offsets", i32, expert_offsets(chosen, n));
    return spec;
  }

  DType half() { return random_.chance(50) ? f16 : bf16; }
  Shape rows(bool of_pairs, std::int64_t last) const { return of_pairs ? Shape{m_, top_, last} : Shape{m_, last}; }

  // [tokens, k], or a row per pair, with a matrix of n rows per expert.
  Expr product_of_all(bool of_pairs, std::int64_t n) {
    const DType type = half();
    const auto a = [&](DType of) { return input("a", of, rows(of_pairs, k_)); };
    const auto b = [&](DType of) { return input("b", of, {experts_, n, k_}); };
    switch (random_.between(0, 5)) {
    case 0: return matmul_nt(a(type), b(random_.pick({to_.fp8_e4m3(), to_.fp8_e5m2(), i8})));
    case 1: {
      const DType small = random_.chance(75) ? to_.fp8_e4m3() : i8;
      const std::int64_t groups = group_count(k_, scale_block);
      return matmul_nt_scaled(a(small), b(small), input("a_scale", f32, rows(of_pairs, groups)),
                              input("b_scale", f32, {experts_, group_count(n, scale_block), groups}));
    }
    case 2: {
      const bool nvfp4 = random_.chance(40);
      return matmul_nt_mx(a(type), b(e2m1), input("b_scale", nvfp4 ? e4m3fn : e8m0, {experts_, n, k_ / (nvfp4 ? 16 : mx_block)}));
    }
    case 3: {
      const std::int64_t group = random_.pick({32, 64, 128}), groups = group_count(k_, group);
      return matmul_nt_w4(a(type), input("b", u8, {experts_, n, k_ / 2}), input("scale", type, {experts_, n, groups}),
                          input("zero", u8, {experts_, n, groups}), group);
    }
    default: return matmul_nt(a(type), b(type));
    }
  }

  // Pointwise, with operands of a pair, a token, a column and all of these.
  Expr epilogue(Expr x) {
    const Shape all = x.shape();
    const auto lead = static_cast<std::int64_t>(all.size());
    for (auto steps = random_.between(0, 3); steps > 0; --steps) {
      Shape shape = all;
      for (std::int64_t i = 0; i < lead; ++i)
        if (random_.chance(40)) shape[static_cast<std::size_t>(i)] = 1;
      const Expr other = random_.chance(30) ? input("column", f32, {all.back()}) : input(fmt::format("in{}", steps), half(), shape);
      switch (random_.between(0, 4)) {
      case 0: x = x + other; break;
      case 1: x = x * other; break;
      case 2: x = silu(x) * other; break;
      case 3: x = max(x, other); break;
      default: x = clamp(x, -7, 7) + other; break;
      }
    }
    return x;
  }

  KernelSpec products() {
    const bool sums = random_.chance(40), of_pairs = sums || random_.chance(30), gated = !sums && random_.chance(40);
    const Expr order = input("order", i32, {m_, top_}), offsets = input("offsets", i32, {experts_ + 1});
    if (gated) n_ = scale_block * group_count(n_, scale_block); // scales of blocks begin with a half of the columns
    const Expr all = product_of_all(of_pairs, gated ? 2 * n_ : n_);
    Expr x = sums ? sum_of_experts(all, order, offsets, input("weights", f32, {m_, top_})) : by_expert(all, order, offsets);
    if (gated) x = silu(columns(x, 0, n_)) * columns(x, n_, n_);
    x = epilogue(x);
    KernelSpec spec(name_);
    spec.output("y", random_.pick({f32, f16, bf16, to_.fp8_e4m3()}), x);
    if (random_.chance(20)) spec.output("z", f32, x * 0.5);
    return spec;
  }

  Random random_;
  const Target& to_;
  std::string name_;
  std::int64_t most_ = 1, experts_ = 1, top_ = 1, n_ = 1, k_ = 32;
  Dim m_ = 1;
};

} // namespace

TEST_CASE("random experts") {
  const std::uint64_t first = testing::number_from("KILN_EXPERTS_FIRST", 1), count = testing::number_from("KILN_EXPERTS_COUNT", 10);
  MESSAGE("seeds ", first, " to ", first + count - 1);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Target to = target(known_archs()[seed % known_archs().size()]);
    ExpertGenerator generator(seed, to);
    const KernelSpec spec = generator.generate();
    INFO("seed ", seed, " ", to.arch(), "\n", to_text(spec));
    try {
      const auto failure = testing::check_kernel(spec, to, seed, {.rows = generator.tokens(), .special_values = seed % 5 == 0});
      CHECK_MESSAGE(!failure, failure.value_or(""));
    } catch (const std::exception& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
}

} // namespace random_experts_tests
