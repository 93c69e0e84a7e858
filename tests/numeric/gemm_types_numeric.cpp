// Skinny GEMMs, executed: scales of blocks, weights of 4 bits, 32x32 matrix instructions, preshuffled weights, atomics.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gemm_types_numeric {
using namespace kiln;

namespace {

using Settings = std::vector<std::string>;

Dim rows_to(std::int64_t most) { return dynamic("m", 1, most); }
Expr matrix(const char* name, DType type, Shape shape, bool preshuffled = false) {
  return input(name, type, std::move(shape), preshuffled ? Layout::preshuffled : Layout::contiguous);
}

KernelSpec plain(DType a_type, DType b_type, std::int64_t most, std::int64_t n, std::int64_t k, bool preshuffled = false) {
  return KernelSpec("gemm").output("c", f32, matmul_nt(matrix("a", a_type, {rows_to(most), k}), matrix("b", b_type, {n, k}, preshuffled)));
}

Expr scaled(DType a_type, DType b_type, std::int64_t most, std::int64_t n, std::int64_t k, bool preshuffled = false) {
  const std::int64_t groups = group_count(k, scale_block);
  return matmul_nt_scaled(matrix("a", a_type, {rows_to(most), k}), matrix("b", b_type, {n, k}, preshuffled),
                          matrix("a_scale", f32, {rows_to(most), groups}), matrix("b_scale", f32, {group_count(n, scale_block), groups}));
}
KernelSpec block_scaled(DType a_type, DType b_type, std::int64_t most, std::int64_t n, std::int64_t k, bool preshuffled = false) {
  return KernelSpec("scaled").output("c", f32, scaled(a_type, b_type, most, n, k, preshuffled));
}

KernelSpec packed(DType type, std::int64_t most, std::int64_t n, std::int64_t k, std::int64_t group, bool preshuffled = false) {
  const std::int64_t groups = group_count(k, group);
  return KernelSpec("w4").output("c", f32,
                                 matmul_nt_w4(matrix("a", type, {rows_to(most), k}), matrix("b", u8, {n, k / 2}, preshuffled),
                                              matrix("scale", type, {n, groups}), matrix("zero", u8, {n, groups}), group));
}

void check(const KernelSpec& spec, const Target& to, std::uint64_t seed, std::int64_t m, const Settings& settings = {}) {
  if (!testing::runs_in_slice(to, seed)) return;
  const auto wrong = testing::check_kernel(spec, to, seed, {.rows = m, .settings = settings});
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

} // namespace

TEST_CASE("f32 rows times f32, f16 and bf16: matrix instructions, tails, two products") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t seed = 60;
    CAPTURE(arch);
    check(plain(f32, f32, 16, 100, 260), to, ++seed, 13);
    check(plain(f32, f16, 64, 96, 264), to, ++seed, 37);
    check(plain(f32, bf16, 16, 33, 128), to, ++seed, 1);
    const Expr a = matrix("a", f32, {rows_to(16), 128});
    const Expr gate = matmul_nt(a, matrix("w", f16, {48, 128})), up = matmul_nt(a, matrix("u", f16, {48, 128}));
    check(KernelSpec("swiglu").output("y", f32, silu(gate) * up).output("g", f16, gate), to, ++seed, 3);
  }
}

TEST_CASE("scales of blocks: types, methods, tails") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const DType e4 = to.fp8_e4m3(), e5 = to.fp8_e5m2();
    CAPTURE(arch);
    check(block_scaled(e4, e4, 16, 161, 1104), to, 1, 13); // k is 8 blocks and 80 elements, n 1 block and 33 rows
    check(block_scaled(e4, e5, 33, 96, 384), to, 2, 33);
    check(block_scaled(i8, i8, 8, 100, 400), to, 3, 5);
    check(block_scaled(e4, e4, 1, 3, 16), to, 4, 1);
    check(block_scaled(e4, e4, 16, 96, 656), to, 5, 9, {"loads=1", "tile_n=32"}); // two steps a block
    check(block_scaled(e5, e4, 8, 144, 656), to, 6, 8, {"method=sparse"});
    check(block_scaled(i8, i8, 5, 144, 656), to, 7, 5, {"method=sparse", "loads=1"});
    check(block_scaled(e4, e4, 4, 144, 1040), to, 8, 3, {"method=dot", "tile_n=16", "loads=1", "stages=2"});
    check(block_scaled(i8, i8, 2, 40, 1024), to, 9, 2, {"method=dot", "tile_n=16", "loads=2", "stages=1"});
    check(block_scaled(e4, e4, 40, 160, 400), to, 10, 37, {"method=matrix32", "loads=4", "stages=2", "tile_n=32"});
    check(block_scaled(i8, i8, 17, 160, 400), to, 11, 17, {"method=matrix32", "loads=1", "tile_n=32"});
  }
}

