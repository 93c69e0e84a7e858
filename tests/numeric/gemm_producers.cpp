// Skinny GEMMs with waves that only load compute what the reference says: every type, awkward m, n and k, interleavings; and the race
// detector sees when the waves do not wait for one another.
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gemm_producers_tests {
using namespace kiln;

namespace {

using Settings = std::vector<std::string>;

KernelSpec plain(DType a_type, DType b_type, std::int64_t most, std::int64_t n, std::int64_t k) {
  const Expr a = input("a", a_type, {dynamic("m", 1, most), k}), b = input("b", b_type, {n, k});
  return KernelSpec("gemm").output("c", f32, matmul_nt(a, b));
}

void check(const KernelSpec& spec, const Target& to, std::uint64_t seed, std::int64_t m, const Settings& more = {}) {
  Settings settings = {"method=producers"};
  settings.insert(settings.end(), more.begin(), more.end());
  if (!testing::runs_in_slice(to, seed)) return;
  CAPTURE(to.arch());
  const auto wrong = testing::check_kernel(spec, to, seed, {.rows = m, .settings = settings});
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

BuiltKernel built(const KernelSpec& spec, const Target& to, const Settings& settings) {
  CompileOptions compile = own_process_options(process_environment());
  return build_kernel(spec, to, compile, settings);
}

// The findings of a kernel whose text, headers included, has `from` replaced by `to_text`.
std::vector<exec::Defect> findings_after(const KernelSpec& spec, const Target& to, const std::string& from, const std::string& to_text) {
  BuiltKernel kernel = built(spec, to, {"method=producers", "workgroups=2"});
  KernelSource source = kernel.source;
  source.text = self_contained(source);
  std::size_t at = source.text.find(from);
  REQUIRE((from.empty() || at != std::string::npos));
  for (; !from.empty() && at != std::string::npos; at = source.text.find(from, at + to_text.size()))
    source.text.replace(at, from.size(), to_text);
  CompileOptions compile = own_process_options(process_environment());
  const CodeObject object = kiln::compile(source, to, compile);
  const Inputs inputs = random_inputs(spec, 3, {.dynamic_size = 8});
  std::vector<exec::Defect> found;
  for (std::uint64_t seed = 1; seed <= 3 && found.empty(); ++seed)
    found = emulate(spec, source, object, inputs, {.seed = seed, .measure = false}).result.defects;
  return found;
}

bool has(const std::vector<exec::Defect>& findings, exec::DefectKind kind) {
  return std::ranges::count(findings, kind, &exec::Defect::kind) > 0;
}

} // namespace

TEST_CASE("producers: every type") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const DType e4 = to.fp8_e4m3(), e5 = to.fp8_e5m2();
    std::uint64_t seed = 0;
    for (const auto& [a, b] :
         {std::pair{e4, e4}, {e4, e5}, {e5, e4}, {e5, e5}, {f16, f16}, {bf16, bf16}, {i8, i8}, {f16, e4}, {f16, i8}, {bf16, e5}})
      check(plain(a, b, 16, 80, 1040), to, ++seed, 13);
  }
}

TEST_CASE("producers: m up to 64, odd n, tails of k") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t seed = 10;
    for (const std::int64_t m : {1, 8, 17, 32, 64}) check(plain(to.fp8(), to.fp8(), m, 161, 1040), to, ++seed, m);
    check(plain(f16, f16, 64, 77, 264), to, ++seed, 50);
    check(plain(bf16, bf16, 1, 1, 8), to, ++seed, 1);
  }
}

TEST_CASE("producers: workgroups that have parts of several tiles, and other numbers of waves") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const KernelSpec spec = plain(to.fp8(), to.fp8(), 8, 96, 1552);
    check(spec, to, 5, 8, {"workgroups=3", "tile_n=32", "stages=2", "slots=8"});
    check(spec, to, 6, 7, {"workgroups=7", "tile_n=16", "waves=3", "b_producers=1", "a_producers=1", "stages=2", "slots=2"});
    check(spec, to, 7, 5, {"workgroups=5", "tile_n=32", "waves=11", "b_producers=5", "a_producers=2", "stages=2", "slots=11", "loads=1"});
    check(spec, to, 8, 8, {"workgroups=1", "stages=1", "direct=0", "slots=4"}); // registers on both
    check(spec, to, 9, 8, {"workgroups=5", "tile_n=16", "stages=2", "loads=4", arch == "gfx950" ? "slots=8" : "slots=6", "atomics=1"});
  }
}

