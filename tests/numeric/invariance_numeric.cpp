// Batch invariance, executed: a row's bits are the same alone, in batches of any size, with every bound, beside any neighbours.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <map>
#include <random>

namespace invariance_numeric {
using namespace kiln;
using testing::compares_everything;
using testing::runs_in_slice;

namespace {

// Kernels that differ in the bound of rows; 0: none, or the largest.
struct Case {
  std::string name;
  std::function<KernelSpec(std::int64_t bound)> spec;
  std::vector<std::int64_t> bounds, sizes;                                                  // of rows; of launches
  std::vector<std::vector<std::string>> settings = {{}};                                    // schedules: kernels with each
  std::function<void(Inputs& of_launch, std::span<const std::int64_t> rows)> complete = {}; // what depends on which rows there are
};

// Tensors of rows have the rows of the launch in front. Others are what all rows read.
bool has_rows(const Tensor& t, std::int64_t rows) { return !t.shape().empty() && t.shape()[0] == rows; }

void copy_row(const Tensor& from, std::int64_t row, Tensor& to, std::int64_t at) {
  REQUIRE(from.row(row).size() == to.row(at).size());
  std::ranges::copy(from.row(row), to.row(at).begin());
}

// Rows of `all` in these places of a launch; what all rows read stays.
Inputs picked(const Inputs& all, std::int64_t of_all, std::span<const std::int64_t> rows, const Case& c) {
  Inputs some = all;
  for (auto& [name, tensor] : some.tensors) {
    if (!has_rows(tensor, of_all)) continue;
    const Tensor& from = all.tensors.at(name);
    std::vector<std::int64_t> shape = from.shape();
    shape[0] = std::ssize(rows);
    tensor = Tensor(from.dtype(), shape);
    for (std::int64_t i = 0; i < std::ssize(rows); ++i) copy_row(from, rows[static_cast<std::size_t>(i)], tensor, i);
  }
  if (c.complete) c.complete(some, rows);
  return some;
}

std::vector<std::byte> bits_of(const Outputs& outputs, std::int64_t row) {
  std::vector<std::byte> bytes;
  for (const auto& [name, tensor] : outputs) bytes.insert(bytes.end(), tensor.row(row).begin(), tensor.row(row).end());
  return bytes;
}

BuiltKernel build(const KernelSpec& spec, const Target& to, const std::vector<std::string>& settings) {
  return build_kernel(spec, to, own_process_options(process_environment()), settings);
}

Outputs launched(const KernelSpec& spec, const BuiltKernel& kernel, const Inputs& inputs) {
  const EmulatedRun run = emulate(spec, kernel.source, kernel.object, inputs);
  REQUIRE_MESSAGE(run.result.defects.empty(), (run.result.defects.empty() ? "" : exec::to_text(run.result.defects.front())));
  REQUIRE(run.result.completed);
  return run.outputs;
}

// What differs; empty when nothing does. Rows out of one set, of which every third has infinities and NaN, are launched in any order, by
// kernels of all bounds; each must have the bits that it has elsewhere.
std::string difference(const Case& c, const Target& to, std::uint64_t seed) {
  constexpr std::int64_t of_all = 29; // rows to choose from, as often as it comes: no size of anything else
  const KernelSpec widest = c.spec(0);
  Inputs all = random_inputs(widest, seed, {.dynamic_size = of_all, .sizes = {{"pages_of_all", 71}}});
  const Inputs special =
      random_inputs(widest, seed + 1, {.dynamic_size = of_all, .sizes = {{"pages_of_all", 71}}, .values = InputValues::special});
  for (auto& [name, tensor] : all.tensors)
    if (has_rows(tensor, of_all))
      for (std::int64_t row = 2; row < of_all; row += 3) copy_row(special.tensors.at(name), row, tensor, row);
  std::map<std::int64_t, std::pair<std::vector<std::byte>, std::string>> known; // by row
  std::mt19937_64 random(seed);
  const auto compare = [&](std::int64_t bound, const std::vector<std::string>& settings) -> std::string {
    const KernelSpec spec = c.spec(bound);
    const BuiltKernel kernel = build(spec, to, settings);
    for (const std::int64_t size : c.sizes) {
      if (bound > 0 && size > bound) continue;
      std::vector<std::int64_t> rows;
      while (std::ssize(rows) < size) rows.push_back(static_cast<std::int64_t>(random() % of_all));
      const Outputs outputs = launched(spec, kernel, picked(all, of_all, rows, c));
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t row = rows[static_cast<std::size_t>(i)];
        const std::string where = fmt::format("row {} in place {} of {}, bound {}, {}", row, i, size, bound, to_text(kernel.schedule));
        const auto [first, is_new] = known.try_emplace(row, bits_of(outputs, i), where);
        if (!is_new && first->second.first != bits_of(outputs, i)) return fmt::format("{}and {} differ", first->second.second, where);
      }
    }
    return {};
  };
  for (const std::int64_t bound : c.bounds)
    for (const auto& settings : c.settings)
      if (std::string wrong = compare(bound, settings); !wrong.empty()) return wrong;
  return {};
}

void check(const Case& c, const Target& to, std::uint64_t seed) {
  if (!runs_in_slice(to, seed)) return;
  CAPTURE(fmt::format("{} {}", to.arch(), c.name));
  const std::string wrong = difference(c, to, seed);
  CHECK_MESSAGE(wrong.empty(), wrong);
}

using Numbers = std::vector<std::int64_t>;
Numbers sizes() { return compares_everything() ? Numbers{1, 1, 2, 3, 7, 16, 64, 128} : Numbers{1, 9, 40}; }
Numbers bounds_of_m() { return compares_everything() ? Numbers{1, 2, 3, 7, 16, 32, 64, 128} : Numbers{1, 48}; }

KernelSpec catalog(std::string_view name, CatalogOptions options, std::int64_t bound) {
  options.m = bound == 0 ? 128 : bound;
  options.max_rows = bound;
  return catalog_spec(name, options);
}

Case product(std::string_view name, const CatalogOptions& options) {
  return {.name = fmt::format("{} {} {} x {}", name, to_string(options.dtype), options.n, options.k),
          .spec = [=](std::int64_t bound) { return catalog(name, options, bound); },
          .bounds = bounds_of_m(),
          .sizes = sizes()};
}

// Products of a kernel's own text: two of one launch; groups of columns that an epilogue reduces in its tiles; a norm in front and behind.
Case written(std::string_view name, const std::function<KernelSpec(const Dim& m)>& spec, Numbers bounds) {
  return {.name = std::string(name),
          .spec = [=](std::int64_t bound) { return spec(dynamic("m", 1, bound == 0 ? 128 : bound)); },
          .bounds = std::move(bounds),
          .sizes = sizes()};
}
KernelSpec two_products(const Dim& m) {
  const Expr a = input("a", f16, {m, 512}), other = input("other", f16, {m, 1024});
  return KernelSpec("two_products")
      .output("c", f16, matmul_nt(a, input("b", f16, {64, 512})))
      .output("d", f16, matmul_nt(other, input("b2", f16, {96, 1024})));
}
KernelSpec product_beside_rows(const Dim& m) {
  const Expr a = input("a", f16, {m, 512}), x = input("x", f16, {m, 2048});
  return KernelSpec("product_beside_rows")
      .output("c", f16, matmul_nt(a, input("b", f16, {64, 512})))
      .output("y", f16, x * rsqrt(row_mean(x * x) + 1e-5));
}
KernelSpec groups_behind(const Dim& m) {
  const Expr product = matmul_nt(input("a", bf16, {m, 1024}), input("b", bf16, {128, 1024}));
  return KernelSpec("groups_behind").output("c", bf16, product).output("squares", f32, group_sum(product * product, 64));
}
KernelSpec rows_behind(const Dim& m) {
  const Expr product = matmul_nt(input("a", bf16, {m, 1024}), input("b", bf16, {96, 1024}));
  return KernelSpec("rows_behind").output("c", bf16, product * rsqrt(row_mean(product * product) + 1e-5));
}

// Rows have experts of their own, with which pairs are sorted anew in every launch.
Case grouped(std::string_view name, const CatalogOptions& options) {
  Case c = product(name, options);
  c.complete = [=](Inputs& inputs, std::span<const std::int64_t> rows) {
    Tensor &order = inputs.tensors.at("order"), &offsets = inputs.tensors.at("offsets");
    std::int64_t place = 0;
    for (std::int64_t expert = 0; expert < options.experts; ++expert) {
      offsets.set_bits(expert, static_cast<std::uint64_t>(place));
      for (std::int64_t i = 0; i < std::ssize(rows); ++i)
        for (std::int64_t rank = 0; rank < options.top; ++rank) // row 5 and its like crowd at few experts
          if (const std::int64_t row = rows[static_cast<std::size_t>(i)]; (row % 5 * rank + row % 3 + rank) % options.experts == expert)
            order.set_bits(place++, static_cast<std::uint64_t>(i * options.top + rank));
    }
    offsets.set_bits(options.experts, static_cast<std::uint64_t>(place));
  };
  return c;
}

// Sequences have lengths of their own.
Case attention(std::string_view name, const CatalogOptions& options) {
  return {.name = fmt::format("{} {} of {}", name, options.heads, options.d),
          .spec = [=](std::int64_t) { return catalog_spec(name, options); },
          .bounds = {0},
          .sizes = compares_everything() ? Numbers{1, 1, 2, 3, 7, 16} : Numbers{1, 5},
          .settings = {{}, {"workgroups=5"}}}; // which take several parts each, of one or more sequences
}

} // namespace

