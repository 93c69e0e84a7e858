// The canonical text: that it reads well, parses back, and does not depend on how a program spelled the spec.
#include "gen/catalog/catalog.h"
#include "gen/plan/validate.h"
#include "gen/spec/graph.h"
#include "gen/spec/math.h"
#include "tests/fuzz/spec_generator.h"
#include <doctest/doctest.h>

using namespace kiln;

TEST_CASE("the text of add_rmsnorm_quant") {
  const KernelSpec spec = catalog_spec("add_rmsnorm_quant", {.cols = 16384, .fp8 = e4m3fnuz, .in_place = true});
  CHECK(to_text(spec) == R"(kernel add_rmsnorm_quant
dim rows
input x: f16[rows, 16384]
input residual: f16[rows, 16384]
input weight: f16[16384]
input scale: f32[]
let t1 = cast(f16, x + residual)
output residual_out: f16[rows, 16384] = t1 in_place_of residual
output q: e4m3fnuz[rows, 16384] = t1 * rsqrt(row_mean(t1 * t1) + 1e-06) * weight / scale
)");
}

TEST_CASE("every catalogue entry parses back") {
  for (const CatalogEntry& entry : catalog())
    for (const std::int64_t cols : {1, 100, 128, 129, 16384})
      for (const DType dtype : {f32, f16, bf16}) {
        CAPTURE(entry.name);
        CAPTURE(cols);
        const CatalogOptions options{.cols = cols, .dtype = dtype, .m = 8, .n = cols, .k = 64};
        if (((entry.is.gemm || entry.is.attention) && dtype == f32) || why_not(entry, options)) continue;
        const KernelSpec spec = entry.build(options);
        validate(spec);
        Shape space{entry.is.gemm ? dynamic("m", 1, 8) : dynamic("rows"), cols};
        if (entry.is.rope) space.insert(space.begin() + 1, 8);
        if (entry.is.experts) space = entry.is.gemm ? Shape{dynamic("m", 1, 8), 8, cols} : Shape{dynamic("tokens"), 8};
        if (entry.name == "grouped_gemm_sum") space.erase(space.begin() + 1);
        if (entry.is.attention) space = {dynamic("sequences"), 8, 128};
        if (entry.name == "layernorm_modulate") space.insert(space.begin(), dynamic("batch"));
        if (entry.is.state) space = {dynamic("tokens"), 8, 1, 128, cols};
        if (entry.name == "conv1d_update") space = {dynamic("tokens"), cols};
        if (entry.is.lora && !entry.name.starts_with("gemm_lora")) space.insert(space.begin() + 1, 1);
        if (entry.name == "lora_shrink") space.back() = 16;
        if (entry.name != "gemm_lora") CHECK(iteration_space(spec) == space); // two problems have no one space
        const std::string text = to_text(spec);
        const KernelSpec again = parse_spec(text);
        CHECK(to_text(again) == text);
        CHECK(again == spec);
      }
}

TEST_CASE("random specs are valid and parse back") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    const KernelSpec spec = random_spec(seed);
    const std::string text = to_text(spec);
    CAPTURE(text);
    REQUIRE_NOTHROW(validate(spec));
    const KernelSpec again = parse_spec(text);
    REQUIRE(to_text(again) == text);
    REQUIRE_NOTHROW(validate(again));
  }
}

namespace {

// The canonical form of an expression over x, y, z: f32[4, 8] and p: bool[4, 8].
std::string canonical(std::string_view expression) {
  std::string text = "kernel k input x: f32[4, 8] input y: f32[4, 8] input z: f32[4, 8] input p: bool[4, 8] ";
  text += "output all: f32[4, 8] = select(p, x, y) + z output o: f32[4, 8] = " + std::string(expression);
  const std::string printed = to_text(parse_spec(text));
  const std::string_view before = "output o: f32[4, 8] = ";
  const auto at = printed.find(before) + before.size();
  return printed.substr(at, printed.size() - at - 1);
}

} // namespace

TEST_CASE("parentheses appear where they mean something, and nowhere else") {
  const std::pair<std::string_view, std::string_view> forms[] = {
      {"x+y+z", "x + y + z"},
      {"x+(y+z)", "x + (y + z)"},
      {"(x-y)-z", "x - y - z"},
      {"x-(y-z)", "x - (y - z)"},
      {"(x*y)/z", "x * y / z"},
      {"x*(y/z)", "x * (y / z)"},
      {"x/(y*z)", "x / (y * z)"},
      {"(x+y)*z", "(x + y) * z"},
      {"x+(y*z)", "x + y * z"},
      {"-(x*y)", "-(x * y)"},
      {"(-x)*y", "-x * y"},
      {"x-(-y)", "x - -y"},
      {"--x", "--x"},
      {"((x))", "x"},
      {"(exp((x)))", "exp(x)"},
      {"max((x+y), (z))", "max(x + y, z)"},
      {"select(gt(x,0),x,y)", "select(gt(x, 0), x, y)"},
      {"cast(f16,x)*y", "cast(f16, x) * y"},
      {"div_exact(x,y)", "div_exact(x, y)"},
  };
  for (const auto& [given, expected] : forms) CHECK(canonical(given) == expected);
}