TEST_CASE("producers: pairs of products and an epilogue") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const Expr a = input("a", to.fp8(), {dynamic("m", 1, 16), 2048}), w = input("w", to.fp8(), {192, 2048});
    const Expr both = matmul_nt(a, w);
    KernelSpec swiglu("gemm_swiglu_quant");
    swiglu.output("q", to.fp8(), silu(columns(both, 0, 96) * input("scale", f32, {})) * columns(both, 96, 96));
    check(swiglu, to, 22, 16);
  }
}

TEST_CASE("producers: twenty interleavings give the same bits") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const KernelSpec spec = plain(to.fp8(), to.fp8(), 16, 96, 4096);
    const BuiltKernel kernel = built(spec, to, {"method=producers", "workgroups=5", "tile_n=32", "stages=2", "slots=8"});
    const Inputs inputs = random_inputs(spec, 31, {.dynamic_size = 9});
    const auto wrong = testing::check_orders(spec, kernel, inputs);
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

TEST_CASE("producers: waves that do not wait for one another race") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    CAPTURE(arch);
    const KernelSpec spec = plain(to.fp8(), to.fp8(), 8, 64, 8192);
    CHECK(findings_after(spec, to, "", "").empty());
    // The reader gives a slot back before it has read it.
    CHECK(has(findings_after(spec, to, "GemmSlot<multiplied, A, B> slot;",
                             "GemmSlot<multiplied, A, B> slot; platform::raise_flag<false>(&memory.free[at_.slot], at_.turn + 1);"),
              exec::DefectKind::lds_race));
    // The reader does not wait for B.
    CHECK(has(findings_after(spec, to, "Slots::await(memory.b[at_.slot], at_.turn + 1);", ""), exec::DefectKind::lds_race));
    if (to.has_wide_lds_dma()) // a slot is declared full while its loads are in flight
      CHECK(has(findings_after(spec, to, "platform::await_loads<(ring - 1) * loads>();", ""), exec::DefectKind::lds_race));
  }
}

TEST_CASE("producers: bad settings say what to do") {
  const Target old = target("gfx942");
  const KernelSpec spec = plain(old.fp8(), old.fp8(), 8, 64, 1024);
  CHECK_THROWS_WITH_AS(built(spec, old, {"method=producers", "direct=1"}), doctest::Contains("use direct=0"), UserError);
  CHECK_THROWS_WITH_AS(built(spec, old, {"method=producers", "slots=40"}), doctest::Contains("65536"), UserError);
  CHECK_THROWS_WITH_AS(built(spec, old, {"method=producers", "a_producers=0"}), doctest::Contains("needs waves that load A"), UserError);
  CHECK_THROWS_WITH_AS(built(spec, old, {"slots=4"}), doctest::Contains("only method producers"), UserError);
  const Expr x = input("x", f16, {dynamic("m", 1, 8), 1024});
  const Expr rows = input("a", old.fp8(), {dynamic("m", 1, 8), 1024}), weights = input("b", old.fp8(), {64, 1024});
  const Expr shuffled = input("b", old.fp8(), {64, 1024}, Layout::preshuffled);
  const Expr w4 = matmul_nt_w4(x, input("w", u8, {64, 512}), input("scale", f16, {64, 8}), input("zero", u8, {64, 8}), 128);
  const Expr scaled = matmul_nt_scaled(rows, weights, input("a_scale", f32, {dynamic("m", 1, 8), 8}), input("b_scale", f32, {1, 8}));
  for (const Expr& product : {w4, scaled, matmul_nt(rows, shuffled)})
    CHECK_THROWS_WITH_AS(built(KernelSpec("gemm").output("c", f32, product), old, {"method=producers"}),
                         doctest::Contains("without scales of groups and not preshuffled"), UserError);
  const Target young = target("gfx950");
  const KernelSpec other = plain(young.fp8(), young.fp8(), 8, 64, 1024);
  CHECK_THROWS_WITH_AS(built(other, young, {"method=producers", "slots=8"}), doctest::Contains("stages * b_producers"), UserError);
}

} // namespace gemm_producers_tests
