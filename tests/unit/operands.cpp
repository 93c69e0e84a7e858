// Operands of products as expressions: each is the product that has a name for it, and means what it says.
#include "gen/error.h"
#include "gen/plan/target.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "gen/spec/product.h"
#include <doctest/doctest.h>

using namespace kiln;

namespace {

constexpr std::int64_t k = 256, n = 160;
const Dim m = dynamic("m", 1, 16);
const Expr a = input("a", f16, {m, k}), fp8_a = input("a", e4m3fn, {m, k}), fp8_b = input("b", e4m3fn, {n, k});
const Expr mx_b = input("b", e2m1, {n, k}), mx_scale_of_b = input("scale", e8m0, {n, k / 32});
const Expr packed = input("b", u8, {n, k / 2}), scale = input("scale", f16, {n, 2}), zero = input("zero", u8, {n, 2});

Expr absmax(const Expr& x) { return max(row_absmax(x), 0x1p-100); }
Expr quantised(const Expr& x) { return cast(e4m3fn, x * div_exact(448, absmax(x))) * div_exact(absmax(x), 448); }
Expr normed(const Expr& x, const Expr& weight, const Expr& squares, const Expr& of) {
  return cast(e4m3fn, weight * (x * (rsqrt(row_sum(squares) / static_cast<double>(k) + 1e-5) / of))) * of;
}

struct Spelling {
  const char* what;
  Expr a, b, named;
};

std::vector<Spelling> spellings() {
  const Expr sa = input("a_scale", f32, {m, 2}), sb = input("b_scale", f32, {2, 2}), by_group = input("a_scale", f32, {2, m});
  const Expr words = input("zero", i32, {2, n / 8}), nvfp4 = input("scale", e4m3fn, {n, k / 16});
  const Expr mx_a = input("a", e2m1, {m, k}), mx_sa = input("a_scale", e8m0, {m, k / 32});
  const Expr weight = input("weight", f16, {k}), squares = input("squares", f32, {m, k}), of = input("of", f32, {});
  const Expr blocks = ungroup_rows(ungroup(sb, 128, k), 128, n);
  const Expr scales = ungroup(scale, 128, k);
  return {
      {"plain", a, input("b", f16, {n, k}), matmul_nt(a, input("b", f16, {n, k}))},
      {"blocks", fp8_a * ungroup(sa, 128, k), blocks * fp8_b, matmul_nt_scaled(fp8_a, fp8_b, sa, sb)},
      {"blocks, scales by group", ungroup(transpose(by_group), 128, k) * fp8_a, fp8_b * blocks,
       matmul_nt_scaled(fp8_a, fp8_b, transpose(by_group), sb)},
      {"4 bits", a, cast(f16, (unpack4(packed) - ungroup(zero, 128, k)) * scales), matmul_nt_w4(a, packed, scale, zero, 128)},
      {"4 bits, packed zeros", a, cast(f16, scales * (unpack4(packed) - ungroup(transpose(unpack4(words)), 128, k))),
       matmul_nt_w4(a, packed, scale, words, 128)},
      {"MX weights", a, cast(f16, mx_dequantise(mx_b, mx_scale_of_b)), matmul_nt_mx(a, mx_b, mx_scale_of_b)},
      {"NVFP4 weights", a, cast(f16, mx_b * ungroup(nvfp4, 16, k)), matmul_nt_mx(a, mx_b, nvfp4)},
      {"MX", mx_dequantise(mx_a, mx_sa), mx_dequantise(mx_b, mx_scale_of_b), matmul_nt_mx_mx(mx_a, mx_b, mx_sa, mx_scale_of_b)},
      {"quantised", quantised(a), fp8_b, matmul_nt_quantised(a, fp8_b)},
      {"normed", normed(a, weight, squares, of), fp8_b, matmul_nt_normed(a, fp8_b, weight, squares, of, 1e-5F)},
  };
}

KernelSpec spec_of(const Expr& product) { return KernelSpec("k").output("c", f32, product); }

// The elements of an operand, computed as any value of rows. ungroup_rows has no kernel: b's blocks are put together by hand.
std::vector<double> elements(const Expr& operand, const Inputs& all) {
  const KernelSpec spec = KernelSpec("k").output("y", f32, operand);
  Inputs inputs;
  for (const Expr& each : spec.inputs()) inputs.tensors.emplace(each->name, all.tensors.at(each->name));
  const Tensor y = evaluate(spec, inputs).at("y");
  std::vector<double> result;
  for (std::int64_t i = 0; i < y.size(); ++i) result.push_back(static_cast<double>(y.at(i)));
  return result;
}

} // namespace

