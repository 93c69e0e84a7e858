// Products whose waves share the rows of A compute what the reference says: blocks of rows, epilogues, pairs of products, interleavings;
// the race detector sees when they do not wait for each other; and what the method does not take is refused by name.
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gemm_shared_rows_tests {
using namespace kiln;

namespace {

using Settings = std::vector<std::string>;

KernelSpec plain(DType type, std::int64_t most, std::int64_t n, std::int64_t k) {
  return KernelSpec("gemm").output("c", f32, matmul_nt(input("a", type, {dynamic("m", 1, most), k}), input("b", type, {n, k})));
}
Expr scaled(DType type, std::int64_t most, std::int64_t n, std::int64_t k) {
  const Dim m = dynamic("m", 1, most);
  const std::int64_t groups = group_count(k, scale_block);
  return matmul_nt_scaled(input("a", type, {m, k}), input("b", type, {n, k}), input("a_scale", f32, {m, groups}),
                          input("b_scale", f32, {group_count(n, scale_block), groups}));
}
Expr mx(DType type, std::int64_t most, std::int64_t n, std::int64_t k, bool by_group = false) {
  const Dim m = dynamic("m", 1, most);
  const std::int64_t groups = k / mx_block;
  return matmul_nt_mx_mx(input("a", type, {m, k}), input("b", type, {n, k}),
                         by_group ? transpose(input("a_scale", e8m0, {groups, m})) : input("a_scale", e8m0, {m, groups}),
                         input("b_scale", e8m0, {n, groups}));
}

void check(const KernelSpec& spec, const Target& to, std::uint64_t seed, std::int64_t m, Settings settings = {}) {
  settings.insert(settings.begin(), "method=shared_rows");
  if (!testing::runs_in_slice(to, seed)) return;
  CAPTURE(to.arch());
  const auto wrong = testing::check_kernel(spec, to, seed, {.rows = m, .settings = settings});
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

BuiltKernel built(const KernelSpec& spec, const Target& to, Settings settings) {
  settings.insert(settings.begin(), "method=shared_rows");
  CompileOptions compile = own_process_options(process_environment());
  return build_kernel(spec, to, compile, settings);
}

// Whether waves race in a kernel whose text, headers included, has `from` replaced by `to_text`.
bool races_after(const KernelSpec& spec, const Target& to, const std::string& from, const std::string& to_text) {
  BuiltKernel kernel = built(spec, to, {});
  KernelSource source = kernel.source;
  source.text = self_contained(source);
  const std::size_t at = source.text.find(from);
  REQUIRE(at != std::string::npos);
  source.text.replace(at, from.size(), to_text);
  CompileOptions compile = own_process_options(process_environment());
  const CodeObject object = kiln::compile(source, to, compile);
  const Inputs inputs = random_inputs(spec, 3, {.dynamic_size = 64});
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto found = emulate(spec, source, object, inputs, {.seed = seed, .measure = false}).result.defects;
    if (std::ranges::count(found, exec::DefectKind::lds_race, &exec::Defect::kind) > 0) return true;
  }
  return false;
}

} // namespace

TEST_CASE("shared rows: blocks of rows, also such as do not exist") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t seed = 0;
    for (const std::int64_t m : {1, 40, 64, 65, 80, 127, 128}) check(plain(to.fp8(), 128, 200, 1024), to, ++seed, m);
    for (const int blocks : {3, 4, 8})
      check(KernelSpec("gemm").output("c", f32, scaled(to.fp8(), 128, 256, 896)), to, ++seed, 121,
            {fmt::format("row_blocks={}", blocks), fmt::format("workgroups={}", 2 * blocks)});
    check(plain(i8, 33, 131, 3 * 64), to, ++seed, 33); // three steps of 64 bytes
    check(plain(bf16, 80, 129, 64 * 33), to, ++seed, 80, {"stages=6"});
  }
}

TEST_CASE("shared rows: MXFP4, whose scales pass through LDS as the rows do") {
  const Target to = target("gfx950");
  std::uint64_t seed = 40;
  for (const std::int64_t m : {1, 49, 64, 65, 127, 128})
    check(KernelSpec("gemm").output("c", f32, mx(e2m1, 128, 200, 2048)), to, ++seed, m);
  for (const int blocks : {3, 4, 8})
    check(KernelSpec("gemm").output("c", f32, mx(e2m1, 128, 131, 1792)), to, ++seed, 121,
          {fmt::format("row_blocks={}", blocks), fmt::format("workgroups={}", 2 * blocks)});
  check(KernelSpec("gemm").output("c", f32, mx(e2m1, 64, 128, 3 * 256)), to, ++seed, 64); // three steps of 128 bytes
  const Expr pair = mx(e2m1, 80, 384, 1280);
  check(KernelSpec("gated").output("c", bf16, silu(columns(pair, 0, 192)) * columns(pair, 192, 192)), to, ++seed, 77);
}

