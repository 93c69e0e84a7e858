// Several problems in one launch, executed: norms of q and k, reductions beside runs of elements, three at once, no rows of some.
#include "gen/catalog/catalog.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace fused_launch_numeric {
using namespace kiln;

namespace {

void check_on(const Target& to, const KernelSpec& spec, const std::map<std::string, std::int64_t>& sizes,
              const std::vector<std::string>& settings = {}) {
  CompileOptions compile = own_process_options(process_environment());
  compile.warnings_as_errors = true;
  const BuiltKernel built = build_kernel(spec, to, compile, settings);
  INFO(to_text(built.schedule), to_text(spec));
  REQUIRE(!built.source.launch.behind.empty());
  const Inputs inputs = random_inputs(spec, 11, {.sizes = sizes});
  const auto wrong = testing::check_orders(spec, built, inputs, {.count = 3, .side_by_side = true});
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

void check(const KernelSpec& spec, const std::map<std::string, std::int64_t>& sizes, const std::vector<std::string>& settings = {}) {
  for (const std::string_view arch : known_archs()) check_on(target(arch), spec, sizes, settings);
}

const Dim rows = dynamic("rows"), others = dynamic("others");

} // namespace

TEST_CASE("norms of q and k: any number of tokens, in place, in rows of both") {
  for (const DType type : {f16, bf16})
    for (const bool in_place : {false, true})
      check(catalog_spec("qk_norm", {.cols = 128, .dtype = type, .in_place = in_place, .heads = 32, .kv_heads = 8}), {{"rows", 3}});
  const KernelSpec spec = catalog_spec("qk_norm", {.cols = 128, .heads = 6, .kv_heads = 1});
  for (const std::int64_t tokens : {0, 1, 5, 33}) check(spec, {{"rows", tokens}});
  check(spec, {{"rows", 5}}, {"q_out.rows_per_block=16", "k_out.rows_per_block=16", "q_out.waves_per_eu=4"});
}

TEST_CASE("what a decode step does to q, k and v before attention: positions and tables are those of both problems") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    CatalogOptions options{.cols = 128, .dtype = bf16, .fp8 = to.fp8(), .heads = 8, .head_norm = true, .fp8_cache = true};
    KernelSpec spec("rope_qkv");
    for (const char* name : {"rope", "rope_kv_write"}) {
      const KernelSpec part = catalog_spec(name, options);
      for (const Output& o : part.outputs()) spec.output(o.name, o.dtype, o.value, {.in_place_of = o.in_place_of, .layout = o.layout});
      options.heads = 2;
    }
    check_on(to, spec, {{"rows", 5}, {"slots", 40}, {"positions", 9}});
  }
}

TEST_CASE("a reduction of rows beside a run of elements, with no rows or no elements of one") {
  const Expr x = input("x", f16, {rows, 4096}), a = input("a", f32, {others}), b = input("b", f32, {others});
  KernelSpec spec("mixed");
  spec.output("total", f32, row_sum(x)).output("c", f32, a * b + scalar("alpha"));
  KernelSpec other_way("mixed");
  other_way.output("c", f32, a * b).output("total", f32, row_sum(x)).output("doubled", f16, x * 2);
  for (const auto& [of_rows, elements] : {std::pair{4, 1000}, {0, 5000}, {3, 0}, {1, 1}}) {
    check(spec, {{"rows", of_rows}, {"others", elements}});
    check(other_way, {{"rows", of_rows}, {"others", elements}});
  }
}

TEST_CASE("three problems: of several waves per row, of part of a wave, and flat with workgroups of no power of two") {
  const Expr x = input("x", f16, {rows, 20000}), y = input("y", bf16, {others, 96}, Layout::strided), z = input("z", f32, {rows, 3, 77});
  KernelSpec spec("three");
  spec.output("softmax", f32, exp(x - row_max(x)) / row_sum(exp(x - row_max(x))));
  spec.output("scaled", bf16, y / row_absmax(y) * input("weight", f32, {96}), {.layout = Layout::strided});
  spec.output("halved", f32, z * 0.5).output("largest", f32, row_max(y));
  for (const auto& [of_rows, of_others] : {std::pair{2, 7}, {0, 5}, {3, 0}}) check(spec, {{"rows", of_rows}, {"others", of_others}});
  check(spec, {{"rows", 2}, {"others", 7}}, {"halved.chunks=3"});
}

TEST_CASE("problems of unlike numbers of threads: the waves that one does not need end before the barriers of the others") {
  const Expr x = input("x", f32, {rows, 4096}), y = input("y", f16, {others, 64}), z = input("z", f32, {others, 3});
  KernelSpec spec("unlike_threads");
  spec.output("a", f32, x - row_mean(x)).output("b", f16, y * row_max(y)).output("c", f32, z * 2);
  for (const auto& [a, b, c] : {std::tuple{1024, 64, 128}, {64, 1024, 64}, {256, 128, 512}, {128, 64, 1024}})
    check(spec, {{"rows", 3}, {"others", 77}},
          {fmt::format("a.threads_per_row={}", a), "a.rows_per_block=1", "a.prefetch_depth=1", fmt::format("b.rows_per_block={}", b / 16),
           "b.threads_per_row=16", fmt::format("c.threads={}", c)});
}

TEST_CASE("eight problems, with more arguments than are loaded before the branches") {
  KernelSpec spec("eight");
  std::map<std::string, std::int64_t> sizes;
  for (std::int64_t i = 1; i <= 8; ++i) {
    const Dim own = dynamic(fmt::format("rows{}", i));
    sizes[own.name()] = i % 4;
    const auto tensor = [&](const char* name) { return input(fmt::format("{}{}", name, i), f16, {own, 96 * i}, Layout::strided); };
    const Expr a = tensor("a"), b = tensor("b");
    spec.output(fmt::format("y{}", i), f16, i % 2 ? a * row_max(b) : a * b, {.layout = Layout::strided});
  }
  check(spec, sizes);
}

TEST_CASE("rows in LDS of two problems, and groups, indices and ranks beside each other") {
  const Expr x = input("x", f32, {rows, 6000}), y = input("y", f32, {others, 5000});
  KernelSpec layers("layers");
  layers.output("a", f32, x - row_mean(x)).output("b", f32, y * row_max(y));
  check(layers, {{"rows", 2}, {"others", 3}}, {"a.residency=lds", "b.residency=reload"});
  const Expr table = input("table", f16, {dynamic("table_rows", 1), 256}), ids = input("ids", i32, {rows, 1});
  const Expr logits = input("logits", f32, {others, 64}), top = row_top(logits, 4), values = input("values", bf16, {dynamic("m"), 512});
  KernelSpec spec("unlike");
  spec.output("gathered", f16, gather(table, ids)).output("experts", i32, top).output("weights", f32, pick(logits, top));
  const Expr scale = group_absmax(values, 128);
  spec.output("scale", f32, scale).output("q", f16, values / ungroup(max(scale, 0.01), 128, 512));
  check(spec, {{"rows", 3}, {"others", 5}, {"m", 4}, {"table_rows", 9}});
}

} // namespace fused_launch_numeric
