// Indices, views and positions, executed on both architectures: rows by index, partners in a lane, in a wave and beyond it.
#include "gen/catalog/catalog.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>

namespace indexed_numeric {
using namespace kiln;

namespace {

void check(const KernelSpec& spec, std::int64_t rows, std::uint64_t seed = 1, const std::vector<std::string>& settings = {}) {
  for (const std::string_view arch : known_archs()) {
    const auto wrong = testing::check_kernel(spec, target(arch), seed, {.rows = rows, .settings = settings});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

const Dim tokens = dynamic("tokens");

} // namespace

TEST_CASE("rope and the cache: neox and interleaved, norm of heads, f16, bf16 and fp8 caches") {
  for (const std::string_view arch : known_archs())
    for (std::uint64_t point = 0; const bool interleaved : {false, true})
      for (const DType dtype : {f16, bf16}) {
        const Target to = target(arch);
        CatalogOptions options{.cols = interleaved ? 64 : 128, .dtype = dtype, .fp8 = to.fp8(), .in_place = interleaved, .heads = 4};
        options.interleaved = interleaved;
        options.index = dtype == f16 ? i64 : i32;
        for (const bool more : {false, true}) {
          options.head_norm = options.fp8_cache = more;
          for (const char* name : {"rope", "rope_kv_write"}) {
            if (!testing::runs_in_slice(to, ++point)) continue;
            const auto wrong = testing::check_kernel(catalog_spec(name, options), to, 5, {.rows = 5});
            CHECK_MESSAGE(!wrong, wrong.value_or(""));
          }
        }
      }
}

TEST_CASE("pairs at every distance: neighbours, halves of odd sizes, other waves, other chunks") {
  for (const auto& [cols, distance] :
       {std::pair{2, 1}, {4, 2}, {12, 2}, {96, 48}, {40, 20}, {6, 3}, {600, 100}, {8192, 4096}, {24576, 1}, {20480, 32}}) {
    CAPTURE(cols);
    CAPTURE(distance);
    const Expr x = input("x", f16, {tokens, cols});
    check(KernelSpec("k").output("y", f32, rotate(x, distance) + partner(iota({cols}), distance)), 3);
    check(KernelSpec("k").output("y", bf16, partner(x * rsqrt(row_mean(x * x) + 1e-3), distance)).output("z", i8, partner(x, distance)), 2);
  }
}

TEST_CASE("rows of tables: wide rows, rows of waves, one number a row, zero rows, ends of rows") {
  for (const std::int64_t cols : {1, 7, 64, 1000, 4100, 20000}) {
    CAPTURE(cols);
    const Expr table = input("table", bf16, {dynamic("n"), cols}), ids = input("ids", i64, {tokens, 1});
    const Expr bias = input("bias", f32, {dynamic("n"), 1}), x = input("x", f16, {tokens, cols});
    check(KernelSpec("k").output("y", f16, gather(table, ids)), 5, 3);
    check(KernelSpec("k").output("y", f16, x + gather(table, ids) * gather(bias, ids) + iota({tokens, 1})), 4, 4);
  }
  check(KernelSpec("k").output("y", f16, gather(input("table", f16, {9, 64}), input("ids", i32, {tokens, 1}))), 0);
}

TEST_CASE("scatter of elements and of one number a row, with a reduction before it, strided, rows that are shared") {
  const Expr x = input("x", f16, {tokens, 3, 200}, Layout::strided), slot = input("slot", i32, {tokens, 1, 1});
  const Expr cache = input("cache", f16, {dynamic("slots"), 3, 200}, Layout::strided);
  const Expr scales = input("scales", f32, {dynamic("slots"), 3, 1});
  const Expr scale = max(row_absmax(x), 1e-3) / 100.0;
  for (const bool checked : {false, true})
    check(
        KernelSpec("k")
            .output("out", f16, scatter(cache, slot, x / scale, {.checked = checked}), {.in_place_of = "cache", .layout = Layout::strided})
            .output("scales_out", f32, scatter(scales, slot, scale, {.checked = checked}), {.in_place_of = "scales"}),
        6, 7);
}

TEST_CASE("one index for all rows, which are those of one row of the target") {
  const Expr x = input("x", f16, {3, 5, 16}), table = input("table", f16, {4, 3, 5, 16}), place = input("place", i32, {1, 1, 1, 1});
  const Expr wide = input("wide", f16, {1, 3, 5, 16});
  check(KernelSpec("k").output("y", f16, wide * gather(table, place)), 1, 2);
  const Expr target_ = input("target", f16, {4, 3, 5, 16});
  check(KernelSpec("k").output("out", f16, scatter(target_, place, wide + x), {.in_place_of = "target"}), 1, 3);
}

TEST_CASE("tile and repeat of narrow rows and of rows of a table") {
  for (const auto& [cols, times] : {std::pair{64, 2}, {48, 4}, {8, 16}, {2048, 8}, {3, 8}, {5, 2}}) {
    CAPTURE(cols);
    CAPTURE(times);
    const Expr narrow = input("narrow", f16, {tokens, cols}), one = input("one", u8, {cols}), ids = input("ids", i32, {tokens, 1});
    const Expr table = input("table", f32, {20, cols}), x = input("x", f16, {tokens, cols * times});
    check(KernelSpec("k").output("y", f32, x * tile(narrow, times) + repeat(one, times)), 3, 9);
    check(KernelSpec("k").output("y", f32, x * repeat(gather(table, ids), times) + tile(gather(table, ids), times) - repeat(narrow, times)),
          3, 9);
  }
}

TEST_CASE("what is checked stays within its tensors") {
  const Expr table = input("table", f16, {5, 256}), ids = input("ids", i64, {tokens, 1}), x = input("x", f16, {tokens, 256});
  const Expr target_ = input("cache", f16, {7, 256});
  const KernelSpec spec = KernelSpec("k")
                              .output("y", f16, gather(table, ids, {.checked = true}))
                              .output("out", f16, scatter(target_, ids, x, {.checked = true}), {.in_place_of = "cache"});
  for (const std::string_view arch : known_archs()) {
    CompileOptions compile = own_process_options(process_environment());
    const BuiltKernel built = build_kernel(spec, target(arch), compile);
    Inputs inputs = random_inputs(spec, 3, {.dynamic_size = 6});
    const std::int64_t given[] = {4, 5, 7, std::int64_t{1} << 40, -(std::int64_t{1} << 40), 0};
    for (int i = 0; i < 6; ++i) inputs.tensors.at("ids").set_bits(i, static_cast<std::uint64_t>(given[i]));
    const EmulatedRun done = emulate(spec, built.source, built.object, inputs);
    CHECK(done.result.defects.empty());
    const auto wrong = find_mismatch(done.outputs, evaluate_bounds(spec, inputs));
    CHECK_MESSAGE(!wrong, (wrong ? to_text(*wrong) : std::string()));
  }
}

TEST_CASE("the column of the largest element: one wave, many, chunks that are read again, ends, ties") {
  for (const std::int64_t cols : {1, 7, 64, 513, 4096, 40000}) {
    CAPTURE(cols);
    const Expr x = input("x", f16, {tokens, cols});
    const Expr coarse = floor(x * 2); // many alike
    check(KernelSpec("k").output("a", i32, row_argmax(coarse)).output("b", i32, row_argmin(coarse)).output("m", f32, row_max(x)), 3, 11);
  }
  const auto wrong =
      testing::check_kernel(catalog_spec("argmax_rows", {.cols = 512}), target("gfx942"), 2, {.rows = 6, .special_values = true});
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

TEST_CASE("a vocabulary of 262144 columns") {
  for (const char* name : {"softmax_temperature", "argmax_rows"}) {
    const auto wrong = testing::check_kernel(catalog_spec(name, {.cols = 262144, .dtype = bf16}), target("gfx950"), 1, {.rows = 1});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

} // namespace indexed_numeric
