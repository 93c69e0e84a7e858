// Proves that names of Triton's knobs set the fields that they mean, and are refused with the reason where they mean nothing.
#include "gen/families/knobs.h"
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "gen/spec/math.h"
#include <doctest/doctest.h>

using namespace kiln;

namespace {

const Target gfx942 = target("gfx942");
const Expr x = input("x", f16, {dynamic("rows"), 4096});
const KernelSpec flat = KernelSpec("doubled").output("y", f16, x * 2);
const KernelSpec rows = KernelSpec("scaled").output("y", f16, x / row_max(x));
const KernelSpec biased = KernelSpec("biased").output("y", f16, x + input("bias", f16, {4096}));
const KernelSpec product =
    KernelSpec("product").output("y", f16, matmul_nt(input("a", f16, {dynamic("m", 1, 16), 4096}), input("b", f16, {2048, 4096})));

Schedule with(const KernelSpec& spec, const std::vector<std::string>& settings) {
  const Plan plan = make_plan(spec, gfx942);
  return with_overrides(choose_schedule(plan, gfx942), settings, plan, gfx942);
}
void refused(const KernelSpec& spec, const std::string& setting, const char* reason) {
  CAPTURE(setting);
  CHECK_THROWS_WITH_AS(with(spec, {setting}), doctest::Contains(reason), UserError);
}

} // namespace

TEST_CASE("knobs of a product") {
  const auto c = std::get<GemmConfig>(
      with(product, {"SPLIT_K=2", "num_warps=8", "num_stages=3", "BLOCK_N=32", "BLOCK_K=64", "matrix_instr_nonkdim=16"}).config);
  CHECK(c.method == GemmMethod::matrix);
  CHECK(c.waves == 8);
  CHECK(c.stages == 3);
  CHECK(c.tile_n == 32);
  CHECK(c.loads == 2); // 64 elements of 16 bits
  CHECK(c.workgroups == 2 * 2048 / 32);
  CHECK(std::get<GemmConfig>(with(product, {"matrix_instr_nonkdim=32"}).config).method == GemmMethod::matrix32);
  const KernelSpec by_expert = catalog_spec("grouped_gemm", {});
  CHECK(std::get<GemmConfig>(with(by_expert, {"BLOCK_M=64", "BLOCK_N=16", "num_warps=8"}).config).rows == 64);
  refused(by_expert, "SPLIT_K=2", "products by expert have no such choice");
  refused(by_expert, "matrix_instr_nonkdim=32", "products by expert have no such choice");
  refused(product, "BLOCK_M=16", "a workgroup computes all rows: the bound of m, 16");
  refused(product, "BLOCK_K=48", "no multiple of 32");
  refused(product, "matrix_instr_nonkdim=4", "16 x 16 or 32 x 32");
  refused(product, "kpack=2", "16 contiguous bytes of k");
  refused(product, "SPLIT_K=0", "0 is no size");
  refused(product, "num_warps=3", "waves must be 1, 2, 4, 8 or 16");
}

TEST_CASE("knobs of rows and of flat kernels") {
  const auto c = std::get<RowwiseConfig>(with(rows, {"num_warps=8", "BLOCK_M=1", "num_stages=1"}).config);
  CHECK(c.threads_per_row == 512);
  CHECK(c.prefetch_depth == 1);
  const auto b = std::get<RowwiseConfig>(with(biased, {"num_warps=1", "BLOCK_M=1", "vec=8", "BLOCK_N=1024", "num_stages=1"}).config);
  CHECK(b.tiles == 4);
  const auto f = std::get<ElementwiseConfig>(with(flat, {"num_warps=2", "vec=8", "BLOCK_N=2048", "num_stages=2"}).config);
  CHECK(f.threads == 128);
  CHECK(f.chunks == 2);
  CHECK(f.prefetch_depth == 2);
  for (const KernelSpec& spec : {flat, rows, product})
    std::visit(
        [](const auto& config) {
          if constexpr (requires { config.waves_per_eu; }) CHECK(config.waves_per_eu == 6);
          else FAIL("a family without the field");
        },
        with(spec, {"waves_per_eu=6"}).config);
  refused(flat, "BLOCK_M=2", "no rows");
  refused(flat, "waves_per_eu=9", "waves_per_eu must be");
  for (const KernelSpec& spec : {flat, rows})
    for (const char* const knob : {"BLOCK_K=64", "SPLIT_K=2", "matrix_instr_nonkdim=16", "kpack=1"})
      refused(spec, knob, "multiplies no matrices");
}