TEST_CASE("scales of blocks: every m, workgroups that cross tiles, columns") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t seed = 20;
    const DType fp8 = to.fp8();
    CAPTURE(arch);
    for (const std::int64_t m : {1, 2, 3, 5, 12, 17, 48, 64}) check(block_scaled(fp8, fp8, m, 77, 272), to, ++seed, m);
    for (const char* workgroups : {"workgroups=1", "workgroups=5", "workgroups=11"})
      check(block_scaled(fp8, fp8, 8, 96, 1280), to, ++seed, 8, {workgroups, "stages=2", "tile_n=32", "waves=2"});
    const Expr both = scaled(fp8, fp8, 8, 256, 384); // gate and partner, each in blocks of its own
    check(KernelSpec("swiglu").output("q", fp8, silu(columns(both, 0, 100)) * columns(both, 128, 100)), to, ++seed, 7);
  }
}

TEST_CASE("weights of 4 bits: types, groups, methods, tails") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    for (const DType type : {f16, bf16}) {
      CAPTURE(fmt::format("{} {}", arch, to_string(type)));
      check(packed(type, 16, 77, 1056, 128), to, 1, 13); // tails of n, of k and of groups
      check(packed(type, 8, 64, 512, 32), to, 2, 8);
      check(packed(type, 3, 33, 480, 96), to, 3, 3); // groups that steps do not divide
      check(packed(type, 33, 48, 768, 256), to, 4, 30, {"tile_n=16"});
      check(packed(type, 1, 1, 32, 64), to, 5, 1);
      check(packed(type, 8, 100, 672, 64), to, 6, 5, {"method=sparse", "tile_n=32", "stages=2"});
      check(packed(type, 8, 100, 1024, 64), to, 9, 5, {"method=sparse", "tile_n=32", "loads=2", "stages=2"});
      check(packed(type, 4, 80, 1056, 64), to, 7, 3, {"method=dot", "tile_n=16", "stages=1"});
      check(packed(type, 40, 96, 352, 32), to, 8, 35, {"method=matrix32", "loads=2", "stages=1", "tile_n=32"});
    }
  }
}

TEST_CASE("weights of 4 bits: every m, workgroups that cross tiles, columns") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t seed = 40;
    CAPTURE(arch);
    for (const std::int64_t m : {2, 5, 12, 17, 48, 64}) check(packed(f16, m, 49, 288, 128), to, ++seed, m);
    for (const char* workgroups : {"workgroups=1", "workgroups=5", "workgroups=11"})
      check(packed(bf16, 8, 96, 2048, 128), to, ++seed, 8, {workgroups, "stages=2", "tile_n=32", "waves=2"});
    const Expr both = packed(f16, 8, 96, 256, 64).outputs()[0].value;
    check(KernelSpec("pair").output("c", f16, columns(both, 0, 45) * columns(both, 51, 45)), to, ++seed, 7);
  }
}