TEST_CASE("shared rows: epilogues, and pairs of products") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const Dim m = dynamic("m", 1, 128);
    check(KernelSpec("biased").output("c", bf16,
                                      matmul_nt(input("a", to.fp8(), {m, 1024}), input("b", to.fp8(), {320, 1024})) *
                                              input("s", f32, {m, 1}) +
                                          input("bias", f32, {320}) + input("residual", bf16, {m, 320})),
          to, 21, 100);
    const Expr both = matmul_nt(input("a", bf16, {m, 512}), input("w", bf16, {384, 512}));
    check(KernelSpec("gated").output("c", bf16, silu(columns(both, 0, 192)) * columns(both, 192, 192)), to, 22, 70);
    const Expr pair = scaled(to.fp8(), 128, 512, 640);
    check(KernelSpec("gated_scaled").output("c", bf16, silu(columns(pair, 0, 256)) * columns(pair, 256, 256)), to, 23, 128);
  }
}

TEST_CASE("shared rows: twenty interleavings give the same bits") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const KernelSpec spec = KernelSpec("gemm").output("c", f32, scaled(to.fp8(), 80, 256, 1664));
    const auto wrong = testing::check_orders(spec, built(spec, to, {}), random_inputs(spec, 31, {.dynamic_size = 77}));
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
  const Target to = target("gfx950");
  const KernelSpec spec = KernelSpec("gemm").output("c", f32, mx(e2m1, 80, 256, 3328));
  const auto wrong = testing::check_orders(spec, built(spec, to, {}), random_inputs(spec, 32, {.dynamic_size = 77}));
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

TEST_CASE("shared rows: waves that do not wait for one another race") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    CAPTURE(arch);
    const KernelSpec spec = plain(to.fp8(), 64, 128, 4096);
    const std::string barrier = "platform::barrier();\n    sums_.finish();";
    CHECK_FALSE(races_after(spec, to, barrier, barrier));
    CHECK(races_after(spec, to, barrier, "sums_.finish();"));
    // With two places a step is put where others still read the one before.
    CHECK(races_after(spec, to, "place + 1 == config.shared_places", "place + 1 == 2"));
  }
}

TEST_CASE("shared rows: what they are not is refused by name") {
  const Target to = target("gfx942");
  const auto refused = [&](const KernelSpec& spec, const Settings& settings, const char* reason, std::string_view arch = "gfx942") {
    CHECK_THROWS_WITH_AS(built(spec, target(arch), settings), doctest::Contains(reason), UserError);
  };
  const auto refused_mx = [&](const Expr& product, const char* reason, std::string_view arch = "gfx950") {
    refused(KernelSpec("mx").output("c", f32, product), {}, reason, arch);
  };
  refused_mx(mx(e2m1, 128, 256, 1024), "no matrix instruction with scales", "gfx942");
  refused_mx(mx(e4m3fn, 128, 256, 1024), "MX formats of 4 bits");
  refused_mx(mx(e2m1, 128, 256, 1024, true), "scales row after row");
  refused_mx(mx(e2m1, 128, 256, 1024 + 128), "rows of whole lines");
  const Dim m = dynamic("m", 1, 128);
  const KernelSpec spec = plain(to.fp8(), 128, 256, 1024);
  refused(spec, {"workgroups=3"}, "a workgroup for each tile and block of rows");
  refused(spec, {"row_blocks=1"}, "16 to 64 rows");
  refused(spec, {"waves=8"}, "takes 4 waves");
  refused(spec, {"tile_n=64"}, "128 columns");
  refused(spec, {"stages=2"}, "three stages");
  refused(spec, {"vec=8"}, "a vec of 4");
  refused(plain(to.fp8(), 128, 256, 1040), {}, "rows of whole steps");
  refused(plain(f16, 128, 256, 64), {}, "three stages");
  refused(plain(f32, 128, 256, 1024), {}, "method matrix only");
  refused(KernelSpec("w8").output("c", f32, matmul_nt(input("a", f16, {m, 1024}), input("b", to.fp8(), {256, 1024}))), {},
          "as many bits each");
  CHECK_THROWS_WITH_AS(build_kernel(spec, to, own_process_options(process_environment()), {"method=matrix", "row_blocks=2"}),
                       doctest::Contains("only method shared_rows"), UserError);
}

} // namespace gemm_shared_rows_tests
