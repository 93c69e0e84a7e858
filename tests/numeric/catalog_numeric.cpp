// The catalogue, executed: awkward numbers of columns, both architectures, all activation types.
#include "gen/catalog/catalog.h"
#include "gen/spec/math.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace catalog_numeric {
using namespace kiln;

namespace {

void check_catalog(std::int64_t cols, std::int64_t rows, DType dtype, bool special_values = false) {
  for (const std::string_view arch : known_archs())
    for (auto point = static_cast<std::uint64_t>(cols); const CatalogEntry& entry : catalog()) {
      if (!testing::runs_in_slice(target(arch), ++point)) continue;
      if (entry.is.gemm || entry.is.attention || entry.is.experts || why_not(entry, {.cols = cols}))
        continue; // products below, with sizes of their own
      const Target to = target(arch);
      const auto wrong =
          testing::check_kernel(entry.build({.cols = cols, .dtype = dtype, .fp8 = to.fp8(), .heads = 2, .kv_heads = 2, .d = 2}), to, 1,
                                {.rows = rows, .special_values = special_values});
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    }
}

} // namespace

TEST_CASE("1 column") { check_catalog(1, 5, f16); }
TEST_CASE("3 columns of one row: fewer than a chunk") { check_catalog(3, 1, f16); }
TEST_CASE("63 columns") { check_catalog(63, 3, bf16); }
TEST_CASE("100 columns") { check_catalog(100, 7, f32); }
TEST_CASE("129 columns") { check_catalog(129, 3, f16); }
TEST_CASE("513 columns, infinities and NaN among them") { check_catalog(513, 6, f16, true); }
TEST_CASE("4097 columns") { check_catalog(4097, 2, bf16); }
TEST_CASE("16384 columns") { check_catalog(16384, 1, f16); }
TEST_CASE("40000 columns") { check_catalog(40000, 1, f32); }
TEST_CASE("zero rows") { check_catalog(256, 0, f16); }

// Ragged last groups, rows of part of a wave and of several waves, of several workgroups, and many rows.
TEST_CASE("scales with the groups in front") {
  struct Point {
    const char* name;
    std::int64_t cols, rows, max_rows;
  };
  for (const std::string_view arch : known_archs())
    for (std::uint64_t number = 0;
         const Point& point : {Point{"group_quant", 1000, 5, 0}, Point{"group_quant", 256, 33, 0}, Point{"group_quant", 7168, 3, 0},
                               Point{"group_quant", 32768, 1, 1}, Point{"mx_quant", 96, 7, 0}, Point{"silu_mul_mx_quant", 2048, 4, 0},
                               Point{"add_rmsnorm_mx_quant", 8192, 2, 0}, Point{"group_quant", 512, 0, 0}}) {
      const Target to = target(arch);
      if (!testing::runs_in_slice(to, ++number)) continue;
      const KernelSpec spec =
          catalog_spec(point.name, {.cols = point.cols, .max_rows = point.max_rows, .dtype = bf16, .fp8 = to.fp8(), .transposed = true});
      const auto wrong = testing::check_kernel(spec, to, 4, {.rows = point.rows});
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    }
}

// Products read a's scales so: every method that has them, tails of k, one row and many.
TEST_CASE("products of scales with the groups in front") {
  struct Point {
    const char* name;
    std::int64_t m, n, k, rows;
    std::vector<std::string> settings = {};
    DType mx = e2m1;
  };
  const std::vector<Point> points = {{"gemm_block_scaled", 8, 256, 1024, 5},
                                     {"gemm_block_scaled", 1, 128, 640, 1, {"method=dot"}},
                                     {"gemm_block_scaled", 8, 128, 1104, 7, {"method=sparse"}},
                                     {"gemm_block_scaled", 40, 256, 400, 33, {"method=matrix32", "tile_n=32"}},
                                     {"gemm_block_scaled", 32, 128, 512, 17, {"loads=2"}},
                                     {"gemm_mx", 8, 128, 1024, 6},
                                     {"gemm_mx", 33, 64, 416, 20},
                                     {"gemm_mx", 16, 64, 512, 16, {}, e4m3fn}};
  for (const std::string_view arch : known_archs())
    for (std::uint64_t number = 0; const Point& p : points) {
      const Target to = target(arch);
      if (!testing::runs_in_slice(to, ++number)) continue;
      CAPTURE(number);
      const KernelSpec spec =
          catalog_spec(p.name, {.dtype = bf16, .fp8 = to.fp8(), .mx = p.mx, .transposed = true, .m = p.m, .n = p.n, .k = p.k});
      const auto wrong = testing::check_kernel(spec, to, 5, {.rows = p.rows, .settings = p.settings});
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    }
}

