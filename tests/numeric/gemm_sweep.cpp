// Skinny GEMMs swept: every method by name x every type x every m of a list x both targets, with odd n and tails of k, and the
// columns of the shapes that public kernels are measured at. Each is executed under several interleavings, compared with the
// reference, and must give the same bits each time, also when it is launched again on its workspace. The usual run takes a few points,
// spread over all; KILN_SWEEP_FIRST (0) and KILN_SWEEP_COUNT choose, and a count over the number of points takes all: about 15 minutes on
// one core. Rows quantised inside and groups of columns: gemm_inside_sweep.cpp.
#include "gen/error.h"
#include "gen/reference/random.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/fuzz/seeds.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <set>

namespace gemm_sweep_tests {
using namespace kiln;

namespace {

enum class Weights { plain, block_scaled, four_bits, mx };

// What is multiplied: a's and b's types, and how b is scaled.
struct Types {
  DType a, b;
  Weights weights = Weights::plain;
};

std::vector<Types> types_of(const Target& to) {
  const DType e4 = to.fp8_e4m3(), e5 = to.fp8_e5m2();
  return {{e4, e4},
          {e4, e5},
          {e5, e4},
          {e5, e5},
          {f16, f16},
          {bf16, bf16},
          {i8, i8},
          {f16, e4},
          {f16, e5},
          {f16, i8},
          {bf16, e4},
          {bf16, i8},
          {e4, e4, Weights::block_scaled},
          {e4, e5, Weights::block_scaled},
          {i8, i8, Weights::block_scaled},
          {f16, u8, Weights::four_bits},
          {bf16, u8, Weights::four_bits},
          {e2m1, e2m1, Weights::mx}};
}

struct Point {
  Target to;
  Types types;
  GemmMethod method;
  std::int64_t m;
  std::int64_t columns; // n of a shape that public kernels are measured at; 0: an odd one
};

bool takes(GemmMethod method, const Types& types, std::int64_t m, const Target& to) {
  if (types.weights == Weights::mx) return method == GemmMethod::matrix || (method == GemmMethod::shared_rows && to.has_scaled_mfma());
  if (method == GemmMethod::sparse) return m <= 8;
  if (method == GemmMethod::dot) return m <= 4;
  if (method == GemmMethod::shared_rows) return size_bits(types.a) == size_bits(types.b) && types.weights != Weights::four_bits;
  return method != GemmMethod::producers || types.weights == Weights::plain;
}

constexpr GemmMethod methods[] = {GemmMethod::matrix, GemmMethod::matrix32, GemmMethod::sparse, GemmMethod::dot, GemmMethod::producers};

std::vector<Point> all_points() {
  std::vector<Point> points;
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    for (const std::int64_t m : {1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 48, 64})
      for (const GemmMethod method : methods)
        for (const Types& types : types_of(to))
          if (takes(method, types, m, to)) points.push_back({to, types, method, m, 0});
    for (const std::int64_t n : {2304, 13312, 16384})
      for (const std::int64_t m : {1, 8, 16, 32})
        for (const GemmMethod method : methods)
          if (takes(method, {to.fp8(), to.fp8()}, m, to)) points.push_back({to, {to.fp8(), to.fp8()}, method, m, n});
  }
  for (const std::string_view arch : known_archs())
    for (const std::int64_t m : {1, 16, 33, 64, 65, 80, 127, 128})
      for (const Types& types : types_of(target(arch)))
        if (takes(GemmMethod::shared_rows, types, m, target(arch))) points.push_back({target(arch), types, GemmMethod::shared_rows, m, 0});
  return points;
}

// `by_group`: scales of a lie with the groups in front.
KernelSpec spec_of(const Types& types, const Dim& m, std::int64_t n, std::int64_t k, Layout layout, bool by_group) {
  const Expr a = input("a", types.a, {m, k});
  if (types.weights == Weights::plain) return KernelSpec("gemm").output("c", f32, matmul_nt(a, input("b", types.b, {n, k}, layout)));
  if (types.weights == Weights::block_scaled) {
    const std::int64_t groups = group_count(k, scale_block);
    return KernelSpec("gemm_block_scaled")
        .output("c", f32,
                matmul_nt_scaled(a, input("b", types.b, {n, k}, layout),
                                 by_group ? transpose(input("a_scale", f32, {groups, m})) : input("a_scale", f32, {m, groups}),
                                 input("b_scale", f32, {group_count(n, scale_block), groups})));
  }
  if (types.weights == Weights::mx) {
    const std::int64_t groups = group_count(k, mx_block);
    return KernelSpec("gemm_mx").output(
        "c", f32,
        matmul_nt_mx_mx(a, input("b", types.b, {n, k}, layout), input("a_scale", e8m0, {m, groups}), input("b_scale", e8m0, {n, groups})));
  }
  const std::int64_t group = 64, groups = group_count(k, group);
  return KernelSpec("gemm_w4a16")
      .output(
          "c", f32,
          matmul_nt_w4(a, input("b", u8, {n, k / 2}, layout), input("scale", types.a, {n, groups}), input("zero", u8, {n, groups}), group));
}

// A point's spec and what it is built and run with; the rest of the choice is drawn from the point's number.
struct Case {
  KernelSpec spec;
  std::vector<std::string> settings;
  std::int64_t rows;
};

Case case_of(const Point& p, std::uint64_t number) {
  Random random(number);
  const std::int64_t n = p.columns ? p.columns : 2 * random.between(8, 120) + 1;
  const bool shared = p.method == GemmMethod::shared_rows;     // takes three whole steps and more
  const bool lines = shared && p.types.weights == Weights::mx; // takes whole ones
  const std::int64_t natural = shared                                  ? (lines ? 1024 : 512) / size_bits(p.types.b)
                               : p.types.weights == Weights::four_bits ? 32
                               : p.types.weights == Weights::mx        ? 32
                                                                       : 16; // elements in 16 bytes of the narrower operand
  const std::int64_t k = p.columns ? 512 : natural * (shared ? random.between(6, 28) : random.between(1, 1536 / natural));
  const bool shuffle = p.method != GemmMethod::producers && random.chance(15) && p.types.weights != Weights::mx;
  const std::int64_t bound = random.chance(70) ? p.m
                             : shared          ? 128
                                               : std::min<std::int64_t>(p.method == GemmMethod::dot      ? 4
                                                                        : p.method == GemmMethod::sparse ? 8
                                                                                                         : 64,
                                                               p.m + random.between(1, 7));
  Case result{spec_of(p.types, dynamic("m", 1, bound), n, k, shuffle ? Layout::preshuffled : Layout::contiguous, number % 3 == 0),
              {fmt::format("method={}", to_string(p.method))},
              p.m};
  if (!p.columns && !shared && random.chance(40)) { // few workgroups, each with parts of several tiles; only as many as there are steps
    const Plan plan = make_plan(result.spec, p.to);
    const Schedule chosen = with_overrides(candidates(plan, p.to).front(), result.settings, plan, p.to);
    result.settings.push_back(
        fmt::format("workgroups={}", std::min<long long>(random.pick({1, 2, 3, 5, 7, 11}), std::get<GemmConfig>(chosen.config).steps())));
  }
  return result;
}

std::string run(const Point& point, std::uint64_t number) {
  const Case c = case_of(point, number);
  CompileOptions compile = own_process_options(process_environment());
  const BuiltKernel built = build_kernel(c.spec, point.to, compile, c.settings);
  const Inputs inputs = random_inputs(c.spec, number, {.dynamic_size = c.rows});
  const auto where = fmt::format("point {} {}\n{}{}", number, point.to.arch(), to_text(built.schedule), to_text(c.spec));
  std::optional<Outputs> first;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    exec::ExecOptions options;
    options.seed = seed;
    options.measure = !first && testing::compares_everything();
    const EmulatedRun done = emulate(c.spec, built.source, built.object, inputs, options, seed == 3 ? 2 : 1);
    if (!done.result.defects.empty()) return fmt::format("{}\n{}", exec::to_text(done.result.defects.front()), where);
    if (!done.result.completed) return "did not complete: " + where;
    if (!first) {
      first = done.outputs;
      if (const auto wrong = find_mismatch(*first, evaluate_bounds(c.spec, inputs, bounds_options(built.schedule))))
        return fmt::format("{}\n{}", to_text(*wrong), where);
      if (const auto wrong = testing::disagreement_if_asked(built.object, done.result); !wrong.empty())
        return fmt::format("{}\n{}", wrong, where);
      continue;
    }
    const Tensor &one = first->at("c"), &other = done.outputs.at("c");
    for (std::int64_t i = 0; i < one.size(); ++i)
      if (one.bits(i) != other.bits(i)) return fmt::format("element {} has other bits with interleaving {}\n{}", i, seed, where);
  }
  return {};
}

} // namespace

TEST_CASE("every method, type and m, under several interleavings") {
  const std::vector<Point> points = all_points();
  const std::vector<std::uint64_t> numbers = testing::swept_points(points.size());
  std::map<std::string_view, int> ran;
  for (const std::uint64_t number : numbers) {
    const Point& point = points[number];
    std::string wrong;
    try {
      wrong = run(point, number);
    } catch (const Error& error) {
      wrong = fmt::format("point {} {} {} x {} m {}: {}", number, point.to.arch(), to_string(point.types.a), to_string(point.types.b),
                          point.m, error.what());
    }
    CHECK_MESSAGE(wrong.empty(), wrong);
    ++ran[to_string(point.method)];
  }
  std::string text;
  for (const auto& [method, times] : ran) text += fmt::format(", {} {}", method, times);
  MESSAGE("of ", points.size(), " points ran ", numbers.size(), text);
}

} // namespace gemm_sweep_tests
