// MX formats in specs: their text, the rule of the scale, and what bounds say of it.
#include "gen/reference/evaluate.h"
#include "gen/reference/range.h"
#include "gen/spec/math.h"
#include <array>
#include <cmath>
#include <doctest/doctest.h>

using namespace kiln;

TEST_CASE("MX: the text of a quantiser and of a product") {
  const std::string text = R"(kernel mx
dim rows
input x: f16[rows, 64]
let t1 = cast(e8m0, scale_down(cast(e8m0, group_absmax_nan(x, 32)), cast(e8m0, 4)))
output scale: e8m0[rows, 2] = t1
output q: e2m1[rows, 64] = scale_down(x, ungroup(t1, 32, 64))
)";
  const Expr x = input("x", f16, {dynamic("rows"), 64}), scale = mx_scale(e2m1, x);
  const KernelSpec spec = KernelSpec("mx").output("scale", e8m0, scale).output("q", e2m1, mx_quantise(e2m1, x, scale));
  CHECK(to_text(spec) == text);
  CHECK(parse_spec(text) == spec);
  const Expr c = matmul_nt_mx(input("a", bf16, {4, 64}), input("b", e2m1, {8, 64}), input("s", e8m0, {8, 2}));
  const KernelSpec product = KernelSpec("p").output("c", bf16, c);
  CHECK(parse_spec(to_text(product)) == product);
}

// The example of a block whose largest number is above 6 * 2^e: it is limited; and a block with NaN.
TEST_CASE("MX: evaluation of a block") {
  Tensor x(f32, {2, 32});
  x.set(0, 7.9f), x.set(1, -0.6f), x.set(2, 2.5f), x.set(32, 1), x.set(33, NAN);
  const Expr in = input("x", f32, {2, 32}), scale = mx_scale(e2m1, in), q = mx_quantise(e2m1, in, scale);
  const KernelSpec spec = KernelSpec("k").output("scale", e8m0, scale).output("q", e2m1, q).output("y", f32, mx_dequantise(q, scale));
  const Outputs outputs = evaluate(spec, {.tensors = {{"x", x}}, .scalars = {}});
  CHECK(outputs.at("scale").bits(0) == 127);
  CHECK(outputs.at("scale").bits(1) == 255);
  CHECK(outputs.at("q").at(0) == 6);
  CHECK(outputs.at("q").at(1) == -0.5f);
  CHECK(outputs.at("q").at(2) == 2);
  CHECK(outputs.at("q").data()[0] == std::byte{0x97}); // the first is in the low half
  CHECK(outputs.at("y").at(0) == 6);
  CHECK(std::isnan(outputs.at("y").at(40)));
}

TEST_CASE("MX: scales by the rule are known as such") {
  const Expr x = input("x", f32, {2, 64}), y = input("y", f32, {2, 64}), by_rule = mx_scale(e4m3fn, x);
  CHECK(scale_rule(by_rule)->exponent == 8);
  CHECK(scale_rule(by_rule)->magnitude.op() == Op::group_absmax_nan);
  CHECK(is_scale_of_blocks(ungroup(by_rule, 32, 64), x));
  const Expr halved = cast(e8m0, scale_down(cast(e8m0, group_absmax_nan(x, 32)), cast(e8m0, 2)));
  CHECK(scale_rule(halved)->exponent == 1);
  CHECK(!is_scale_of_blocks(halved, x));                   // up to 2^126, and half of its inverse is no normal number
  CHECK(!is_scale_of_blocks(ungroup(by_rule, 32, 64), y)); // NaN of y would be lost
  CHECK(!is_scale_of_blocks(cast(e8m0, scale_down(cast(e8m0, group_absmax(x, 32)), cast(e8m0, 256))), x)); // as would NaN of x
  CHECK(!scale_rule(cast(e8m0, scale_down(cast(e8m0, x), cast(e8m0, 0.5)))));
  CHECK(!scale_rule(cast(e8m0, group_absmax_nan(x, 32))));
}

TEST_CASE("MX: ranges of scales and of marked magnitudes") {
  CHECK(cast_range(e8m0, true, {3, 3}) == Range{2, 2});
  CHECK(cast_range(e8m0, true, {-9, 3}) == Range{0x1p-127, 8});
  CHECK(cast_range(e8m0, true, {-9, -3}) == Range{2, 8});
  CHECK(cast_range(e8m0, true, {1, INFINITY}) == Range{1, 0x1p127, true});
  CHECK(cast_range(e8m0, true, {INFINITY, INFINITY}) == Range::nan());
  CHECK(cast_range(e2m1, true, {2.5, 2.5}) == Range{2, 2});
  CHECK(cast_range(e2m1, true, Range::nan()) == Range{-6, 6});
  const std::array<Range, 2> some{Range{-5, -4}, Range{1, 2}}, marked{Range{-5, -4}, Range{1, 2, true}};
  CHECK(reduction_range(Op::group_absmax_nan, some, 0) == Range{4, 5});
  CHECK(reduction_range(Op::row_absmax_nan, marked, 0) == Range{4, 5, true});
  const std::array<Range, 2> lost{Range{-5, -4}, Range::nan()};
  CHECK(reduction_range(Op::row_absmax_nan, lost, 0) == Range::nan());
}
