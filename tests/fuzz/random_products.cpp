// Random matrix products: all kinds of weights, rows quantised or normed inside, epilogues that reduce groups of columns or rows, offered
// schedules and such with few workgroups, executed and compared with the reference. Sums that several workgroups share are launched
// twice on one workspace, in three interleavings, and give the same bits. KILN_PRODUCTS_FIRST (1) and KILN_PRODUCTS_COUNT (32) choose.
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "gen/reference/random.h"
#include "gen/spec/math.h"
#include "tests/fuzz/seeds.h"
#include "tests/numeric/check_kernel.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace random_products_tests {
using namespace kiln;

namespace {

// What is multiplied, and what happens to rows of a inside the product.
enum class Kind { plain, scaled, four_bits, mx, mx_pair, quantised, normed };

class ProductGenerator {
public:
  ProductGenerator(std::uint64_t seed, const Target& to) : random_(seed), to_(to), spec_(fmt::format("products_{}", seed)) {
    const bool inside = random_.chance(40); // rows quantised or normed
    kind_ = inside ? random_.pick({Kind::quantised, Kind::normed})
                   : random_.pick({Kind::plain, Kind::plain, Kind::plain, Kind::scaled, Kind::four_bits, Kind::mx, Kind::mx_pair});
    most_ = random_.pick({1, 2, 4, 8, 8, 16, 16, 24, 33, 64});
    tokens_ = random_.between(1, most_);
    m_ = random_.chance(80) ? dynamic("m", 1, most_) : Dim(tokens_);
    n_ = random_.chance(50) ? 64 * random_.between(1, 6) : random_.chance(50) ? 8 * random_.between(1, 40) : random_.between(1, 300);
    k_ = random_.chance(40) ? 128 * random_.between(1, 10) : 32 * random_.between(1, 40);
    a_ = input("a", a_type(), {m_, k_});
  }

  KernelSpec generate() {
    Expr x = random_.chance(25) ? gated() : product("b", n_);
    for (auto steps = random_.between(0, 3); steps > 0; --steps) x = pointwise_step(x, steps);
    if (random_.chance(65)) return with_groups(x);
    if (random_.chance(25) && n_ <= 256) x = x * rsqrt(row_mean(x * x) + 1e-5F); // the last workgroup goes on with the rows
    spec_.output("y", random_.pick({f32, f16, bf16, to_.fp8_e4m3()}), x);
    if (random_.chance(20)) spec_.output("z", f32, x * 0.5);
    return spec_;
  }

  // What the schedule is built with; empty: the chosen one. Only what any product of this kind takes.
  std::vector<std::string> settings() {
    std::vector<std::string> result;
    const Plan plan = make_plan(spec_, to_);
    const auto config = [&] { return std::get<GemmConfig>(with_overrides(candidates(plan, to_).front(), result, plan, to_).config); };
    const GemmConfig chosen = config();
    if (chosen.a.quantises) { // many rows do not fit LDS, nor registers if they are quantised in every step
      if (most_ > 32) return result;
      result.push_back(most_ <= 16 && random_.chance(50) ? "staged=1" : "staged=0");
    } else if (kind_ == Kind::plain && most_ <= 16 && random_.chance(30)) {
      result.push_back("method=" + random_.pick(methods()));
    }
    if (random_.chance(50))
      result.push_back(fmt::format("workgroups={}", std::min<long long>(random_.pick({1, 2, 3, 5, 7}), config().steps())));
    return result;
  }

  std::int64_t tokens() const { return tokens_; }

private:
  DType half() { return random_.chance(50) ? f16 : bf16; }
  DType fp8() { return random_.chance(70) ? to_.fp8_e4m3() : to_.fp8_e5m2(); }

  DType a_type() {
    if (kind_ == Kind::plain && random_.chance(50)) return random_.pick({to_.fp8_e4m3(), to_.fp8_e5m2(), i8});
    if (kind_ == Kind::scaled) return random_.chance(75) ? to_.fp8_e4m3() : i8;
    if (kind_ == Kind::mx_pair) return random_.pick({e2m1, e4m3fn});
    return half();
  }

  std::vector<std::string> methods() const {
    std::vector<std::string> result{"matrix", "matrix32"};
    if (most_ <= 8) result.emplace_back("sparse");
    if (most_ <= 4) result.emplace_back("dot");
    return result;
  }

  Expr product(const std::string& name, std::int64_t n) {
    const Layout layout = random_.chance(20) ? Layout::preshuffled : Layout::contiguous;
    const DType type = a_.dtype();
    const auto b = [&](DType of) { return input(name, of, {n, of == u8 ? k_ / 2 : k_}, layout); };
    const auto scale = [&](DType of, Shape shape) { return input(name + "_scale", of, std::move(shape)); };
    switch (kind_) {
    case Kind::plain: return matmul_nt(a_, b(is_fp8(type) ? fp8() : type == i8 || random_.chance(60) ? type : fp8()));
    case Kind::scaled: {
      const std::int64_t groups = group_count(k_, scale_block);
      return matmul_nt_scaled(a_, b(type), input("a_scale", f32, {m_, groups}), scale(f32, {group_count(n, scale_block), groups}));
    }
    case Kind::four_bits: {
      const std::int64_t group = 64, groups = group_count(k_, group);
      return matmul_nt_w4(a_, b(u8), scale(type, {n, groups}), input(name + "_zero", u8, {n, groups}), group);
    }
    case Kind::mx: return matmul_nt_mx(a_, b(e2m1), scale(e8m0, {n, k_ / mx_block}));
    case Kind::mx_pair: return matmul_nt_mx_mx(a_, b(type), input("a_scale", e8m0, {m_, k_ / mx_block}), scale(e8m0, {n, k_ / mx_block}));
    case Kind::quantised: return matmul_nt_quantised(a_, b(fp8()));
    case Kind::normed: {
      if (parts_ == 0) parts_ = random_.pick({1, 3, 16, 48, 130});
      return matmul_nt_normed(a_, b(fp8()), input("weight", type, {k_}), input("squares_of_a", f32, {m_, parts_}),
                              input("scale_of_a", f32, {}), 1e-5F);
    }
    }
    throw InternalError("unknown Kind");
  }

