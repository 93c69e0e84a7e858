// Experts, executed on both architectures: pairs sorted, products by expert of every kind of weights, sums, and how workgroups meet.
#include "gen/catalog/catalog.h"
#include "gen/reference/index_check.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tuple>

namespace experts_numeric {
using namespace kiln;

namespace {

BuiltKernel built_for(const KernelSpec& spec, std::string_view arch, const std::vector<std::string>& settings = {}) {
  CompileOptions compile = own_process_options(process_environment());
  compile.warnings_as_errors = true;
  return build_kernel(spec, target(arch), compile, settings);
}

EmulatedRun executed(const KernelSpec& spec, const BuiltKernel& built, const Inputs& inputs, std::uint64_t seed = 0) {
  exec::ExecOptions run;
  run.seed = seed;
  EmulatedRun done = emulate(spec, built.source, built.object, inputs, run);
  CHECK_MESSAGE(done.result.defects.empty(), (done.result.defects.empty() ? "" : exec::to_text(done.result.defects.front())));
  REQUIRE(done.result.completed);
  return done;
}

// The same bits in every interleaving, within bounds.
void check_interleavings(const KernelSpec& spec, std::string_view arch, std::int64_t tokens, int count,
                         const std::vector<std::string>& settings) {
  const BuiltKernel built = built_for(spec, arch, settings);
  const Inputs inputs = random_inputs(spec, 5, {.dynamic_size = tokens});
  const auto wrong = testing::check_orders(spec, built, inputs, {.count = static_cast<std::uint64_t>(count)});
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

void check(const KernelSpec& spec, std::string_view arch, std::int64_t tokens, const std::vector<std::string>& settings = {}) {
  const auto wrong = testing::check_kernel(spec, target(arch), 3, {.rows = tokens, .settings = settings});
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

} // namespace

TEST_CASE("moe_sort: any number of tokens, experts that few or all have, numbers that name none") {
  for (const auto& [arch, count, top] : {std::tuple("gfx942", 60, 4), std::tuple("gfx950", 64, 8), std::tuple("gfx950", 1000, 1)}) {
    const KernelSpec spec = catalog_spec("moe_sort", {.top = top, .experts = count});
    const BuiltKernel built = built_for(spec, arch);
    for (const std::int64_t tokens : {1, 8, 33, 300}) {
      CAPTURE(fmt::format("{} {} experts, {} of each of {} tokens", arch, count, top, tokens));
      Inputs inputs = random_inputs(spec, static_cast<std::uint64_t>(tokens), {.dynamic_size = tokens});
      Tensor& experts = inputs.tensors.at("experts"); // from -100 to 100: some name none of 64
      for (std::int64_t i = 0; i < experts.size(); i += 3) experts.set_bits(i, 7);
      if (tokens == 33) experts.set_bits(0, 0x7fffffff), experts.set_bits(1, static_cast<std::uint64_t>(count));
      const EmulatedRun done = executed(spec, built, inputs);
      const Outputs expected = evaluate(spec, inputs);
      CHECK(done.outputs.at("order").data() == expected.at("order").data());
      CHECK(done.outputs.at("offsets").data() == expected.at("offsets").data());
      CHECK(done.outputs.at("offsets").integer(0) == 0);
    }
  }
}

TEST_CASE("the router sorts what it chose, in the same launch") {
  for (const auto& [arch, seeds] : {std::pair("gfx942", 2), std::pair("gfx950", 20)}) {
    CAPTURE(arch);
    const KernelSpec spec = catalog_spec("router", {.dtype = bf16, .top = 6, .m = 13, .n = 100, .k = 512, .sorted = true});
    const BuiltKernel built = built_for(spec, arch);
    const Inputs inputs = random_inputs(spec, 2, {.dynamic_size = 13});
    for (int seed = 0; seed < seeds; ++seed) {
      const EmulatedRun done = executed(spec, built, inputs, static_cast<std::uint64_t>(seed));
      const auto wrong = find_mismatch(done.outputs, evaluate_bounds(spec, inputs, bounds_options(built.schedule)));
      CHECK_MESSAGE(!wrong, (wrong ? to_text(*wrong) : std::string()));
      std::vector<std::int64_t> experts;
      for (std::int64_t i = 0; i < 13 * 6; ++i) experts.push_back(done.outputs.at("experts").integer(i));
      const SortedPairs sorted = sort_pairs(experts, 100);
      for (std::int64_t i = 0; i < 13 * 6; ++i) REQUIRE(done.outputs.at("order").integer(i) == sorted.order[static_cast<std::size_t>(i)]);
      for (std::int64_t i = 0; i <= 100; ++i) REQUIRE(done.outputs.at("offsets").integer(i) == sorted.offsets[static_cast<std::size_t>(i)]);
    }
  }
}

TEST_CASE("products by expert: every kind of weights, one token and many, rows of an expert beyond a block") {
  for (const std::string_view arch : known_archs()) {
    CAPTURE(arch);
    const Target to = target(arch);
    const CatalogOptions base{.dtype = bf16, .fp8 = to.fp8(), .top = 3, .m = 16, .n = 128, .k = 256, .experts = 6};
    const auto with = [&](DType dtype, DType weights, std::int64_t experts) {
      CatalogOptions options = base;
      options.dtype = dtype, options.weights = weights, options.experts = experts;
      return options;
    };
    check(catalog_spec("grouped_gemm", with(f16, f32, 6)), arch, 1, {"workgroups=20"});
    check(catalog_spec("grouped_gemm_swiglu", with(bf16, e2m1, 40)), arch, 9, {"workgroups=30"});
    check(catalog_spec("grouped_gemm_swiglu", with(to.fp8(), f32, 6)), arch, 5, {"workgroups=7"});
    check(catalog_spec("grouped_gemm_sum", with(to.fp8(), f32, 6)), arch, 9);
    check(catalog_spec("grouped_gemm_sum", with(f16, e2m1, 3)), arch, 16, {"workgroups=9", "rows=16"}); // 16 pairs an expert, and more
  }
}

TEST_CASE(
    "products by expert of 4-bit integers, of fp8 with 16-bit a, with ends of n and k inside of a tile, and operands of every shape") {
  const Dim m = dynamic("m", 1, 12);
  const Expr order = input("order", i32, {m, 4}), offsets = input("offsets", i32, {6});
  for (const std::string_view arch : known_archs()) {
    CAPTURE(arch);
    const Target to = target(arch);
    const Expr w4 = matmul_nt_w4(input("a", f16, {m, 320}), input("b", u8, {5, 72, 160}), input("scale", f16, {5, 72, 5}),
                                 input("zero", u8, {5, 72, 5}), 64);
    const Expr of_pair = input("of_pair", f32, {m, 4, 1}), of_token = input("of_token", f16, {m, 1, 72}),
               of_column = input("of_column", f32, {72});
    check(KernelSpec("k").output("y", f32, by_expert(w4, order, offsets) * of_pair + of_token * of_column), arch, 7, {"workgroups=11"});
    const Expr sum = sum_of_experts(matmul_nt(input("a", bf16, {m, 4, 144}), input("b", to.fp8(), {5, 200, 144})), order, offsets,
                                    input("weights", f32, {m, 4}));
    check(KernelSpec("k").output("y", f16, columns(sum, 8, 180) * input("of_token", f32, {m, 1}) + input("residual", f16, {m, 180})), arch,
          12, {"workgroups=13"});
  }
}

TEST_CASE("workgroups that share tiles of experts, and sums over experts: the same bits in 20 interleavings") {
  for (const auto& [arch, count] : {std::pair("gfx942", 20), std::pair("gfx950", 20)}) {
    CAPTURE(arch);
    const CatalogOptions options{.dtype = bf16, .fp8 = target(arch).fp8(), .top = 3, .m = 8, .n = 96, .k = 256, .experts = 6};
    check_interleavings(catalog_spec("grouped_gemm_swiglu", options), arch, 5, count, {"workgroups=20"});
    check_interleavings(catalog_spec("grouped_gemm_sum", options), arch, 5, count, {"workgroups=17"});
  }
}

TEST_CASE("one pair of a small matrix: workgroups without a step have no part of a tile") {
  check(catalog_spec("grouped_gemm", {.dtype = f16, .top = 1, .m = 16, .n = 128, .k = 256, .experts = 8}), "gfx942", 1, {"workgroups=50"});
  check(catalog_spec("grouped_gemm_sum", {.dtype = bf16, .top = 1, .m = 16, .n = 128, .k = 256, .experts = 8}), "gfx950", 1,
        {"workgroups=50"});
}

TEST_CASE("experts without tokens cost nothing: only those with tokens are read") {
  for (const std::string_view arch : known_archs()) {
    const CatalogOptions options{.dtype = bf16, .fp8 = target(arch).fp8(), .top = 2, .m = 4, .n = 256, .k = 512, .experts = 64};
    const KernelSpec spec = catalog_spec("grouped_gemm", options);
    const BuiltKernel built = built_for(spec, arch);
    std::vector<std::uint64_t> matrix; // instructions
    for (const std::int64_t experts : {1, 2, 4}) {
      Inputs inputs = random_inputs(spec, 1, {.dynamic_size = 2});
      Tensor &order = inputs.tensors.at("order"), &offsets = inputs.tensors.at("offsets");
      for (std::int64_t i = 0; i < 4; ++i) order.set_bits(i, static_cast<std::uint64_t>(i));
      for (std::int64_t e = 0; e <= 64; ++e) offsets.set_bits(e, static_cast<std::uint64_t>(std::min<std::int64_t>(4, e * 4 / experts)));
      matrix.push_back(executed(spec, built, inputs).result.waves.executed(exec::InstClass::matrix));
    }
    CHECK(matrix[1] == 2 * matrix[0]);
    CHECK(matrix[2] == 4 * matrix[0]);
  }
}

} // namespace experts_numeric