TEST_CASE("batch-invariant rows") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch).with_batch_invariance();
    std::uint64_t seed = 0;
    for (const auto& [name, cols] : {std::pair{"rmsnorm", 4096},
                                     {"softmax", 1000},
                                     {"add_rmsnorm_quant", 16384},
                                     {"layernorm", 333},
                                     {"silu_mul", 512},
                                     {"topk_softmax", 256},
                                     {"group_quant", 1024},
                                     {"mx_quant", 1024},
                                     {"qk_norm", 128}}) {
      const Case c{.name = fmt::format("{} {}", name, cols),
                   .spec = [=](std::int64_t bound) { return catalog(name, {.cols = cols, .fp8 = to.fp8(), .top = 4}, bound); },
                   .bounds = {0, 1, 8, 200},
                   .sizes = sizes()};
      check(c, to, ++seed);
    }
  }
}

TEST_CASE("batch-invariant products") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch).with_batch_invariance();
    const DType fp8 = to.fp8();
    std::uint64_t seed = 100;
    for (const DType type : {f16, bf16, fp8, DType(i8)}) {
      check(product("gemm", {.dtype = type, .n = 96, .k = 1024}), to, ++seed);
      check(product("gemm_residual", {.dtype = type, .n = 80, .k = 528}), to, ++seed);
    }
    check(product("gemm", {.dtype = f32, .n = 48, .k = 256}), to, ++seed);
    Case swiglu = product("gemm_swiglu_quant", {.dtype = f16, .fp8 = fp8, .n = 64, .k = 512});
    std::erase(swiglu.bounds, 128); // LDS of gfx942 has no room for them, batch-invariant or not
    check(swiglu, to, ++seed);
    for (const DType type : {f16, bf16}) {
      check(product("gemm_w8a16", {.dtype = type, .fp8 = fp8, .n = 64, .k = 768}), to, ++seed);
      check(product("gemm_w_mxfp4", {.dtype = type, .n = 64, .k = 512}), to, ++seed);
      check(product("gemm_dynamic_quant", {.dtype = type, .fp8 = fp8, .n = 64, .k = 1024}), to, ++seed);
      for (const std::int64_t group : {32, 128})
        check(product("gemm_w4a16", {.dtype = type, .group = group, .n = 64, .k = 1024}), to, ++seed);
    }
    for (const DType type : {e2m1, e4m3fn}) check(product("gemm_mx", {.dtype = bf16, .mx = type, .n = 64, .k = 512}), to, ++seed);
    check(product("gemm_block_scaled", {.dtype = bf16, .fp8 = fp8, .n = 128, .k = 512}), to, ++seed);
    check(product("router", {.dtype = bf16, .top = 4, .n = 64, .k = 512}), to, ++seed);
    check(product("gemm", {.dtype = fp8, .n = 5120, .k = 256}), to, ++seed); // workgroups with several tiles
    check(written("two products", two_products, {1, 16, 48}), to, ++seed);
    check(written("a product beside rows", product_beside_rows, bounds_of_m()), to, ++seed);
    check(written("rows behind a product", rows_behind, bounds_of_m()), to, ++seed);
    check(written("groups behind a product", groups_behind, {1, 16, 48}), to, ++seed); // of more rows LDS has no room for four waves' sums
  }
}

