// MX formats, executed: every 16-bit input, every code and every scale against tables that follow from OCP Microscaling Formats (MX) 1.0.
#include "gen/catalog/catalog.h"
#include "gen/reference/random.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <tuple>

namespace mx_numeric {
using namespace kiln;

namespace {

// Section 5.3 of the specification: widths, biases, and the exponent of the largest number (emax).
struct Element {
  DType type;
  int bits, mantissa_bits, bias, emax;
  std::uint32_t largest; // code
};
constexpr Element elements[] = {{e2m1, 4, 1, 1, 2, 0x7}, {e4m3fn, 8, 3, 7, 8, 0x7e}, {e5m2, 8, 2, 15, 15, 0x7b}};
constexpr Element wide_f16{f16, 16, 10, 15, 15, 0x7bff}, wide_bf16{bf16, 16, 7, 127, 127, 0x7f7f};

double value_of(const Element& e, std::uint32_t magnitude) {
  const auto exponent = static_cast<int>(magnitude >> e.mantissa_bits);
  const double digits = std::ldexp(magnitude % (1U << e.mantissa_bits), -e.mantissa_bits);
  return exponent == 0 ? std::ldexp(digits, 1 - e.bias) : std::ldexp(1 + digits, exponent - e.bias);
}
std::uint32_t sign_of(const Element& e) { return 1U << (e.bits - 1); }

// The finite numbers of a format by code, and rounding among them: to the nearest, ties to the even code.
class Table {
public:
  explicit Table(const Element& e) : format(e) {
    for (std::uint32_t code = 0; code <= e.largest; ++code) numbers_.push_back(value_of(e, code));
  }
  std::uint32_t nearest_saturating(double x) const {
    const double magnitude = std::fabs(x);
    const auto above = std::ranges::lower_bound(numbers_, magnitude);
    auto code = static_cast<std::uint32_t>(above - numbers_.begin());
    if (above == numbers_.end()) code = format.largest;
    else if (code > 0 && *above != magnitude) {
      const double up = *above - magnitude, down = magnitude - numbers_[code - 1];
      if (down < up || (down == up && code % 2 == 1)) --code;
    }
    return code | (std::signbit(x) ? sign_of(format) : 0);
  }
  const Element format;

private:
  std::vector<double> numbers_;
};

const Table& table_of(DType type) {
  static const Table tables[] = {Table(elements[0]), Table(elements[1]), Table(elements[2]), Table(wide_f16), Table(wide_bf16)};
  return *std::ranges::find_if(tables, [&](const Table& t) { return t.format.type == type; });
}

struct Block {
  std::uint32_t scale;
  std::uint32_t codes[32];
};

// Section 6.3: the shared exponent is floor(log2(max |V|)) - emax; an element is V / 2^that, rounded, and clamped.
// NaN and infinities, which the specification leaves open, make the scale NaN, and the elements do not count.
Block quantised(const double (&v)[32], const Table& to) {
  double most = 0;
  for (const double x : v) {
    if (!std::isfinite(x)) return {0xff, {}};
    most = std::max(most, std::fabs(x));
  }
  const int exponent = most == 0 ? -127 : std::clamp(std::ilogb(most) - to.format.emax, -127, 127);
  Block block{static_cast<std::uint32_t>(exponent + 127), {}};
  for (int i = 0; i < 32; ++i) block.codes[i] = to.nearest_saturating(std::ldexp(v[i], -exponent));
  return block;
}

double number(DType type, std::uint32_t bits) { // of f16 or bf16, by definition
  const Element& e = type == f16 ? wide_f16 : wide_bf16;
  const std::uint32_t magnitude = bits & 0x7fff;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (magnitude > e.largest + 1) return std::nan("");
  return sign * (magnitude == e.largest + 1 ? double(INFINITY) : value_of(e, magnitude));
}

EmulatedRun run(const KernelSpec& spec, const Target& to, const Inputs& inputs) {
  CompileOptions compile = own_process_options(process_environment());
  compile.warnings_as_errors = true;
  const BuiltKernel built = build_kernel(spec, to, compile);
  EmulatedRun done = emulate(spec, built.source, built.object, inputs, {});
  REQUIRE_MESSAGE(done.result.defects.empty(), exec::to_text(done.result.defects.front()));
  REQUIRE(done.result.completed);
  return done;
}

// A block for each input, in which no magnitude is above it, and blocks of 32 neighbours.
Tensor every_input(DType type, std::int64_t cols) {
  constexpr std::int64_t inputs = 65536;
  Tensor x(type, {(inputs + inputs / 32) * 32 / cols, cols});
  Random random(1);
  for (std::int64_t v = 0; v < inputs; ++v)
    for (std::int64_t i = 0; i < 32; ++i) {
      const std::int64_t below = random.between(0, v & 0x7fff) | (random.between(0, 1) << 15);
      x.set_bits(v * 32 + i, static_cast<std::uint64_t>(i == v % 32 ? v : below));
    }
  for (std::int64_t v = 0; v < inputs; ++v) x.set_bits(inputs * 32 + v, static_cast<std::uint64_t>(v));
  return x;
}

void check_quantiser(DType from, DType type, const Target& to) {
  constexpr std::int64_t cols = 1024;
  const Tensor x = every_input(from, cols);
  const EmulatedRun done =
      run(catalog_spec("mx_quant", {.cols = cols, .dtype = from, .mx = type}), to, {.tensors = {{"x", x}}, .scalars = {}});
  const Tensor &scale = done.outputs.at("scale"), &q = done.outputs.at("q");
  int wrong = 0;
  std::string first;
  for (std::int64_t block = 0; block < scale.size(); ++block) {
    double v[32];
    for (std::int64_t i = 0; i < 32; ++i) v[i] = number(from, static_cast<std::uint32_t>(x.bits(block * 32 + i)));
    const Block want = quantised(v, table_of(type));
    if (scale.bits(block) != want.scale && wrong++ == 0)
      first = fmt::format("scale {} of block {}, not {}", scale.bits(block), block, want.scale);
    for (std::int64_t i = 0; i < 32 && want.scale != 0xff; ++i)
      if (q.bits(block * 32 + i) != want.codes[i] && wrong++ == 0)
        first = fmt::format("{} in block {}: {:#x}, not {:#x}, scale {}", v[i], block, q.bits(block * 32 + i), want.codes[i], want.scale);
  }
  CHECK_MESSAGE(wrong == 0, fmt::format("{} of {} to {} on {}: {}", wrong, to_string(from), to_string(type), to.arch(), first));
}

double element(const Element& e, std::uint32_t code) {
  const std::uint32_t magnitude = code & (sign_of(e) - 1);
  const double sign = code & sign_of(e) ? -1 : 1;
  if (magnitude <= e.largest) return sign * value_of(e, magnitude);
  return e.type == e5m2 && magnitude == 0x7c ? sign * double(INFINITY) : std::nan("");
}
double power(std::int64_t scale) { return scale == 255 ? std::nan("") : std::ldexp(1, static_cast<int>(scale) - 127); }

} // namespace

TEST_CASE("quantising every f16 and bf16 number to every MX format") {
  for (const std::string_view arch : known_archs())
    for (const DType from : {f16, bf16})
      for (const Element& e : elements) check_quantiser(from, e.type, target(arch));
}

// Not by the rule: numbers stay beyond the largest one, infinities and NaN have a scale that is a number.
TEST_CASE("quantising every f16 number with scales that are given") {
  constexpr std::int64_t cols = 1024, inputs = 65536;
  constexpr std::array<std::uint64_t, 9> scales{1, 90, 119, 126, 127, 128, 200, 254, 255};
  Tensor x(f16, {scales.size() * inputs / cols, cols}), scale(e8m0, {x.size() / cols, cols / 32});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_bits(i, static_cast<std::uint64_t>(i % inputs));
  for (std::int64_t i = 0; i < scale.size(); ++i) scale.set_bits(i, scales[static_cast<std::size_t>(i * 32 / inputs)]);
  for (const std::string_view arch : known_archs())
    for (const Element& e : elements) {
      KernelSpec spec("given");
      const Expr in = input("x", f16, {dynamic("rows"), cols}), given = input("scale", e8m0, {dynamic("rows"), cols / 32});
      spec.output("q", e.type, mx_quantise(e.type, in, given));
      const EmulatedRun done = run(spec, target(arch), {.tensors = {{"x", x}, {"scale", scale}}, .scalars = {}});
      int wrong = 0;
      std::string first;
      for (std::int64_t i = 0; i < x.size(); ++i) {
        const double v = number(f16, static_cast<std::uint32_t>(x.bits(i))), s = power(static_cast<std::int64_t>(scale.bits(i / 32)));
        if (std::isfinite(v) && std::fabs(v / s) > double(std::numeric_limits<float>::max())) continue; // docs/mx.md: the ends of f32
        const auto code = static_cast<std::uint32_t>(done.outputs.at("q").bits(i));
        const double want = e.type == e4m3fn && std::isinf(v) ? std::nan("") : v / s;
        const bool right = e.type == e2m1 && !std::isfinite(want) ? std::fabs(element(e, code)) == 6
                           : std::isnan(want)                     ? std::isnan(element(e, code))
                           : std::isinf(want)                     ? element(e, code) == want
                                                                  : code == table_of(e.type).nearest_saturating(want);
        if (!right && wrong++ == 0) first = fmt::format("{} with scale {}: code {:#x}", v, s, code);
      }
      CHECK_MESSAGE(wrong == 0, fmt::format("{} of {} on {}: {}", wrong, to_string(e.type), arch, first));
    }
}

TEST_CASE("dequantising every code with every scale") {
  for (const std::string_view arch : known_archs())
    for (const Element& e : elements) {
      constexpr std::int64_t cols = 256; // eight blocks of one scale
      Tensor q(e.type, {256, cols}), scale(e8m0, {256, cols / 32});
      for (std::int64_t i = 0; i < q.size(); ++i) q.set_bits(i, static_cast<std::uint64_t>(i % (1 << e.bits)));
      for (std::int64_t i = 0; i < scale.size(); ++i) scale.set_bits(i, static_cast<std::uint64_t>(i / 8));
      const EmulatedRun done = run(catalog_spec("mx_dequant", {.cols = cols, .dtype = f32, .mx = e.type}), target(arch),
                                   {.tensors = {{"q", q}, {"scale", scale}}, .scalars = {}});
      int wrong = 0;
      for (std::int64_t i = 0; i < q.size(); ++i) {
        const auto want = static_cast<float>(element(e, static_cast<std::uint32_t>(q.bits(i))) * power(i / cols));
        const float got = done.outputs.at("y").at(i);
        wrong += std::isnan(want) ? !std::isnan(got) : std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(want);
      }
      CHECK_MESSAGE(wrong == 0, fmt::format("{} of {} on {}", wrong, to_string(e.type), arch));
    }
}

// One weight of a row is not zero, and a has ones alone, so that a result is a weight.
TEST_CASE("weights of every code and scale in a product") {
  constexpr std::int64_t n = 16 * 256, k = 64;
  Tensor b(e2m1, {n, k}), scale(e8m0, {n, k / 32});
  for (std::int64_t row = 0; row < n; ++row) {
    const std::int64_t place = row * 7 % k;
    b.set_bits(row * k + place, static_cast<std::uint64_t>(row % 16));
    for (std::int64_t block = 0; block < 2; ++block)
      scale.set_bits(row * 2 + block, static_cast<std::uint64_t>(block == place / 32 ? row / 16 : 127));
  }
  for (const std::string_view arch : known_archs())
    for (const DType type : {f16, bf16}) {
      Tensor a(type, {1, k});
      for (std::int64_t i = 0; i < k; ++i) a.set(i, 1);
      KernelSpec spec("weights");
      spec.output("c", f32, matmul_nt_mx(input("a", type, {1, k}), input("b", e2m1, {n, k}), input("scale", e8m0, {n, k / 32})));
      const EmulatedRun done = run(spec, target(arch), {.tensors = {{"a", a}, {"b", b}, {"scale", scale}}, .scalars = {}});
      int wrong = 0;
      std::string first;
      for (std::int64_t row = 0; row < n; ++row) {
        const double exact = element(elements[0], static_cast<std::uint32_t>(row % 16)) * power(row / 16), most = max_finite(type);
        const Table& wide = table_of(type);
        const auto rounded = std::isnan(exact) ? exact : number(type, wide.nearest_saturating(exact));
        // Beyond half a step from the largest number lies infinity.
        const double want = std::fabs(exact) >= most * (1 + std::ldexp(1, -wide.format.mantissa_bits - 2))
                                ? std::copysign(double(INFINITY), exact)
                                : rounded;
        const auto got = static_cast<double>(done.outputs.at("c").at(row));
        if ((std::isnan(want) ? !std::isnan(got) : got != want) && wrong++ == 0)
          first = fmt::format("code {} with scale {}: {}, not {}", row % 16, row / 16, got, want);
      }
      CHECK_MESSAGE(wrong == 0, fmt::format("{} of {} on {}: {}", wrong, to_string(type), arch, first));
    }
}

TEST_CASE("products with MXFP4 weights: methods, tails of k and n, two products, preshuffled") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t point = 0;
    const auto check = [&](const CatalogOptions& options, std::int64_t rows, std::vector<std::string> settings) {
      if (!testing::runs_in_slice(to, ++point)) return;
      const auto wrong =
          testing::check_kernel(catalog_spec("gemm_w_mxfp4", options), to, 7, {.rows = rows, .settings = std::move(settings)});
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    };
    check({.dtype = f16, .m = 16, .n = 256, .k = 1024}, 11, {});
    check({.dtype = bf16, .m = 40, .n = 80, .k = 2080}, 40, {});
    check({.dtype = bf16, .m = 3, .n = 72, .k = 1056}, 3, {"method=dot"});
    check({.dtype = f16, .m = 8, .n = 64, .k = 512, .preshuffled = true}, 5, {});
    check({.dtype = f16, .m = 30, .n = 96, .k = 512}, 30, {"method=matrix32"});
    check({.dtype = bf16, .m = 6, .n = 64, .k = 768}, 6, {"method=sparse"});
    KernelSpec spec("gate_up");
    const Expr a = input("a", bf16, {dynamic("m", 1, 8), 512}), b = input("b", e2m1, {256, 512}), scale = input("scale", e8m0, {256, 16});
    const Expr both = matmul_nt_mx(a, b, scale);
    spec.output("y", bf16, silu(columns(both, 0, 128)) * columns(both, 128, 128));
    const auto wrong = testing::check_kernel(spec, to, 8, {.rows = 7});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

TEST_CASE("MX: twenty interleavings give the same bits") {
  for (const std::string_view arch : known_archs())
    for (const bool product : {false, true}) {
      const KernelSpec spec = product ? catalog_spec("gemm_w_mxfp4", {.dtype = bf16, .m = 16, .n = 96, .k = 1536})
                                      : catalog_spec("add_rmsnorm_mx_quant", {.cols = 4096, .dtype = bf16, .in_place = true});
      CompileOptions compile = own_process_options(process_environment());
      const BuiltKernel built =
          build_kernel(spec, target(arch), compile,
                       product ? std::vector<std::string>{"workgroups=7", "tile_n=32"} : std::vector<std::string>{"threads_per_row=256"});
      const Inputs inputs = random_inputs(spec, 5, {.dynamic_size = product ? 13 : 3});
      const auto wrong = testing::check_orders(spec, built, inputs);
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    }
}

TEST_CASE("MX: columns of models, element types, infinities and NaN, zero rows") {
  for (const std::string_view arch : known_archs())
    for (std::uint64_t point = 0; const char* name : {"silu_mul_mx_quant", "add_rmsnorm_mx_quant"})
      for (const auto& [cols, dtype, mx, rows, special] : {std::tuple{std::int64_t{2880}, bf16, e2m1, std::int64_t{3}, false},
                                                           {96, f16, e4m3fn, 5, true},
                                                           {7168, bf16, e5m2, 2, true},
                                                           {32, f32, e2m1, 70, true},
                                                           {4096, f16, e4m3fn, 0, false}}) {
        if (!testing::runs_in_slice(target(arch), ++point)) continue;
        const auto wrong = testing::check_kernel(catalog_spec(name, {.cols = cols, .dtype = dtype, .mx = mx}), target(arch), 9,
                                                 {.rows = rows, .special_values = special});
        CHECK_MESSAGE(!wrong, wrong.value_or(""));
      }
}

} // namespace mx_numeric