TEST_CASE("weights of 4 bits: scales of four groups a load") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t seed = 100;
    CAPTURE(arch);
    // 11 or 22 groups: the last loads of a row begin before their first group. Steps of a wave begin at any group.
    for (const std::int64_t group : {64, 128})
      for (const char* ring : {"stages=1", "stages=3", "stages=5"}) {
        check(packed(f16, 13, 50, 1408, group), to, ++seed, 11, {ring, "tile_n=32", "workgroups=3", "waves=2"});
        check(packed(bf16, 40, 32, 1408, group), to, ++seed, 40, {ring, "tile_n=16", "workgroups=2", "waves=2"});
      }
    check(packed(f16, 64, 33, 2048, 128), to, ++seed, 64);
    check(packed(f16, 8, 20, 512, 128), to, ++seed, 8, {"tile_n=16", "loads=2", "stages=2", "waves=1"}); // no more than one load a row
    check(packed(f16, 8, 48, 1408, 64), to, ++seed, 8, {"method=sparse", "stages=3"});
    check(packed(f16, 3, 48, 1408, 128, true), to, ++seed, 3, {"method=dot", "tile_n=16", "stages=2"});
    for (const std::int64_t group : {32, 64})
      check(packed(f16, 40, 64, 704, group), to, ++seed, 37, {"method=matrix32", "tile_n=32", "stages=2"});
    const Expr both = packed(f16, 8, 96, 1408, 128).outputs()[0].value;
    check(KernelSpec("pair").output("c", f16, columns(both, 0, 45) * columns(both, 51, 45)), to, ++seed, 7);
  }
}

TEST_CASE("32x32 matrix instructions") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const DType e4 = to.fp8_e4m3(), e5 = to.fp8_e5m2();
    const std::pair<DType, DType> types[] = {{e4, e4},     {e4, e5}, {e5, e4},  {e5, e5},  {f16, f16},
                                             {bf16, bf16}, {i8, i8}, {f16, e4}, {bf16, i8}};
    std::uint64_t seed = 60;
    for (const auto& [a, b] : types) {
      CAPTURE(fmt::format("{} {} x {}", arch, to_string(a), to_string(b)));
      check(plain(a, b, 40, 100, 400), to, ++seed, 33, {"method=matrix32", "loads=1", "stages=2"});
    }
    CAPTURE(arch);
    for (const std::int64_t m : {1, 17, 32, 64})
      check(plain(e4, e4, m, 161, 336), to, ++seed, m, {"method=matrix32", "loads=2", "tile_n=32", "stages=2"});
    // A workgroup a tile: 48 rows whose sums meet take too many SGPRs, and LLVM spills.
    check(plain(e4, e4, 48, 161, 336), to, ++seed, 48, {"method=matrix32", "loads=2", "tile_n=32", "stages=2", "workgroups=6"});
    check(plain(e4, e4, 32, 96, 1024), to, ++seed, 32, {"method=matrix32", "loads=4", "tile_n=32", "stages=2", "workgroups=5"});
  }
}

TEST_CASE("preshuffled weights") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const DType fp8 = to.fp8();
    CAPTURE(arch);
    check(plain(fp8, fp8, 16, 161, 336, true), to, 80, 13);
    check(plain(f16, f16, 16, 96, 1024, true), to, 81, 16, {"workgroups=5", "tile_n=32"});
    check(plain(bf16, fp8, 8, 100, 400, true), to, 82, 5, {"method=sparse", "loads=1"});
    check(plain(fp8, fp8, 40, 100, 400, true), to, 83, 33, {"method=matrix32", "loads=2", "stages=2", "tile_n=32"});
    check(plain(fp8, fp8, 4, 100, 400, true), to, 84, 3, {"method=dot", "tile_n=32", "stages=2", "loads=1"});
    check(plain(f16, f16, 3, 100, 520, true), to, 85, 2, {"method=dot", "tile_n=16", "stages=2"});
    check(block_scaled(fp8, fp8, 16, 161, 656, true), to, 86, 13);
    check(block_scaled(fp8, fp8, 4, 100, 656, true), to, 87, 4, {"method=dot", "tile_n=32", "stages=2", "loads=1"});
    check(packed(f16, 16, 77, 1056, 128, true), to, 88, 13);
    check(packed(bf16, 2, 77, 1056, 64, true), to, 89, 2, {"method=dot", "tile_n=16", "stages=2", "loads=1"});
    const Expr both = matmul_nt(matrix("a", fp8, {rows_to(8), 256}), matrix("b", fp8, {100, 256}, true));
    check(KernelSpec("pair").output("c", f16, columns(both, 0, 50) * columns(both, 48, 50)), to, 90, 7);
  }
}

