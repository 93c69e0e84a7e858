// KernelSpec: what is found from the outputs, merging of equal nodes, iteration spaces.
#include "gen/catalog/catalog.h"
#include "gen/plan/validate.h"
#include "gen/spec/graph.h"
#include "gen/spec/math.h"
#include <doctest/doctest.h>

using namespace kiln;

namespace {

const Dim rows = dynamic("rows");

std::vector<std::string> names(const std::vector<Expr>& leaves) {
  std::vector<std::string> result;
  for (const Expr& leaf : leaves) result.push_back(leaf->name);
  return result;
}

} // namespace

TEST_CASE("inputs, scalars and dims are found in order of first use") {
  const Expr x = input("x", f16, {rows, 64}), y = input("y", f16, {64}), alpha = scalar("alpha"), beta = scalar("beta", i32);
  const KernelSpec spec = KernelSpec("k").output("a", f16, beta * y + x).output("b", f32, x * alpha);
  CHECK(names(spec.inputs()) == std::vector<std::string>{"y", "x"});
  CHECK(names(spec.scalars()) == std::vector<std::string>{"beta", "alpha"});
  CHECK(spec.dynamic_dims() == std::vector<Dim>{rows});
  CHECK(nodes_in_order(spec).back().same_node(spec.outputs()[1].value));
}

TEST_CASE("an output is rounded to its type unless it has it") {
  const Expr x = input("x", f16, {rows, 64});
  const KernelSpec spec = KernelSpec("k").output("a", f16, x).output("b", f16, x + 1).output("c", e4m3fn, cast_nonsaturating(e4m3fn, x));
  CHECK(spec.outputs()[0].value.op() == Op::input);
  CHECK(spec.outputs()[1].value.op() == Op::cast);
  CHECK(!spec.outputs()[2].value->saturate);
}

TEST_CASE("a spec does not depend on how often an expression was spelled") {
  const auto build = [](bool shared) {
    const auto x = [] { return input("x", f16, {rows, 64}); };
    const auto mean = [&] { return row_mean(x() * x()); };
    if (!shared) return KernelSpec("k").output("y", f16, x() * rsqrt(mean() + 1e-6)).output("m", f32, mean());
    const Expr one = x(), square = one * one, m = row_mean(square);
    return KernelSpec("k").output("y", f16, one * rsqrt(m + 1e-6)).output("m", f32, m);
  };
  CHECK(build(false) == build(true));
  CHECK(to_text(build(false)) == to_text(build(true)));
  CHECK(nodes_in_order(build(false)).size() > nodes_in_order(build(true)).size());
  CHECK(nodes_in_order(merge_equal_nodes(build(false))).size() == nodes_in_order(build(true)).size());
}

TEST_CASE("specs that differ in anything that matters differ") {
  const auto build = [](std::string name, DType type, Layout layout, double epsilon, bool saturate) {
    const Expr x = input("x", type, {rows, 64}, layout);
    const Expr y = x + epsilon;
    return KernelSpec(std::move(name)).output("y", e4m3fn, saturate ? cast(e4m3fn, y) : cast_nonsaturating(e4m3fn, y));
  };
  const KernelSpec base = build("k", f16, Layout::contiguous, 1e-6, true);
  CHECK(base == build("k", f16, Layout::contiguous, 1e-6, true));
  CHECK(!(base == build("l", f16, Layout::contiguous, 1e-6, true)));
  CHECK(!(base == build("k", bf16, Layout::contiguous, 1e-6, true)));
  CHECK(!(base == build("k", f16, Layout::strided, 1e-6, true)));
  CHECK(!(base == build("k", f16, Layout::contiguous, 1.0000001e-6, true)));
  CHECK(!(base == build("k", f16, Layout::contiguous, 1e-6, false)));
}

TEST_CASE("iteration spaces") {
  const Expr x = input("x", f16, {rows, 1024});
  CHECK(iteration_space(KernelSpec("k").output("m", f32, row_max(x))) == Shape{rows, 1024});
  CHECK(iteration_space(KernelSpec("k").output("m", f32, group_max(x, 128))) == Shape{rows, 1024});
  const Expr weight = input("w", f16, {7, 1, 5}), other = input("o", f16, {3, 1});
  CHECK(iteration_space(KernelSpec("k").output("y", f32, weight * other)) == Shape{7, 3, 5});
  CHECK(SpecGraph(KernelSpec("k").output("m", f32, row_max(x))).has_reductions);
  CHECK(!SpecGraph(KernelSpec("k").output("y", f32, weight * other)).has_reductions);
  CHECK(SpecGraph(catalog_spec("group_dequant", {})).group_sizes == std::vector<std::int64_t>{128});
  CHECK(!SpecGraph(catalog_spec("group_dequant", {})).has_reductions);
}

TEST_CASE("a long chain is walked once a node") {
  Expr x = input("x", f32, {rows, 8});
  for (int i = 0; i < max_depth; ++i) x = x + 1;
  const KernelSpec spec = KernelSpec("k").output("y", f32, x);
  CHECK(nodes_in_order(spec).size() == 2 * max_depth + 1);
  CHECK(nodes_in_order(merge_equal_nodes(spec)).size() == max_depth + 2);
}

TEST_CASE("dims print with their bounds and compare by name") {
  CHECK(Dim(16384).text() == "16384");
  CHECK(rows.text() == "rows");
  CHECK(dynamic("m", 1, 16).text() == "m[1..16]");
  CHECK(dynamic("m", {}, 16).text() == "m[..16]");
  CHECK(same_size(dynamic("m", 1, 16), dynamic("m")));
  CHECK(!same_size(dynamic("m"), dynamic("n")));
  CHECK(!same_size(dynamic("m"), 5));
  CHECK(to_text(Shape{rows, 4}) == "[rows, 4]");
  CHECK(to_text(Shape{}) == "[]");
}

TEST_CASE("targets") {
  CHECK(target("gfx942").fp8() == e4m3fnuz);
  CHECK(target("gfx950").fp8() == e4m3fn);
  CHECK(target("gfx942").fp8_e5m2() == e5m2fnuz);
  CHECK(target("gfx942").lds_bytes() == 65536);
  CHECK(target("gfx950").lds_bytes() == 163840);
  CHECK(parse_dtype("fp8", target("gfx942")) == e4m3fnuz);
  CHECK(parse_dtype("fp8", target("gfx950")) == e4m3fn);
  CHECK(parse_dtype("bf16", target("gfx950")) == bf16);
  CHECK(!parse_dtype("fp9", target("gfx950")));
  CHECK(target("gfx950").has_native(f16));
  CHECK(target("gfx950").has_native(e5m2));
  CHECK(!target("gfx950").has_native(e5m2fnuz));
  CHECK(known_archs().size() == 2);
  for (const auto arch : known_archs()) {
    const Target t = target(arch);
    CHECK(t.arch() == arch);
    CHECK_NOTHROW(require_native_types(catalog_spec("add_rmsnorm_quant", {.fp8 = t.fp8()}), t));
  }
}
