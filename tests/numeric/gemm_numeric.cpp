// Skinny GEMMs, executed: every method and type, awkward m, n and k, epilogues, interleavings.
#include "gen/error.h"
#include "gen/reference/random.h"
#include "gen/spec/math.h"
#include "isa_checks/object/code_object.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gemm_numeric {
using namespace kiln;

namespace {

struct Types {
  DType a, b;
};

// The types that `to` multiplies.
std::vector<Types> types_of(const Target& to) {
  const DType e4 = to.fp8_e4m3(), e5 = to.fp8_e5m2();
  return {{e4, e4}, {e4, e5},  {e5, e4},  {e5, e5},  {f16, f16}, {bf16, bf16},
          {i8, i8}, {f16, e4}, {f16, e5}, {f16, i8}, {bf16, e4}, {bf16, i8}};
}

KernelSpec plain(Types t, std::int64_t most, std::int64_t n, std::int64_t k) {
  const Expr a = input("a", t.a, {dynamic("m", 1, most), k}), b = input("b", t.b, {n, k});
  return KernelSpec("gemm").output("c", f32, matmul_nt(a, b));
}

void check(const KernelSpec& spec, const Target& to, std::uint64_t seed, std::int64_t m, const std::vector<std::string>& settings = {}) {
  if (!testing::runs_in_slice(to, seed)) return;
  const auto wrong = testing::check_kernel(spec, to, seed, {.rows = m, .settings = settings});
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

} // namespace

TEST_CASE("every type and method of a product") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t seed = 0;
    for (const Types t : types_of(to)) {
      CAPTURE(fmt::format("{} {} x {}", arch, to_string(t.a), to_string(t.b)));
      check(plain(t, 16, 96, 512), to, ++seed, 13);
      check(plain(t, 8, 100, 400), to, ++seed, 5, {"method=sparse", "loads=1"});
      check(plain(t, 4, 80, 1040), to, ++seed, 3, {"method=dot", "tile_n=16", "stages=2", "loads=1"});
    }
  }
}

// One infinity in A or B: every result it reaches is infinite by every method but sparse, which may multiply an infinity of B by 0.
TEST_CASE("infinities of one operand") {
  for (const std::string_view arch : known_archs())
    for (std::uint64_t point = 0; const DType type : {f16, bf16})
      for (const char* method : {"method=matrix", "method=sparse"})
        for (const auto& [m, most] : {std::pair{2, 4}, std::pair{5, 8}})
          for (const char* name : {"a", "b"}) {
            if (!testing::runs_in_slice(target(arch), ++point)) continue;
            CAPTURE(fmt::format("{} {} {} m {} in {}", arch, to_string(type), method, m, name));
            const KernelSpec spec = plain({type, type}, most, 32, 400);
            CompileOptions compile = own_process_options(process_environment());
            const BuiltKernel built = build_kernel(spec, target(arch), compile, {method, "loads=1"});
            Inputs inputs = random_inputs(spec, 3, {.dynamic_size = m});
            inputs.tensors.at(name).set(400 + 5, INFINITY);
            const EmulatedRun done = emulate(spec, built.source, built.object, inputs);
            const auto bounds = evaluate_bounds(spec, inputs, bounds_options(built.schedule));
            const auto wrong = find_mismatch(done.outputs, bounds);
            CHECK_MESSAGE(!wrong, (wrong ? to_text(*wrong) : std::string()));
            const bool may_be_nan = std::ranges::any_of(bounds.at("c").ranges, &Range::maybe_nan);
            CHECK(may_be_nan == (std::string_view(method) == "method=sparse" && *name == 'b'));
          }
}

TEST_CASE("every m, with odd n and tails of k") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t seed = 10;
    for (const std::int64_t m : {1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 48, 64}) {
      CAPTURE(fmt::format("{} m {}", arch, m));
      check(plain({to.fp8(), to.fp8()}, m, 161, 336), to, ++seed, m);
      check(plain({f16, f16}, m, 77, 264), to, ++seed, m);
    }
    check(plain({to.fp8(), to.fp8()}, 16, 1, 16), to, ++seed, 7); // the smallest
    check(plain({bf16, bf16}, 1, 3, 8), to, ++seed, 1);
  }
}

TEST_CASE("workgroups that have parts of several tiles") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t seed = 0;
    for (const char* workgroups : {"workgroups=1", "workgroups=3", "workgroups=7", "workgroups=13", "workgroups=16"})
      for (const char* ring : {"stages=1", "stages=3"}) {
        CAPTURE(fmt::format("{} {} {}", arch, workgroups, ring));
        check(plain({to.fp8(), to.fp8()}, 8, 96, 1024), to, ++seed, 8, {workgroups, ring, "tile_n=32"});
        check(plain({f16, f16}, 8, 96, 520), to, ++seed, 7, {workgroups, ring, "tile_n=16", "waves=2"});
      }
  }
}

