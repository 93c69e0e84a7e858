// Several problems in one launch, bound and run on emulated devices: the grid that JSON and cache entries describe, and none of some.
#include "runtime/jit/jit.h"
#include "runtime/launch/arguments/interface.h"
#include "tests/launch/loaded.h"
#include <nlohmann/json.hpp>

using namespace kiln;
using kiln::test::compiled;

namespace together_tests {
namespace {

KernelSpec sums_and_doubles() {
  const Expr x = input("x", f32, {dynamic("rows"), 256}), z = input("z", f32, {dynamic("elements")});
  return KernelSpec("both").output("total", f32, row_sum(x)).output("doubled", f32, z * 2);
}

struct Ran {
  std::uint64_t blocks;
  std::vector<float> total, doubled;
};

Ran run(const Kernel& kernel, std::int64_t rows, std::int64_t elements) {
  const Device device = Device::emulated("gfx942");
  const LoadedKernel loaded = device.load(kernel);
  Tensor x(f32, {rows, 256}), z(f32, {elements}), total(f32, {rows, 1}), doubled(f32, {elements});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set(i, static_cast<float>(i / 256));
  for (std::int64_t i = 0; i < z.size(); ++i) z.set(i, static_cast<float>(i));
  const DeviceMemory of_x = device.upload(x), of_z = device.upload(z), of_total = device.upload(total), of_doubled = device.upload(doubled);
  const DeviceTensor sums = of_total.tensor(f32, {rows, 1}), twice = of_doubled.tensor(f32, {elements});
  const BoundKernel bound =
      loaded.bind({{"x", of_x.tensor(f32, {rows, 256})}, {"z", of_z.tensor(f32, {elements})}, {"total", sums}, {"doubled", twice}});
  bound.launch();
  Ran ran{.blocks = bound.blocks(), .total = {}, .doubled = {}};
  total = device.download(sums), doubled = device.download(twice);
  for (std::int64_t i = 0; i < total.size(); ++i) ran.total.push_back(total.at(i));
  for (std::int64_t i = 0; i < doubled.size(); ++i) ran.doubled.push_back(doubled.at(i));
  return ran;
}

std::int64_t workgroups(const nlohmann::json& grid, std::int64_t rows, std::int64_t elements) {
  std::int64_t units = 1;
  for (const auto& factor : grid["units"]) units *= factor.is_number() ? factor.get<std::int64_t>() : factor == "rows" ? rows : elements;
  const std::int64_t each = grid["units_per_workgroup"];
  return (units + each - 1) / each * grid["workgroups_per_unit"].get<std::int64_t>();
}

} // namespace

TEST_CASE("fused launch: a launch computes both problems, or the one that there is something of") {
  const Kernel kernel = compiled(sums_and_doubles());
  const Ran both = run(kernel, 3, 5000);
  CHECK(both.total == std::vector<float>{0, 256, 512});
  CHECK(both.doubled[4999] == 9998);
  const Ran sums = run(kernel, 3, 0), doubles = run(kernel, 0, 5000), none = run(kernel, 0, 0);
  CHECK(sums.total == both.total);
  CHECK(doubles.doubled == both.doubled);
  CHECK(sums.blocks + doubles.blocks == both.blocks);
  CHECK(none.blocks == 0);
}

TEST_CASE("fused launch: Jit compiles it, with fields of one problem set by hand") {
  JitOptions options;
  options.compile.environment = process_environment();
  options.log = {};
  Jit jit(Device::emulated("gfx942"), options);
  const Kernel kernel = jit.compile(sums_and_doubles(), {"doubled.chunks=3"});
  CHECK(kernel.launch().behind[0].units_per_block % 3 == 0);
  const Ran ran = run(kernel, 2, 1000);
  CHECK(ran.total == std::vector<float>{0, 256});
  CHECK(ran.doubled[999] == 1998);
}

TEST_CASE("fused launch: two products, whose sums meet in parts of one workspace, launch after launch") {
  const Dim m = dynamic("m", 1, 16);
  const auto product = [&](const char* a, const char* b, std::int64_t k) {
    return matmul_nt(input(a, f32, {m, k}), input(b, f32, {16, k}));
  };
  const KernelSpec spec = KernelSpec("both").output("c", f32, product("a", "b", 1024)).output("d", f32, product("e", "f", 512));
  const Kernel kernel = compiled(spec, "gfx942", {"c.workgroups=3", "d.workgroups=2"});
  CHECK(kernel.workspace_bytes() > compiled(spec, "gfx942", {"c.workgroups=3", "d.workgroups=1"}).workspace_bytes());
  const Device device = Device::emulated("gfx942");
  const LoadedKernel loaded = device.load(kernel);
  const auto uploaded = [&](std::int64_t rows, std::int64_t k, bool counts) {
    Tensor t(f32, {rows, k});
    for (std::int64_t i = 0; i < t.size(); ++i) t.set(i, counts ? static_cast<float>(i / k) : 1);
    return device.upload(t);
  };
  const DeviceMemory a = uploaded(5, 1024, true), b = uploaded(16, 1024, false), e = uploaded(5, 512, false), f = uploaded(16, 512, true);
  const DeviceMemory of_c = uploaded(5, 16, false), of_d = uploaded(5, 16, false);
  const DeviceTensor c = of_c.tensor(f32, {5, 16}), d = of_d.tensor(f32, {5, 16});
  const BoundKernel bound = loaded.bind({{"a", a.tensor(f32, {5, 1024})},
                                         {"b", b.tensor(f32, {16, 1024})},
                                         {"e", e.tensor(f32, {5, 512})},
                                         {"f", f.tensor(f32, {16, 512})},
                                         {"c", c},
                                         {"d", d}});
  CHECK(bound.blocks() == 5);
  for (int replay = 0; replay < 3; ++replay) bound.launch();
  const Tensor rows_of_a = device.download(c), rows_of_f = device.download(d);
  for (std::int64_t i = 0; i < rows_of_a.size(); ++i) {
    CHECK(rows_of_a.at(i) == static_cast<float>(i / 16 * 1024));
    CHECK(rows_of_f.at(i) == static_cast<float>(i % 16 * 512));
  }
}

TEST_CASE("fused launch: the JSON of an interface has the grids of all problems") {
  const Kernel kernel = compiled(sums_and_doubles());
  const nlohmann::json grid = nlohmann::json::parse(to_json(interface_of(kernel)))["grid"];
  REQUIRE(grid["behind"].size() == 1);
  CHECK(workgroups(grid, 3, 5000) + workgroups(grid["behind"][0], 3, 5000) == static_cast<std::int64_t>(run(kernel, 3, 5000).blocks));
}

} // namespace together_tests
