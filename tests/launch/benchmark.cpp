// benchmark: what is measured, with a stub in place of HIP that tells the times.
#include "runtime/launch/benchmark.h"
#include "runtime/launch/device_chip.h"
#include "tests/compile/run_cli.h"
#include "tests/errors/expect.h"
#include "tests/launch/loaded.h"
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

using namespace kiln;
using kiln::test::compiled;
using kiln::test::fresh_stub;
using kiln::test::HipStub;
using kiln::test::stub_device;

namespace {

const Kernel& subject() {
  static const Kernel kernel = compiled(KernelSpec("subject").output("y", f16, input("x", f16, {dynamic("rows"), 256}) * 2.0));
  return kernel;
}

// 4 rows of x are 2048 bytes, as are those of y; four sets fill twice the cache, and one more is on its way.
const BenchmarkOptions options{.cache_bytes = 8192};

} // namespace

TEST_CASE("benchmark: mean, median, deviation and rates of the samples after the warm-up") {
  HipStub& stub = fresh_stub();
  stub.elapsed_ms = {9, 8, 7}; // never counted
  for (const float ms : {1.0F, 1.1F, 0.9F, 1.0F, 1.0F, 1.0F, 1.05F, 0.95F, 1.0F, 1.0F}) stub.elapsed_ms.push_back(ms);
  const BenchmarkResult r = benchmark(stub_device(), subject(), 4, options);
  CHECK(r.samples.size() == 10);
  CHECK(r.samples[1] == doctest::Approx(1100));
  CHECK(r.launches_per_sample == 1);
  CHECK(r.mean == doctest::Approx(1000));
  CHECK(r.median == doctest::Approx(1000));
  CHECK(r.least == doctest::Approx(900));
  CHECK(r.deviation == doctest::Approx(std::sqrt((2 * 100.0 * 100 + 2 * 50.0 * 50) / 9)));
  CHECK(r.bytes == 2 * 4 * 256 * 2);
  CHECK(r.flops == 4 * 256);
  CHECK(r.gb_per_s == doctest::Approx(4096 / 1e-3 / 1e9));
  CHECK(r.tflop_per_s == doctest::Approx(1024 / 1e-3 / 1e12));
  CHECK(r.peak_gb_per_s() == 5300);
  CHECK(r.warnings.empty());
  CHECK(stub.launches.size() == 13);
  CHECK(std::ranges::count(stub.calls, "hipEventElapsedTime") == 13);
  CHECK(stub.allocations.empty());
  CHECK(stub.events == 0);
}

TEST_CASE("benchmark: launches take buffers in turn, past the last-level cache") {
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  stub.parameter_sizes = {8, 8};
  const BenchmarkResult r = benchmark(device, subject(), 4, options);
  CHECK(r.buffer_sets == 5); // 5 * 4096 bytes
  std::vector<std::vector<std::byte>> inputs;
  for (const auto& launch : stub.launches) inputs.push_back(launch.parameters.at(0));
  std::vector<std::vector<std::byte>> different = inputs;
  std::ranges::sort(different);
  different.erase(std::ranges::unique(different).begin(), different.end());
  CHECK(different.size() == 5);
  for (std::size_t i = 0; i + 5 < inputs.size(); ++i) {
    CHECK(inputs[i] == inputs[i + 5]);
    CHECK(inputs[i] != inputs[i + 1]);
  }
}

TEST_CASE("benchmark: short kernels are launched more often a sample") {
  HipStub& stub = fresh_stub();
  stub.elapsed_ms = {0.004F, 0.2F};
  const BenchmarkResult r = benchmark(stub_device(), subject(), 4, options);
  CHECK(r.launches_per_sample == 50); // 0.2 ms of 4 us each
  CHECK(r.median == doctest::Approx(4));
  CHECK(stub.launches.size() == 1 + 12 * 50);
}

TEST_CASE("benchmark: a wide spread and cached data are warned of") {
  HipStub& stub = fresh_stub();
  for (int i = 0; i < 13; ++i) stub.elapsed_ms.push_back(i % 2 == 0 ? 1.0F : 1.5F);
  const BenchmarkResult r = benchmark(stub_device(), subject(), 4, options);
  REQUIRE(r.warnings.size() == 1);
  CHECK(r.warnings[0].find("the deviation is 21 % of the mean") != std::string::npos);
  fresh_stub();
  BenchmarkOptions small = options;
  small.cache_bytes = 1 << 26;
  const BenchmarkResult cached = benchmark(stub_device(), subject(), 1, small);
  REQUIRE(cached.warnings.size() == 1);
  CHECK(cached.warnings[0].find("the data comes from caches") != std::string::npos);
}

TEST_CASE("benchmark: what cannot be measured is refused") {
  fresh_stub();
  expect_user_error([] { static_cast<void>(benchmark(Device::emulated("gfx942"), subject(), 4, options)); }, "benchmark", "does not time",
                    "machine with the GPU");
  BenchmarkOptions few = options;
  few.samples = 9;
  expect_user_error([&] { static_cast<void>(benchmark(stub_device(), subject(), 4, few)); }, "benchmark", "3 + 9 samples", "3 + 10");
  few = options, few.warm_up = 0;
  expect_user_error([&] { static_cast<void>(benchmark(stub_device(), subject(), 4, few)); }, "benchmark", "0 + 10 samples", "3 + 10");
  expect_user_error([] { static_cast<void>(benchmark(stub_device(), subject(), 0, options)); }, "benchmark", "nothing to launch",
                    "at least 1");
  for (const char* function : {"hipEventCreate", "hipEventRecord", "hipEventSynchronize", "hipEventElapsedTime"}) {
    HipStub& stub = fresh_stub();
    stub.errors[function] = 700;
    CHECK_THROWS_WITH_AS(static_cast<void>(benchmark(stub_device(), subject(), 4, options)), doctest::Contains(function), EnvironmentError);
    CHECK(stub.events == 0);
    CHECK(stub.allocations.empty());
  }
  fresh_stub();
}