namespace {

// The zero bytes of the workspace that every launch must find: all of it with atomics, else the counters.
std::size_t zeros_needed(const GemmConfig& c) {
  return static_cast<std::size_t>(c.atomics ? c.workspace_bytes() : 4ll * c.shared().first_generation());
}

// Whether every workgroup has counted the launches.
bool has_generation(std::span<const std::byte> workspace, const GemmConfig& c, std::byte launches) {
  for (int g = 0; c.publishes() && g < c.workgroups; ++g)
    if (workspace[static_cast<std::size_t>(4 * (c.shared().first_generation() + g))] != launches) return false;
  return true;
}

// Three launches of `rows` rows on one workspace, for several interleavings. Returns the bits of the first output of each seed.
std::vector<std::vector<std::uint32_t>> launches_of(const KernelSpec& spec, std::int64_t rows, const Target& to, const Settings& settings) {
  CompileOptions compile = own_process_options(process_environment());
  const BuiltKernel built = build_kernel(spec, to, compile, settings);
  REQUIRE(std::get<GemmConfig>(built.schedule.config).splits());
  const Inputs inputs = random_inputs(spec, 31, {.dynamic_size = rows});
  const auto bounds = evaluate_bounds(spec, inputs, bounds_options(built.schedule));
  std::vector<std::vector<std::uint32_t>> results;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const EmulatedRun done =
        emulate(spec, built.source, built.object, inputs, {.seed = seed, .measure = testing::compares_everything()}, 3);
    CHECK(done.result.defects.empty());
    CHECK(testing::disagreement_if_asked(built.object, done.result) == "");
    CHECK(done.result.completed);
    const auto wrong = find_mismatch(done.outputs, bounds);
    CHECK_MESSAGE(!wrong, (wrong ? to_text(*wrong) : ""));
    REQUIRE(done.workspace.size() == static_cast<std::size_t>(built.source.workspace_bytes));
    const std::span workspace(done.workspace);
    CHECK(std::ranges::all_of(workspace.first(zeros_needed(std::get<GemmConfig>(built.schedule.config))),
                              [](std::byte b) { return b == std::byte{0}; }));
    CHECK(has_generation(workspace, std::get<GemmConfig>(built.schedule.config), std::byte{3}));
    results.emplace_back();
    const Tensor& c = done.outputs.at(spec.outputs().front().name);
    for (std::int64_t i = 0; i < c.size(); ++i) results.back().push_back(static_cast<std::uint32_t>(c.bits(i)));
  }
  return results;
}

} // namespace

TEST_CASE("sums that meet in a workspace: launch after launch, in fixed order or by atomics") {
  for (const std::string_view arch : known_archs()) {
    CAPTURE(arch);
    const Target to = target(arch);
    const KernelSpec spec = plain(to.fp8(), to.fp8(), 16, 160, 1536);
    const auto fixed = launches_of(spec, 9, to, {"workgroups=11", "tile_n=32"});
    for (const auto& other : fixed) CHECK(other == fixed.front());
    launches_of(spec, 9, to, {"workgroups=11", "tile_n=32", "atomics=1"});
    launches_of(spec, 9, to, {"workgroups=20", "tile_n=64", "atomics=1", "waves=2"});
  }
}

// With one token most workgroups leave before they know which expert it goes to, and count the launch all the same.
TEST_CASE("sums of experts that meet in a workspace: launch after launch, of all tokens and of few") {
  const Target to = target("gfx942");
  const KernelSpec spec = catalog_spec("grouped_gemm", {.dtype = bf16, .top = 2, .m = 16, .n = 128, .k = 1024, .experts = 6});
  for (const std::int64_t tokens : {1, 16}) {
    const auto fixed = launches_of(spec, tokens, to, {"tile_n=32"});
    for (const auto& other : fixed) CHECK(other == fixed.front());
  }
}

} // namespace gemm_types_numeric
