// NVFP4 weights, executed: every code with every scale against numbers that follow from the formats, methods, tails, experts.
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace nvfp4_numeric {
using namespace kiln;

namespace {

// A number of a format with a sign, `mantissa` bits and a bias; the code without the sign.
double value_of(unsigned code, int mantissa, int bias) {
  const auto exponent = static_cast<int>(code >> mantissa);
  const double digits = std::ldexp(code % (1U << mantissa), -mantissa);
  return exponent == 0 ? std::ldexp(digits, 1 - bias) : std::ldexp(1 + digits, exponent - bias);
}
double e2m1_of(unsigned code) { return (code & 8 ? -1 : 1) * value_of(code & 7, 1, 1); }
double e4m3fn_of(unsigned code) { return (code & 0x80 ? -1 : 1) * ((code & 0x7f) == 0x7f ? double(NAN) : value_of(code & 0x7f, 3, 7)); }

} // namespace

// One weight of a row is not zero, and a has ones alone, so that a result is a weight. Every product is exact in both types.
TEST_CASE("NVFP4: weights of every code and scale in a product") {
  constexpr std::int64_t n = 16 * 256, k = 64;
  Tensor b(e2m1, {n, k}), scale(e4m3fn, {n, k / 16});
  for (std::int64_t row = 0; row < n; ++row) {
    const std::int64_t place = row * 7 % k;
    b.set_bits(row * k + place, static_cast<std::uint64_t>(row % 16));
    for (std::int64_t block = 0; block < 4; ++block)
      scale.set_bits(row * 4 + block, static_cast<std::uint64_t>(block == place / 16 ? row / 16 : 0x38)); // 1
  }
  for (const std::string_view arch : known_archs())
    for (const DType type : {f16, bf16}) {
      Tensor a(type, {1, k});
      for (std::int64_t i = 0; i < k; ++i) a.set(i, 1);
      KernelSpec spec("weights");
      spec.output("c", f32, matmul_nt_mx(input("a", type, {1, k}), input("b", e2m1, {n, k}), input("scale", e4m3fn, {n, k / 16})));
      const BuiltKernel built = build_kernel(spec, target(arch), own_process_options(process_environment()));
      const EmulatedRun done =
          emulate(spec, built.source, built.object, {.tensors = {{"a", a}, {"b", b}, {"scale", scale}}, .scalars = {}}, {});
      REQUIRE(done.result.completed);
      CHECK(done.result.defects.empty());
      int wrong = 0;
      std::string first;
      for (std::int64_t row = 0; row < n; ++row) {
        const double want = e2m1_of(static_cast<unsigned>(row % 16)) * e4m3fn_of(static_cast<unsigned>(row / 16));
        const auto got = static_cast<double>(done.outputs.at("c").at(row));
        if ((std::isnan(want) ? !std::isnan(got) : got != want) && wrong++ == 0)
          first = fmt::format("code {} with scale {:#x}: {}, not {}", row % 16, row / 16, got, want);
      }
      CHECK_MESSAGE(wrong == 0, fmt::format("{} of {} on {}: {}", wrong, to_string(type), arch, first));
    }
}

TEST_CASE("NVFP4: methods, tails of k and n, two products, preshuffled, by expert") {
  struct Point {
    DType type;
    std::int64_t m, n, k;
    std::vector<std::string> settings = {};
    Layout layout = Layout::contiguous;
  };
  const Point points[] = {{f16, 16, 256, 1024},
                          {bf16, 40, 80, 2080},
                          {bf16, 3, 72, 1056, {"method=dot"}},
                          {f16, 4, 64, 544, {"method=dot"}},
                          {f16, 8, 64, 512, {}, Layout::preshuffled},
                          {f16, 30, 96, 512, {"method=matrix32"}},
                          {bf16, 6, 64, 768, {"method=sparse"}},
                          {bf16, 16, 96, 4128, {"workgroups=7"}}};
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t number = 0;
    const auto check = [&](const KernelSpec& spec, std::int64_t rows, std::vector<std::string> settings) {
      if (!testing::runs_in_slice(to, ++number)) return;
      const auto wrong = testing::check_kernel(spec, to, 7, {.rows = rows, .settings = std::move(settings)});
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    };
    for (const Point& p : points) {
      const Expr product = matmul_nt_mx(input("a", p.type, {dynamic("m", 1, p.m), p.k}), input("b", e2m1, {p.n, p.k}, p.layout),
                                        input("scale", e4m3fn, {p.n, p.k / 16}));
      check(KernelSpec("w_nvfp4").output("c", p.type, product * scalar("of_all")), p.m, p.settings);
    }
    const Expr both =
        matmul_nt_mx(input("a", bf16, {dynamic("m", 1, 8), 512}), input("b", e2m1, {256, 512}), input("scale", e4m3fn, {256, 32}));
    check(KernelSpec("gate_up").output("y", bf16, silu(columns(both, 0, 128)) * columns(both, 128, 128)), 7, {});
    for (const DType type : {f16, bf16}) {
      const Dim m = dynamic("m", 1, 8);
      const Expr all = matmul_nt_mx(input("a", type, {m, 512}), input("b", e2m1, {6, 96, 512}), input("scale", e4m3fn, {6, 96, 32}));
      const Expr of_pairs = by_expert(all, input("order", i32, {m, 2}), input("offsets", i32, {7}));
      check(KernelSpec("experts").output("y", type, of_pairs), 8, {});
    }
  }
}

} // namespace nvfp4_numeric
