// Phases, executed: rows of wide products that are reduced behind all tiles, and products of products. Launch after launch on one
// workspace, the same bits in twenty interleavings, and on devices that hold too few workgroups for those that wait.
#include "gen/catalog/catalog.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <numeric>

namespace phases_numeric {
using namespace kiln;

namespace {

struct Case {
  const char* name;
  KernelSpec spec;
};

const Dim m = dynamic("m", 1, 7);
constexpr std::int64_t n = 1088, k = 128;

Expr in(const char* name, Shape shape, DType type = bf16) { return input(name, type, std::move(shape)); }

// The residual stream, left in place, and its norm: sums of squares, then what is largest.
KernelSpec norm_quant(DType fp8) {
  const Expr h = cast(bf16, matmul_nt(in("a", {m, k}), in("b", {n, k})) + in("residual", {m, n}));
  const Expr y = h * rsqrt(row_mean(h * h) + 1e-5) * in("weight", {n});
  const Expr scale = row_absmax(y) / max_finite(fp8);
  return KernelSpec("norm_quant")
      .output("h_out", bf16, h, {.in_place_of = "residual"})
      .output("scale", f32, scale)
      .output("q", fp8, y / scale);
}

// A later phase overwrites what the first one reads, and an earlier output what both read.
KernelSpec in_place() {
  const Expr h = matmul_nt(in("a", {m, k}), in("b", {n, k})) + in("residual", {m, n}), other = in("other", {m, n});
  return KernelSpec("in_place")
      .output("y", bf16, h - row_mean(h), {.in_place_of = "residual"})
      .output("z", bf16, h + other, {.in_place_of = "other"})
      .output("most", f32, row_max(h * other));
}

// Two products, an input that is reduced alone, groups that no tile has whole, and running sums.
KernelSpec unlike() {
  const Expr a = in("a", {m, k}), both = matmul_nt(a, in("b", {2 * n, k}));
  const Expr gate = columns(both, 0, n), up = columns(both, n, n), p = exp(gate - row_max(gate));
  return KernelSpec("unlike")
      .output("p", f32, p / row_sum(p))
      .output("largest", f32, group_absmax(up, 512))
      .output("sum", f32, row_sum(in("x", {m, n}) * up));
}

// A product and an adapter's: x w^T + (x a^T) b^T; the scale of each row a row's adapter, out of three.
KernelSpec lora_by_row() {
  const Expr x = in("x", {m, k}), order = in("order", {m, 1}, i32), offsets = in("offsets", {4}, i32);
  const Expr shrunk = by_expert(matmul_nt(x, in("a", {3, 8, k})), order, offsets);
  const Expr added = sum_of_experts(matmul_nt(cast(bf16, shrunk), in("b", {3, n, 8})), order, offsets, in("scale", {m, 1}, f32));
  return KernelSpec("lora_by_row").output("y", bf16, matmul_nt(x, in("w", {n, k})) + added);
}
// The same adapter for all rows, in f32, and the result quantised: three phases.
KernelSpec lora_quant(DType fp8) {
  const Expr x = in("x", {m, k}), y = matmul_nt(x, in("w", {n, k})) + matmul_nt(matmul_nt(x, in("a", {64, k})), in("b", {n, 64}));
  const Expr scale = row_absmax(y) / max_finite(fp8);
  return KernelSpec("lora_quant").output("scale", f32, scale).output("q", fp8, y / scale);
}
// A layer of experts' kind: gate and up, what the second product multiplies and adds again, and a row sum in between.
KernelSpec feed_forward() {
  const Expr both = matmul_nt(in("x", {m, k}), in("w", {2 * n, k}));
  const Expr h = cast(bf16, silu(columns(both, 0, n)) * columns(both, n, n)), p = cast(bf16, h / (1 + row_absmax(h)));
  return KernelSpec("feed_forward").output("h", bf16, h).output("y", bf16, matmul_nt(p, in("down", {n, n})) + p);
}

std::vector<Case> cases(const Target& to) {
  CatalogOptions options{.dtype = bf16, .fp8 = to.fp8(), .m = 7, .n = n, .k = k};
  return {{"row quantisation", catalog_spec("gemm_gelu_residual_row_quant", options)},
          {"norm and quantisation", norm_quant(to.fp8())},
          {"outputs in place", in_place()},
          {"two products, groups and sums", unlike()},
          {"an adapter a row", lora_by_row()},
          {"an adapter, and row quantisation", lora_quant(to.fp8())},
          {"a product of a product", feed_forward()}};
}

// `change`: of the kernel's text; none without.
struct Change {
  std::string from, to;
};
BuiltKernel built(const KernelSpec& spec, const Target& to, const std::vector<Change>& changes = {}) {
  CompileOptions compile_options = own_process_options(process_environment());
  compile_options.warnings_as_errors = true;
  BuiltKernel kernel = build_kernel(spec, to, compile_options);
  REQUIRE(kernel.source.text.find("Handover") != std::string::npos);
  if (changes.empty()) return kernel;
  kernel.source.text = self_contained(kernel.source);
  for (const Change& change : changes) {
    const std::size_t at = kernel.source.text.find(change.from, kernel.source.text.find("class Handover"));
    REQUIRE(at != std::string::npos);
    kernel.source.text.replace(at, change.from.size(), change.to);
  }
  kernel.object = compile(kernel.source, to, compile_options);
  return kernel;
}

const Change impatient{"patience = 1024", "patience = 8"}; // the CPU model spends its time polling else

// Workgroups one at a time, the first ones last: most lose patience.
EmulatedRun one_by_one(const Case& c, const BuiltKernel& kernel, const Inputs& inputs) {
  std::vector<std::uint32_t> order(static_cast<std::size_t>(kernel.source.launch.blocks([](const std::string&) { return 7; })));
  std::iota(order.rbegin(), order.rend(), 0);
  return emulate_one_by_one(c.spec, kernel.source, kernel.object, inputs, order);
}

} // namespace

TEST_CASE("phases: the same bits in twenty interleavings, two launches each on one workspace") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    for (std::uint64_t point = 0; const Case& c : cases(to)) {
      if (!testing::runs_in_slice(to, ++point)) continue;
      CAPTURE(c.name);
      const auto wrong = testing::check_orders(c.spec, built(c.spec, to), random_inputs(c.spec, 5, {.dynamic_size = 5}),
                                               {.count = 20, .launches = 2, .side_by_side = true});
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    }
  }
}