TEST_CASE("benchmark: the second of two events cannot be had") {
  HipStub& stub = fresh_stub();
  stub.errors["hipEventCreate"] = 2;
  stub.errors_after["hipEventCreate"] = 1;
  CHECK_THROWS_WITH_AS(static_cast<void>(benchmark(stub_device(), subject(), 4, options)), doctest::Contains("hipErrorOutOfMemory"),
                       EnvironmentError);
  CHECK(stub.events == 0);
  fresh_stub();
}

TEST_CASE("benchmark: work of products, reductions and casts") {
  const Dim m = dynamic("m", 1, 16);
  const Expr a = input("a", f16, {m, 512}), b = input("b", f16, {256, 512});
  const KernelSpec product = KernelSpec("p").output("c", f16, matmul_nt(a, b) * 2.0);
  const Work of_product = work_of(product, {{"m", 8}});
  CHECK(of_product.bytes == 2 * (8 * 512 + 256 * 512 + 8 * 256));
  CHECK(of_product.flops == 2 * 8 * 256 * 512 + 8 * 256);
  const Expr x = input("x", f32, {dynamic("rows"), 64});
  const Expr sum = row_sum(x);
  const Work of_rows = work_of(KernelSpec("r").output("s", f32, sum).output("y", f16, x / sum), {{"rows", 3}});
  CHECK(of_rows.bytes == 4 * 3 * 64 + 4 * 3 + 2 * 3 * 64);
  CHECK(of_rows.flops == 3 * 64 + 3 * 64); // the sum once, the quotient
}

TEST_CASE("benchmark: the part, by KILN_CHIP, by its name, by the architecture") {
  CHECK(chip_of(target("gfx950"), "AMD Instinct MI355X", "").chip->peak_tbs == 8);
  CHECK(chip_of(target("gfx942"), "AMD Instinct MI308X", "").chip->name == "mi308x");
  CHECK(chip_of(target("gfx942"), "AMD Instinct MI308X", "mi325x").chip->name == "mi325x");
  const DeviceChip generic = chip_of(target("gfx942"), "AMD Radeon Graphics", "");
  CHECK(generic.chip->arch == "gfx942");
  CHECK(generic.how == "assumed for gfx942: \"AMD Radeon Graphics\" names no part, KILN_CHIP does");
  CHECK_THROWS_WITH_AS(chip_of(target("gfx942"), "", "mi355x"), doctest::Contains("it is gfx950, the device is gfx942"), UserError);
}

TEST_CASE("benchmark: strided and in-place tensors, scalars and workspaces are bound as they must be") {
  fresh_stub();
  const Dim rows = dynamic("rows", 1, 4);
  const Expr x = input("x", f16, {rows, 1000}, Layout::strided), r = input("r", f16, {rows, 1000});
  const Kernel in_place = compiled(KernelSpec("in_place").output("h", f16, r + x * scalar("s"), {.in_place_of = "r"}));
  CHECK(benchmark(stub_device(), in_place, 3, options).samples.size() == 10);
  const Kernel product =
      compiled(KernelSpec("product").output("c", f16, matmul_nt(input("a", f16, {rows, 512}), input("b", f16, {256, 512}))));
  CHECK(benchmark(stub_device(), product, 3, options).samples.size() == 10);
}

TEST_CASE("kiln bench: exit code 2 without a GPU, rates with one") {
  using kiln::test::kiln;
  const std::string kernel = "bench rmsnorm --cols 256 --rows 16 --cache-mb 1 ";
  const auto none = kiln(kernel, "KILN_HIP_PATH=/nowhere/libamdhip64.so");
  CHECK(none.exit_code == 2);
  CHECK(none.err.find("there is no device hip:0 (/nowhere/libamdhip64.so of KILN_HIP_PATH could not be loaded)") != std::string::npos);
  const auto model = kiln(kernel + "--device emulated:gfx942");
  CHECK(model.exit_code == 2);
  CHECK(model.err.find("executes, it does not time") != std::string::npos);
  const std::string stub = std::string("KILN_HIP_PATH=") + KILN_HIP_STUB;
  const auto text = kiln(kernel, stub);
  INFO(text.err);
  CHECK(text.exit_code == 0);
  for (const char* part : {"rmsnorm on AMD Instinct MI300X (gfx942)", "median 1000.00 us", "GB/s", "% of 5300", "TFLOP/s"})
    CHECK(text.out.find(part) != std::string::npos);
  const auto json = kiln(kernel + "--json", stub);
  REQUIRE(json.exit_code == 0);
  const auto document = nlohmann::json::parse(json.out);
  CHECK(document["samples_us"].size() == 10);
  CHECK(document["bytes"] == 2 * 16 * 256 * 2 + 256 * 2);
  CHECK(document["peak_share"].get<double>() == doctest::Approx(document["gb_per_s"].get<double>() / 5300));
  CHECK(kiln(kernel + "--samples 5", stub).exit_code == 2);
}