TEST_CASE("numbers print in the shortest form that reads back") {
  const std::pair<std::string_view, std::string_view> forms[] = {
      {"x + 1.0", "x + 1"},
      {"x * 0.1", "x * 0.1"},
      {"x * 1e-6", "x * 1e-06"},
      {"x * -2", "x * -2"},
      {"-2 * x", "-2 * x"},
      {"x + -(3)", "x + -3"},
      {"x - 0.044715", "x - 0.044715"},
      {"min(x, inf)", "min(x, inf)"},
      {"max(x, -inf)", "max(x, -inf)"},
      {"x + nan", "x + nan"},
      {"x + 16777217", "x + 16777216"},
      {"x * 3.4028235e38", "x * 3.4028235e+38"},
      {"x * 1e-45", "x * 1e-45"},
      {"x + 0.30000001", "x + 0.3"},
      {"x + -0", "x + -0"},
  };
  for (const auto& [given, expected] : forms) CHECK(canonical(given) == expected);
}

TEST_CASE("declarations, sharing, layouts, and names that would clash") {
  const std::string text = R"(kernel everything
dim m[1..16]
dim n[..4096]
input mask: bool[8]
input t1: f16[n, m, 8] strided
input one: i32[]
scalar alpha: f32
scalar count: i32
let t2 = t1 + alpha
let t3 = select(mask, t2, one) * t2
output y: e4m3fn[n, m, 8] = cast_nonsaturating(e4m3fn, t3 + count) strided
output z: f16[n, m, 8] = t3 in_place_of t1 strided
)";
  const KernelSpec spec = parse_spec(text);
  CHECK_NOTHROW(validate(spec));
  std::string expected = text;
  // Dims in order of use.
  expected.replace(expected.find("dim m"), 27, "dim n[..4096]\ndim m[1..16]\n");
  CHECK(to_text(spec) == expected);
  CHECK(spec.outputs()[1].in_place_of == "t1");
  CHECK(spec.outputs()[0].layout == Layout::strided);
  CHECK(spec.inputs()[1]->layout == Layout::strided);
}

TEST_CASE("a dimension that only an iota has is declared") {
  const KernelSpec spec = KernelSpec("k").output("y", f32, input("x", f32, {1}) + iota({dynamic("rows"), 1}));
  CHECK(to_text(spec).starts_with("kernel k\ndim rows\n"));
  CHECK(parse_spec(to_text(spec)) == spec);
}

TEST_CASE("comments and line ends are spaces") {
  const std::string one_line = "kernel k input x: f16[4] output y: f16[4] = x + 1";
  CHECK(parse_spec(one_line) == parse_spec("# head\nkernel k\n\n  input x: f16[4] # tail\r\noutput y: f16[4]\n  = x\n  + 1"));
}

TEST_CASE("a value shared by two outputs stays shared") {
  const KernelSpec spec = catalog_spec("add_rmsnorm_dynamic_quant", {.cols = 512});
  const KernelSpec again = parse_spec(to_text(spec));
  CHECK(nodes_in_order(again).size() == nodes_in_order(merge_equal_nodes(spec)).size());
}

TEST_CASE("a loop is written out: values that go on, values of a turn, stacks") {
  const std::string before = "kernel k\ndim rows\ninput x: f32[rows, 3, 64]\ninput w: f32[64]\n";
  const KernelSpec looped =
      parse_spec(before + "let s = w * 2\nfor t: 3 {\n  let y = unstack(x, t) + s\n  let s = y * w\n  stack all = s - y\n}\n"
                          "output o: f16[rows, 3, 64] = all\noutput last: f32[rows, 64] = s");
  const KernelSpec written = parse_spec(before + R"(let s = w * 2
let y0 = unstack(x, 0) + s
let s0 = y0 * w
let y1 = unstack(x, 1) + s0
let s1 = y1 * w
let y2 = unstack(x, 2) + s1
let s2 = y2 * w
output o: f16[rows, 3, 64] = stack(s0 - y0, s1 - y1, s2 - y2)
output last: f32[rows, 64] = s2)");
  CHECK(looped == written);
  CHECK(parse_spec(to_text(looped)) == looped);
}
