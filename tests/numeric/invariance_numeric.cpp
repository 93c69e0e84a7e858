// Batch invariance, executed: a row's bits are the same alone, in batches of any size, with every bound, beside any neighbours.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
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
using testing::runs_here;

namespace {

// Kernels that differ in the bound of rows; 0: none, or the largest.
struct Case {
  std::string name;
  std::function<KernelSpec(std::int64_t bound)> spec;
  std::vector<std::int64_t> bounds, sizes; // of rows; of launches
  std::vector<std::string> shared = {};    // inputs that all rows read
};

bool is_shared(const Case& c, const std::string& name) { return std::ranges::find(c.shared, name) != c.shared.end(); }

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
    if (is_shared(c, name) || !has_rows(tensor, of_all)) continue;
    const Tensor& from = all.tensors.at(name);
    std::vector<std::int64_t> shape = from.shape();
    shape[0] = std::ssize(rows);
    tensor = Tensor(from.dtype(), shape);
    for (std::int64_t i = 0; i < std::ssize(rows); ++i) copy_row(from, rows[static_cast<std::size_t>(i)], tensor, i);
  }
  return some;
}

std::vector<std::byte> bits_of(const Outputs& outputs, std::int64_t row) {
  std::vector<std::byte> bytes;
  for (const auto& [name, tensor] : outputs) bytes.insert(bytes.end(), tensor.row(row).begin(), tensor.row(row).end());
  return bytes;
}

BuiltKernel build(const KernelSpec& spec, const Target& to) { return build_kernel(spec, to, own_process_options(process_environment())); }

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
  Inputs all = random_inputs(widest, seed, {.dynamic_size = of_all});
  const Inputs special = random_inputs(widest, seed + 1, {.dynamic_size = of_all, .special_values = true});
  for (auto& [name, tensor] : all.tensors)
    if (!is_shared(c, name) && has_rows(tensor, of_all))
      for (std::int64_t row = 2; row < of_all; row += 3) copy_row(special.tensors.at(name), row, tensor, row);
  std::map<std::int64_t, std::pair<std::vector<std::byte>, std::string>> known; // by row
  std::mt19937_64 random(seed);
  for (const std::int64_t bound : c.bounds) {
    const KernelSpec spec = c.spec(bound);
    const BuiltKernel kernel = build(spec, to);
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
  }
  return {};
}

void check(const Case& c, const Target& to, std::uint64_t seed) {
  if (!runs_here(to, seed)) return;
  CAPTURE(fmt::format("{} {}", to.arch(), c.name));
  const std::string wrong = difference(c, to, seed);
  CHECK_MESSAGE(wrong.empty(), wrong);
}

using Numbers = std::vector<std::int64_t>;
Numbers sizes() { return compares_everything() ? Numbers{1, 1, 2, 3, 7, 16, 64, 128} : Numbers{1, 7, 16}; }
Numbers bounds_of_m() { return compares_everything() ? Numbers{1, 2, 3, 7, 16, 32, 64, 128} : Numbers{1, 16, 48}; }

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
                                     {"mx_quant", 1024}}) {
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
    check(product("gemm_swiglu_quant", {.dtype = f16, .fp8 = fp8, .n = 64, .k = 512}), to, ++seed);
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
  }
}

} // namespace invariance_numeric