  // A gate and its partner: the halves of one product.
  Expr gated() {
    if (kind_ == Kind::scaled || kind_ == Kind::four_bits) n_ = scale_block * group_count(n_, scale_block); // blocks begin with a half
    else n_ = 16 * group_count(n_, 16);
    const Expr both = product("b", 2 * n_);
    const Expr gate = columns(both, 0, n_), up = columns(both, n_, n_);
    return random_.chance(70) ? silu(gate) * up : gelu_tanh(gate) * up;
  }

  Expr pointwise_step(const Expr& x, std::int64_t step) {
    const auto name = fmt::format("in{}", step);
    const DType type = random_.pick({f16, bf16, f32});
    const auto which = random_.between(0, 4);
    const Expr other = which == 0   ? input(name, type, {n_})
                       : which == 1 ? input(name, f32, {m_, 1})
                       : which == 2 ? input(name, f32, {})
                                    : input(name, type, {m_, n_});
    switch (random_.between(0, 3)) {
    case 0: return x * other;
    case 1: return max(x, other);
    case 2: return clamp(x, -7, 7) + other;
    default: return x + other;
    }
  }

  // Reductions of groups of columns: sums of squares, scales of a quantised output, MX formats, or values that go back to the columns.
  KernelSpec with_groups(const Expr& x) {
    const std::int64_t group = random_.pick({2, 8, 16, 32, 32, 64, 64, 128, 128, 256});
    switch (random_.between(0, 4)) {
    case 0: {
      const DType type = half();
      const Expr h = cast(type, x);
      return spec_.output("h", type, h).output("squares", f32, group_sum(h * h, group));
    }
    case 1: {
      const DType type = to_.fp8_e4m3();
      const Expr scale = max(group_absmax(x, group) / max_finite(type), 1e-6F);
      return spec_.output("q", type, x / ungroup(scale, group, n_)).output("scale", f32, scale);
    }
    case 2:
      if (n_ % mx_block == 0) {
        const DType type = random_.pick({e2m1, e2m1, e4m3fn, e5m2});
        const Expr scale = mx_scale(type, x);
        return spec_.output("q", type, mx_quantise(type, x, scale)).output("scale", e8m0, scale);
      }
      [[fallthrough]];
    case 3: {
      const Op op = random_.pick({Op::group_sum, Op::group_mean, Op::group_max, Op::group_min, Op::group_absmax});
      const Expr centred = x - ungroup(reduction(op, x, group), group, n_);
      return spec_.output("y", random_.pick({f32, f16, bf16}), centred);
    }
    default: {
      const Expr of_group = input("of_group", f32, {m_, group_count(n_, group)});
      return spec_.output("y", random_.pick({f32, bf16}), x * ungroup(of_group, group, n_));
    }
    }
  }

  Random random_;
  const Target& to_;
  KernelSpec spec_;
  Kind kind_ = Kind::plain;
  std::int64_t most_ = 1, tokens_ = 1, n_ = 1, k_ = 32, parts_ = 0;
  Dim m_ = 1;
  Expr a_ = constant(0);
};

// What is wrong; nothing when all is right. `shares`: its workgroups share sums.
std::optional<std::string> check(const KernelSpec& spec, const Target& to, std::uint64_t seed, ProductGenerator& generator, bool& shares) {
  std::vector<std::string> settings;
  try {
    settings = generator.settings();
    const BuiltKernel built = build_kernel(spec, to, own_process_options(process_environment()), settings);
    shares = built.source.workspace_bytes > 0;
    const Inputs inputs = random_inputs(
        spec, seed, {.dynamic_size = generator.tokens(), .values = seed % 6 == 0 ? InputValues::special : InputValues::moderate});
    testing::OrderOptions orders{.count = 1};
    if (shares) orders = {.count = 3, .launches = 2, .side_by_side = true};
    return testing::check_orders(spec, built, inputs, orders);
  } catch (const std::exception& error) {
    return fmt::format("{}\n{}\n{}", error.what(), fmt::join(settings, " "), to_text(spec));
  }
}

} // namespace

TEST_CASE("random products") {
  const std::uint64_t first = testing::number_from("KILN_PRODUCTS_FIRST", 1), count = testing::number_from("KILN_PRODUCTS_COUNT", 20);
  int shared = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Target to = target(known_archs()[seed % known_archs().size()]);
    ProductGenerator generator(seed, to);
    const KernelSpec spec = generator.generate();
    bool shares = false;
    const auto failure = check(spec, to, seed, generator, shares);
    shared += shares;
    CHECK_MESSAGE(!failure, fmt::format("seed {} {}\n{}", seed, to.arch(), failure.value_or("")));
  }
  MESSAGE("seeds ", first, " to ", first + count - 1, ", ", shared, " of them share sums");
  CHECK(shared > 0);
}

} // namespace random_products_tests