TEST_CASE("epilogues of products") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const DType fp8 = to.fp8();
    const Dim m = dynamic("m", 1, 16);
    const std::int64_t n = 96, k = 256;
    const Expr a = input("a", fp8, {m, k}), b = input("b", fp8, {n, k});
    const Expr product = matmul_nt(a, b) * input("a_scale", f32, {m, 1}) * input("b_scale", f32, {n});
    const Expr residual = input("residual", f16, {m, n}, Layout::strided);
    KernelSpec residual_add("gemm_residual");
    residual_add
        .output("c", f16, silu(product + input("bias", f16, {n})) + residual, {.in_place_of = "residual", .layout = Layout::strided})
        .output("q", fp8, product * scalar("inverse"));
    check(residual_add, to, 21, 11);

    const Expr both = matmul_nt(a, input("w", fp8, {2 * n, k}));
    const Expr scale = input("scale", f32, {});
    KernelSpec swiglu("gemm_swiglu_quant");
    swiglu.output("q", fp8, silu(columns(both, 0, n) * scale) * (columns(both, n, n) * scale) / input("out_scale", f32, {}));
    check(swiglu, to, 22, 16);

    KernelSpec pair("pair"); // two matrices, and a product that two outputs use
    const Expr other = matmul_nt(a, input("v", fp8, {n, k}));
    pair.output("sum", bf16, product + other).output("product", f32, product).output("larger", boolean, product > other);
    check(pair, to, 23, 3);
    check(plain({fp8, fp8}, 16, n, k), to, 24, 16, {"vec=8", "workgroups=2", "tile_n=128", "waves=2"});
  }
}

TEST_CASE("the same bits whatever the interleaving") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const KernelSpec spec = plain({f16, f16}, 16, 160, 1536);
    CompileOptions compile = own_process_options(process_environment());
    const BuiltKernel built = build_kernel(spec, to, compile, {"workgroups=11", "tile_n=32"});
    const Inputs inputs = random_inputs(spec, 31, {.dynamic_size = 9});
    const auto wrong = testing::check_orders(spec, built, inputs, {.launches = 2, .side_by_side = true}); // workgroups wait then
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

// Only the last workgroup runs, and only the end of the matrix is there: what it reads lies beyond 4 GiB of b's address.
TEST_CASE("weights of more than 4 GiB") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const std::int64_t n = 400'000, k = 16384, m = 2, there = 4000; // 6.1 GiB of weights, and the rows that are there
    CompileOptions compile = own_process_options(process_environment());
    // A multiple of the XCDs, so that the last workgroup has the last steps.
    const BuiltKernel built = build_kernel(plain({to.fp8(), to.fp8()}, m, n, k), to, compile, {"workgroups=256"});
    const GemmConfig& c = std::get<GemmConfig>(built.schedule.config);
    REQUIRE(c.steps() / c.workgroups > 2 * c.steps_per_tile()); // so that the last workgroup has whole tiles
    Random random(1);
    exec::Memory memory;
    const auto fill = [&](const char* what, std::int64_t rows) {
      const std::uint64_t address = memory.allocate(what, static_cast<std::size_t>(rows * k));
      for (std::byte& byte : memory.bytes(address)) byte = static_cast<std::byte>(random.between(0x30, 0x44)); // moderate, positive
      return address;
    };
    const std::uint64_t a = fill("a", m), b = fill("b", there);
    const std::uint64_t out = memory.allocate("c", static_cast<std::size_t>(m * n * 4));
    const std::uint64_t workspace = memory.allocate("workspace", static_cast<std::size_t>(built.source.workspace_bytes));
    std::vector<std::byte> arguments;
    const auto put = [&](const char* name, std::uint64_t value) {
      const auto found = std::ranges::find_if(built.source.arguments, [&](const KernelArgument& arg) { return arg.name == name; });
      REQUIRE(found != built.source.arguments.end());
      arguments.resize(std::max(arguments.size(), static_cast<std::size_t>(found->offset + found->size)));
      std::memcpy(&arguments[static_cast<std::size_t>(found->offset)], &value, static_cast<std::size_t>(found->size));
    };
    put("a", a);
    put("b", b - static_cast<std::uint64_t>((n - there) * k));
    put("c", out);
    put("workspace", workspace);
    put("m", static_cast<std::uint64_t>(m));
    const isa::CodeObject file = isa::load_code_object(built.object.bytes, built.object.name);
    const auto last = static_cast<std::uint32_t>(c.workgroups) - 1; // in order of steps too: of the last XCD
    const exec::ExecResult run =
        exec::execute(file, built.object.name,
                      {.workgroups = {1, 1, 1}, .workgroup_size = {static_cast<std::uint32_t>(c.threads()), 1, 1}, .first = {last, 0, 0}},
                      arguments, memory, {.threads = 1, .measure = false});
    CHECK_MESSAGE(run.defects.empty(), (run.defects.empty() ? "" : exec::to_text(run.defects.front())));
    REQUIRE(run.completed);
    const auto number = [&](std::uint64_t address, std::int64_t index) {
      return static_cast<double>(to_f32(to.fp8(), static_cast<std::uint32_t>(memory.bytes(address)[static_cast<std::size_t>(index)])));
    };
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t column = n - 3 * c.tile_n / 2; column < n; column += 7) {
        double sum = 0;
        for (std::int64_t i = 0; i < k; ++i) sum += number(a, row * k + i) * number(b, (column - (n - there)) * k + i);
        float found = 0;
        std::memcpy(&found, &memory.bytes(out)[static_cast<std::size_t>((row * n + column) * 4)], 4);
        CHECK(static_cast<double>(found) == doctest::Approx(sum).epsilon(1e-4));
      }
  }
}

} // namespace gemm_numeric