TEST_CASE("phases: twenty launches on one workspace") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const KernelSpec spec = cases(to).front().spec;
    const auto wrong =
        testing::check_orders(spec, built(spec, to), random_inputs(spec, 6, {.dynamic_size = 7}), {.count = 2, .launches = 20});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

// Workgroups that wait fill the device, and those that they wait for find no room: places are given up, and the last one takes them.
TEST_CASE("phases: a device that is too small for those who wait, and other launches on it") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    for (std::uint64_t point = 0; const Case& c : cases(to)) {
      if (!testing::runs_in_slice(to, ++point)) continue;
      CAPTURE(c.name);
      const BuiltKernel kernel = built(c.spec, to, {impatient});
      std::vector<Inputs> inputs;
      for (std::uint64_t seed = 1; seed <= 2; ++seed) inputs.push_back(random_inputs(c.spec, seed, {.dynamic_size = 7}));
      const EmulatedBeside done = emulate_beside(c.spec, kernel.source, kernel.object, inputs, 1, {.measure = false});
      REQUIRE_MESSAGE(done.result.completed, (done.result.defects.empty() ? "" : exec::to_text(done.result.defects.front())));
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto wrong = find_mismatch(done.outputs[i], evaluate_bounds(c.spec, inputs[i], bounds_options(kernel.schedule)));
        CHECK_MESSAGE(!wrong, (wrong ? to_text(*wrong) : ""));
      }
    }
  }
}

// Nobody who waits has a partner then: all but the last one give up, or the results are not there.
TEST_CASE("phases: workgroups one at a time") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const Case c = cases(to)[arch == "gfx942" ? 5 : 4]; // three phases; an adapter a row
    const Inputs inputs = random_inputs(c.spec, 3, {.dynamic_size = 7});
    const auto bounds = [&](const BuiltKernel& kernel) { return evaluate_bounds(c.spec, inputs, bounds_options(kernel.schedule)); };
    const BuiltKernel kernel = built(c.spec, to, {impatient});
    const EmulatedRun run = one_by_one(c, kernel, inputs);
    for (const exec::Defect& defect : run.result.defects) CHECK_MESSAGE(false, exec::to_text(defect));
    REQUIRE(run.result.completed);
    CHECK(!find_mismatch(run.outputs, bounds(kernel)));
    const BuiltKernel forgetful = built(c.spec, to, {impatient, {"given_up_ = found >> 16", "given_up_ = 0"}});
    CHECK(find_mismatch(one_by_one(c, forgetful, inputs).outputs, bounds(forgetful)));
  }
}

TEST_CASE("phases: adapters of ranks 8 to 64, within their bounds") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    for (const std::int64_t rank : {8, 16, 64})
      for (const DType type : {bf16, f16}) {
        if (!testing::runs_in_slice(to, static_cast<std::uint64_t>(rank) + (type == f16 ? 1 : 0))) continue;
        const KernelSpec spec = catalog_spec("gemm_lora_add", {.dtype = type, .m = 16, .n = 1024, .k = 512, .rank = rank});
        const auto wrong = testing::check_kernel(spec, to, static_cast<std::uint64_t>(rank), {.rows = 9, .special_values = rank == 64});
        CHECK_MESSAGE(!wrong, wrong.value_or(""));
      }
  }
}

// n of a hidden and of a feed-forward layer.
TEST_CASE("phases: rows of 4096 and 28672 columns, within their bounds") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    for (const std::int64_t cols : {4096, 28672}) {
      const KernelSpec spec = catalog_spec("gemm_gelu_residual_row_quant", {.dtype = bf16, .fp8 = to.fp8(), .m = 16, .n = cols, .k = 128});
      const auto wrong = testing::check_kernel(spec, to, static_cast<std::uint64_t>(cols), {.rows = 5});
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    }
  }
}

} // namespace phases_numeric