TEST_CASE("operands: an expression is the product that has a name for it") {
  for (const Spelling& each : spellings()) {
    CAPTURE(each.what);
    const KernelSpec written = spec_of(matmul_nt(each.a, each.b)), named = spec_of(each.named);
    CHECK(to_text(written) == to_text(named));
    CHECK(written == named);
    CHECK(parse_spec(to_text(written)) == named);
  }
  const KernelSpec text = parse_spec("kernel k\ndim m[1..16]\ninput a: f16[m, 256]\ninput b: e2m1[160, 256]\ninput scale: e8m0[160, 8]\n"
                                     "let w = cast(f16, scale_up(b, ungroup(scale, 32, 256)))\noutput c: f32[m, 160] = matmul_nt(a, w)\n");
  CHECK(text == spec_of(matmul_nt_mx(a, mx_b, mx_scale_of_b)));
}

// Each element of the operands by itself, multiplied and added in f64.
TEST_CASE("operands: a product is that of its operands' elements") {
  int compared = 0;
  for (const Spelling& each : spellings()) {
    const bool has_kernel = std::string_view(each.what).find("bits") == std::string_view::npos &&
                            std::string_view(each.what).find("blocks") == std::string_view::npos;
    if (!has_kernel) continue; // by hand in tests/unit/matmul.cpp
    CAPTURE(each.what);
    const KernelSpec spec = spec_of(matmul_nt(each.a, each.b));
    const Inputs inputs = random_inputs(spec, 7, {.dynamic_size = 3});
    const std::vector<double> of_a = elements(each.a, inputs), of_b = elements(each.b, inputs);
    const auto bounds = evaluate_bounds(spec, inputs);
    for (std::size_t row = 0; row < 3; ++row)
      for (std::size_t column = 0; column < n; ++column) {
        double sum = 0, magnitudes = 0;
        for (std::size_t i = 0; i < k; ++i) {
          const double term = of_a[row * k + i] * of_b[column * k + i];
          sum += term;
          magnitudes += std::abs(term);
        }
        const Range range = bounds.at("c").ranges[row * n + column];
        const double rounding = magnitudes * 0x1p-22; // of the elements, which are f32 here
        CHECK(sum >= range.lo - rounding);
        CHECK(sum <= range.hi + rounding);
        ++compared;
      }
  }
  CHECK(compared == 6 * 3 * n);
}

TEST_CASE("operands: expressions that no kernel multiplies by are refused") {
  const auto fact = [](const auto& make) -> std::string {
    try {
      make();
    } catch (const UserError& error) {
      return error.subject + ": " + error.fact;
    }
    return "taken";
  };
  const Expr b = input("b", f16, {n, k});
  CHECK(fact([&] { matmul_nt(a * 2, b); }) == "operation 'matmul_nt', operand a: it is a 'mul', not an input");
  CHECK(fact([&] { matmul_nt(a, mx_dequantise(mx_b, mx_scale_of_b)); }) ==
        "operation 'matmul_nt': there is no product of plain f16 and mx e2m1");
  CHECK(fact([&] { matmul_nt(a, cast(bf16, mx_dequantise(mx_b, mx_scale_of_b))); }) ==
        "operation 'matmul_nt': there is no product of plain f16 and mx e2m1 rounded to bf16");
  CHECK(fact([&] { matmul_nt(quantised(a), input("b", e5m2, {n, k})); }) ==
        "operation 'matmul_nt': there is no product of rows that are quantised and plain e5m2");
  CHECK(!find_operand(cast(e4m3fn, a * div_exact(240, absmax(a))) * div_exact(absmax(a), 240))); // not the largest of its type
  CHECK(!find_operand(cast(e4m3fn, a * div_exact(448, absmax(a))) * div_exact(row_absmax(a), 448)));
  CHECK(!find_operand(cast(f16, (unpack4(packed) - ungroup(input("zero", u8, {n, 4}), 64, k)) * ungroup(scale, 128, k))));
  CHECK(fact([&] { unpack4(a); }) == "operation 'unpack4': its operand is f16[m[1..16], 256]");
  CHECK(fact([&] { ungroup_rows(scale, 128, n); }) ==
        "operation 'ungroup_rows': its operand has shape [160, 2], but 160 rows make 2 groups of 128");
  CHECK(fact([&] { validate(KernelSpec("k").output("y", f32, unpack4(packed))); }) ==
        "operation 'unpack4': it stands outside of an operand of a product");
}
