// Golden files: the emitted text of the catalogue and of one kernel for each thing that emission can do.
// To accept new text: KILN_UPDATE_GOLDEN=1 build/bin/kiln_golden_tests, then read the diff.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "gen/spec/math.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

using namespace kiln;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void compare(const std::string& name, const KernelSpec& spec, const Target& to, const std::vector<std::string>& settings = {}) {
  const Plan plan = make_plan(spec, to);
  const Schedule schedule = with_overrides(choose_schedule(plan, to), settings, plan, to);
  const std::string text = to_text(schedule) + emit_source(plan, schedule, to).text;
  const auto path = std::filesystem::path(KILN_SOURCE_DIR) / "tests/golden" / (name + ".txt");
  if (std::getenv("KILN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  INFO("golden file ", path.string());
  CHECK(text == read(path));
}

const Dim rows = dynamic("rows");
const Target gfx942 = target("gfx942");

} // namespace

TEST_CASE("the catalogue at 16384 columns") {
  for (const CatalogEntry& entry : catalog()) {
    CatalogOptions options{.cols = 16384, .dtype = f16, .fp8 = gfx942.fp8()};
    if (entry.is.ranked) options.cols = options.n = 256;
    compare(std::string(entry.name), entry.build(options), gfx942);
  }
}

TEST_CASE("the other architecture has its own fp8 type") {
  const Target gfx950 = target("gfx950");
  compare("add_rmsnorm_quant.gfx950", catalog_spec("add_rmsnorm_quant", {.cols = 16384, .dtype = bf16, .fp8 = gfx950.fp8()}), gfx950);
}

TEST_CASE("rows of every width") {
  for (const std::int64_t cols : {1, 63, 129, 512, 131072})
    compare(fmt::format("softmax.{}", cols), catalog_spec("softmax", {.cols = cols, .dtype = f16, .fp8 = gfx942.fp8()}), gfx942);
}

TEST_CASE("rows by index, and pairs of a head in one wave and in one lane") {
  CatalogOptions options{.cols = 128, .dtype = bf16, .fp8 = gfx942.fp8(), .heads = 8, .fp8_cache = true};
  compare("rope_kv_write.128", catalog_spec("rope_kv_write", options), gfx942);
  options.interleaved = options.head_norm = options.in_place = true;
  compare("rope.interleaved", catalog_spec("rope", options), gfx942);
}

TEST_CASE("scales with the groups in front") {
  compare("group_quant.transposed", catalog_spec("group_quant", {.cols = 16384, .dtype = f16, .fp8 = gfx942.fp8(), .transposed = true}),
          gfx942);
}

TEST_CASE("pairs of a wave: one block a row, and many matrices a wave") {
  compare("hadamard.512", catalog_spec("hadamard", {.cols = 512, .dtype = bf16, .group = 512}), gfx942);
  compare("sinkhorn.16", catalog_spec("sinkhorn", {.cols = 16, .dtype = f32, .times = 2}), gfx942);
}

TEST_CASE("rows that stay in LDS, or are read again") {
  const KernelSpec spec = catalog_spec("layernorm", {.cols = 16384, .dtype = f16, .fp8 = gfx942.fp8()});
  compare("layernorm.lds", spec, gfx942, {"residency=lds"});
  compare("layernorm.reload", spec, gfx942, {"residency=reload", "prefetch_depth=2"});
}

TEST_CASE("an output in place of an input, strided") {
  const Expr x = input("x", f16, {rows, 4096}, Layout::strided), residual = input("residual", f16, {rows, 4096});
  KernelSpec spec("add_in_place");
  spec.output("y", f16, x * row_max(x) + residual, {.in_place_of = "x", .layout = Layout::strided});
  compare("in_place_strided", spec, gfx942);
}

TEST_CASE("broadcasts over some outer dimensions only") {
  const Dim batch = dynamic("batch");
  const Expr x = input("x", f16, {batch, 32, 128}), per_head = input("per_head", f32, {32, 1});
  compare("outer_broadcast", KernelSpec("scale_heads").output("y", f16, x * per_head + input("bias", f16, {batch, 1, 128})), gfx942);
}

TEST_CASE("several problems in one launch") {
  compare("qk_norm.128", catalog_spec("qk_norm", {.cols = 128, .dtype = bf16, .heads = 32, .kv_heads = 8}), gfx942);
  const Expr x = input("block", f16, {rows, 16384}), y = input("blocks", f32, {dynamic("elements")});
  compare("fused_launch", KernelSpec("unlike").output("own", f32, row_sum(x)).output("z", f32, y * scalar("alpha")), gfx942);
  const Dim m = dynamic("m", 1, 16);
  const Expr c = matmul_nt(input("a", f16, {m, 4096}), input("b", f16, {256, 4096}));
  const Expr d = matmul_nt(input("e", gfx942.fp8(), {m, 2048}), input("f", gfx942.fp8(), {4096, 2048})) * input("f_scale", f32, {4096});
  compare("fused_launch_gemm", KernelSpec("products").output("c", f32, c).output("own", f32, row_sum(x)).output("d", f16, d), gfx942);
}

TEST_CASE("groups, booleans, scalars, integers") {
  const Expr x = input("x", f32, {rows, 256}), limit = scalar("limit"), count = input("count", i32, {rows, 1});
  const Expr mask = logical_and(x > limit, input("keep", boolean, {rows, 256}));
  KernelSpec spec("mixed");
  spec.output("mask", boolean, mask).output("y", i8, select(mask, x, -x) * ungroup(group_mean(x, 64), 64, 256));
  spec.output("biggest", f32, group_absmax(x, 64)).output("total", bf16, row_sum(x) / count);
  compare("mixed", spec, gfx942);
}

TEST_CASE("names that emission would choose itself") {
  const Expr x = input("v2", f16, {rows, 64}), y = input("kept0", f16, {rows, 64});
  KernelSpec spec("awkward");
  spec.output("to_sum3", f16, x * row_max(x * y)).output("acc3", f16, y);
  compare("awkward_names", spec, gfx942);
}