TEST_CASE("batch-invariant products of experts") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch).with_batch_invariance();
    std::uint64_t seed = 200;
    const CatalogOptions few{.dtype = bf16, .fp8 = to.fp8(), .top = 2, .n = 64, .k = 512, .experts = 6};
    for (const char* name : {"grouped_gemm", "grouped_gemm_swiglu", "grouped_gemm_sum"}) {
      CatalogOptions options = few;
      check(grouped(name, options), to, ++seed);
      options.weights = e2m1;
      check(grouped(name, options), to, ++seed);
      options.weights = f32, options.dtype = to.fp8(), options.n = 128;
      check(grouped(name, options), to, ++seed);
    }
  }
}

TEST_CASE("schedules that are not batch-invariant are named so, and give other bits") {
  const Target any = target("gfx942"), wanted = any.with_batch_invariance();
  const auto named = [&](const KernelSpec& spec) {
    const Plan plan = make_plan(spec, any);
    const SumOrder own = sum_order(plan, choose_schedule(plan, any), any);
    return !own.depends_on.empty() || own != invariant_order(plan, any);
  };
  const auto rows = [](std::int64_t bound) { return catalog("rmsnorm", {.cols = 4096}, bound); };
  CHECK(named(catalog("rmsnorm", {.cols = 16384}, 1))); // a cluster
  CHECK(difference({.name = "", .spec = rows, .bounds = {0, 8}, .sizes = {8, 8, 8, 8, 8}}, any, 1).find("differ") != std::string::npos);
  CHECK(difference({.name = "", .spec = rows, .bounds = {0, 8}, .sizes = {8, 8, 8, 8, 8}}, wanted, 1).empty());

  const Case experts = grouped("grouped_gemm", {.dtype = bf16, .top = 2, .n = 64, .k = 512, .experts = 6});
  CHECK(named(experts.spec(16)));
  CHECK(difference(experts, any, 2).find("differ") != std::string::npos);
  Case sequences = attention("attention_decode", {.dtype = f16, .heads = 4, .kv_heads = 1, .d = 64, .length = 1500});
  sequences.settings = {{}}, sequences.sizes = {1, 24};
  CHECK(named(sequences.spec(0)));
  CHECK(difference(sequences, any, 3).find("differ") != std::string::npos);
}

TEST_CASE("batch-invariant attention") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch).with_batch_invariance();
    std::uint64_t seed = 300;
    check(attention("attention_decode", {.dtype = f16, .heads = 4, .kv_heads = 1, .d = 64, .length = 1500}), to, ++seed);
    check(attention("attention_decode",
                    {.dtype = bf16, .fp8 = to.fp8(), .heads = 8, .kv_heads = 2, .d = 128, .length = 700, .cache = to.fp8()}),
          to, ++seed);
    check(attention("attention_decode", {.dtype = bf16, .heads = 16, .kv_heads = 1, .d = 576, .length = 600}), to, ++seed);
    check(attention("attention_paged", {.dtype = f16, .heads = 4, .kv_heads = 1, .d = 128, .length = 900, .page = 16}), to, ++seed);
  }
}

} // namespace invariance_numeric
