// Skinny GEMMs that do more than multiply, swept: rows of A quantised or normed inside x epilogues that reduce groups of columns, and these
// epilogues x every method, x every m of a list x both targets, with tails of k and split sums. Each is executed under three
// interleavings, launched twice on its workspace in each, and must be within bounds and give the same bits each time. The usual run takes a
// few points, spread over all; KILN_SWEEP_FIRST (0) and KILN_SWEEP_COUNT choose, and a count over the number of points takes all.
#include "gen/error.h"
#include "gen/reference/random.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "tests/fuzz/seeds.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gemm_inside_sweep_tests {
using namespace kiln;

namespace {

enum class Rows { as_they_are, quantised, normed };
enum class Epilogue { none, squares, by_group, gate }; // sums of squares; fp8 with a scale a group; SwiGLU to MXFP4 or MXFP8

struct Point {
  Target to;
  Rows rows;
  Epilogue epilogue;
  GemmMethod method;
  std::int64_t m;
};

bool takes(GemmMethod method, std::int64_t m) { return method == GemmMethod::sparse ? m <= 8 : method == GemmMethod::dot ? m <= 4 : true; }

std::vector<Point> all_points() {
  constexpr GemmMethod methods[] = {GemmMethod::matrix, GemmMethod::matrix32, GemmMethod::sparse, GemmMethod::dot, GemmMethod::producers};
  std::vector<Point> points;
  for (const std::string_view arch : known_archs())
    for (const std::int64_t m : {1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 48, 64})
      for (const Epilogue epilogue : {Epilogue::none, Epilogue::squares, Epilogue::by_group, Epilogue::gate}) {
        for (const Rows rows : {Rows::quantised, Rows::normed}) points.push_back({target(arch), rows, epilogue, GemmMethod::matrix, m});
        for (const GemmMethod method : methods)
          if (epilogue != Epilogue::none && takes(method, m)) points.push_back({target(arch), Rows::as_they_are, epilogue, method, m});
      }
  return points;
}

// The rest of a point, drawn from its number.
class Case {
public:
  Case(const Point& p, std::uint64_t number) : point_(p), random_(number) {
    group_ = random_.pick({8, 16, 32, 64, 128});
    if (p.method == GemmMethod::dot) group_ = std::min<std::int64_t>(group_, 32); // its sums of wider tiles do not fit registers
    n_ = p.epilogue == Epilogue::none ? random_.between(17, 240) : std::max<std::int64_t>(group_, 32) * random_.between(1, 4);
    k_ = random_.chance(50) ? 128 * random_.between(1, 12) : 16 * random_.between(1, 96);
    bound_ = random_.chance(70) ? p.m : std::min(max_rows(), p.m + random_.between(1, 7));
  }

  KernelSpec spec() {
    const KernelSpec empty("gemm_inside");
    if (point_.epilogue == Epilogue::gate) return gate(empty, product(2 * n_));
    const Expr x = product(n_);
    if (point_.epilogue == Epilogue::none) return KernelSpec(empty).output("c", f32, x);
    if (point_.epilogue == Epilogue::squares) {
      const Expr h = cast(bf16, x + input("residual", bf16, {rows(), n_}));
      return KernelSpec(empty).output("h", bf16, h).output("squares", f32, group_sum(h * h, group_));
    }
    const DType type = point_.to.fp8_e4m3();
    const Expr scale = max(group_absmax(x, group_) / max_finite(type), 1e-6F);
    return KernelSpec(empty).output("q", type, x / ungroup(scale, group_, n_)).output("scale", f32, scale);
  }

  // Many rows do not fit LDS, and quantised in every step do not fit registers beside two products.
  std::vector<std::string> settings(const Plan& plan) {
    std::vector<std::string> result{fmt::format("method={}", to_string(point_.method))};
    if (point_.rows != Rows::as_they_are && point_.epilogue == Epilogue::gate && bound_ > 32) return result;
    if (point_.rows != Rows::as_they_are) result.push_back(bound_ <= 16 && random_.chance(50) ? "staged=1" : "staged=0");
    if (random_.chance(40)) { // few workgroups, each with parts of several tiles; only as many as there are steps
      const Schedule chosen = with_overrides(candidates(plan, point_.to).front(), result, plan, point_.to);
      result.push_back(fmt::format("workgroups={}",
                                   std::min<long long>(random_.pick({1, 2, 3, 5, 7, 11}), std::get<GemmConfig>(chosen.config).steps())));
    }
    return result;
  }

private:
  std::int64_t max_rows() const { return point_.method == GemmMethod::dot ? 4 : point_.method == GemmMethod::sparse ? 8 : 64; }
  Dim rows() const { return dynamic("m", 1, bound_); }

  static KernelSpec gate(KernelSpec spec, const Expr& both) {
    const std::int64_t n = both.shape()[1].size() / 2;
    const Expr y = silu(columns(both, 0, n)) * columns(both, n, n);
    const DType type = n % 64 == 0 ? e4m3fn : e2m1;
    const Expr scale = mx_scale(type, y);
    return spec.output("q", type, mx_quantise(type, y, scale)).output("scale", e8m0, scale);
  }

  Expr product(std::int64_t n) {
    const DType e4 = point_.to.fp8_e4m3(), e5 = point_.to.fp8_e5m2();
    const Layout layout = point_.method != GemmMethod::producers && random_.chance(15) ? Layout::preshuffled : Layout::contiguous;
    const DType fp8 = random_.chance(50) ? e4 : e5, half = random_.chance(50) ? f16 : bf16;
    if (point_.rows == Rows::as_they_are) {
      const DType type = random_.pick({half, half, fp8, i8});
      return matmul_nt(input("a", type, {rows(), k_}), input("b", type, {n, k_}, layout));
    }
    const Expr a = input("a", half, {rows(), k_}), b = input("b", fp8, {n, k_}, layout);
    if (point_.rows == Rows::quantised) return matmul_nt_quantised(a, b);
    const Expr squares = input("squares_of_a", f32, {rows(), random_.pick({1, 5, 48, 128})});
    return matmul_nt_normed(a, b, input("weight", half, {k_}), squares, input("scale_of_a", f32, {}), 1e-5F);
  }

  const Point& point_;
  Random random_;
  std::int64_t group_, n_, k_, bound_;
};

std::string run(const Point& point, std::uint64_t number) {
  Case drawn(point, number);
  const KernelSpec spec = drawn.spec();
  try {
    const std::vector<std::string> settings = drawn.settings(make_plan(spec, point.to));
    const BuiltKernel built = build_kernel(spec, point.to, own_process_options(process_environment()), settings);
    const Inputs inputs = random_inputs(spec, number, {.dynamic_size = point.m});
    const auto wrong = testing::check_orders(spec, built, inputs, {.count = 3, .launches = 2, .side_by_side = true});
    return wrong ? fmt::format("point {}: {}", number, *wrong) : "";
  } catch (const Error& error) {
    return fmt::format("point {} {} m {}: {}\n{}", number, point.to.arch(), point.m, error.what(), to_text(spec));
  }
}

} // namespace

TEST_CASE("rows made ready inside a product and groups behind it: every method and m, several interleavings and launches") {
  const std::vector<Point> points = all_points();
  const std::vector<std::uint64_t> numbers = testing::swept_points(points.size());
  for (const std::uint64_t number : numbers) {
    const std::string wrong = run(points[number], number);
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
  MESSAGE("of ", points.size(), " points ran ", numbers.size());
}

} // namespace gemm_inside_sweep_tests