TEST_CASE("matrix products of the catalogue") {
  for (const std::string_view arch : known_archs())
    for (std::uint64_t point = 0; const CatalogEntry& entry : catalog())
      for (const bool quantised : {false, true}) {
        const Target to = target(arch);
        if (!testing::runs_in_slice(to, ++point)) continue;
        if (!entry.is.gemm || entry.is.experts ||
            (quantised && (entry.name.starts_with("gemm_w") || entry.name == "gemm_mx" || entry.name == "gemm_dynamic_quant")))
          continue;
        const KernelSpec spec = entry.build({.dtype = quantised ? to.fp8() : bf16, .fp8 = to.fp8(), .m = 8, .n = 192, .k = 512});
        const auto wrong = testing::check_kernel(spec, to, 3, {.rows = 6});
        CHECK_MESSAGE(!wrong, wrong.value_or(""));
      }
}

TEST_CASE("131072 columns") {
  for (const char* name : {"add_rmsnorm_quant", "softmax", "layernorm"}) {
    const auto wrong =
        testing::check_kernel(catalog_spec(name, {.cols = 131072, .dtype = f16, .fp8 = e4m3fnuz}), target("gfx942"), 1, {.rows = 1});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

TEST_CASE("every residency gives the same") {
  for (const std::string_view arch : known_archs())
    for (std::uint64_t point = 0; const char* residency : {"residency=registers", "residency=lds", "residency=reload"})
      for (const char* name : {"add_rmsnorm_dynamic_quant", "softmax", "layernorm"})
        for (const std::int64_t cols : {5000, 5003}) {
          const Target to = target(arch);
          if (!testing::runs_in_slice(to, ++point)) continue;
          const auto wrong = testing::check_kernel(catalog_spec(name, {.cols = cols, .dtype = bf16, .fp8 = to.fp8()}), to, 2,
                                                   {.rows = 2, .settings = {residency, "threads_per_row=256", "prefetch_depth=2"}});
          CHECK_MESSAGE(!wrong, wrong.value_or(""));
        }
}

TEST_CASE("other shapes of the same work") {
  const KernelSpec spec = catalog_spec("add_rmsnorm_quant", {.cols = 4096, .dtype = f16, .fp8 = e4m3fnuz, .in_place = true});
  using Settings = std::vector<std::string>;
  for (const Settings& settings :
       {Settings{"threads_per_row=64", "rows_per_block=1", "prefetch_depth=3"}, Settings{"threads_per_row=512", "prefetch_depth=1"},
        Settings{"vec=4", "prefetch_depth=2"}, Settings{"vec=2", "threads_per_row=1024", "prefetch_depth=1"},
        Settings{"vec=1", "threads_per_row=1024"}}) {
    const auto wrong = testing::check_kernel(spec, target("gfx942"), 3, {.rows = 5, .settings = settings});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

// LLVM 21 ends the process on some operations rounded to some types, so each pair is compiled and executed.
TEST_CASE("every operation rounded to every type") {
  const Target to = target("gfx942");
  for (const DType type : {bf16, f16, e4m3fnuz, i8}) {
    KernelSpec spec("all_ops");
    const Expr x = input("x", f32, {dynamic("rows"), 64});
    const Expr bounded = clamp(x, -4.0, 4.0), positive = abs(bounded) + 0.5;
    int index = 0;
    for (const Op op : pointwise_ops()) {
      if (info(op).kind != OpKind::pointwise) continue;
      const Expr operands[] = {positive, bounded, positive};
      spec.output(fmt::format("out{}", index++), type, pointwise(op, std::span(operands, static_cast<std::size_t>(info(op).arity))));
    }
    const auto wrong = testing::check_kernel(spec, to, 4, {.rows = 3});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

} // namespace catalog_numeric
