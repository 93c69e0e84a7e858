// Emulated devices: memory, results, findings.
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_inputs.h"
#include "tests/errors/expect.h"
#include "tests/launch/loaded.h"
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

using namespace kiln;
using kiln::test::compiled;

namespace {

KernelSpec norm_spec() {
  const Expr x = input("x", f16, {dynamic("rows"), 1000}), weight = input("weight", f16, {1000});
  return KernelSpec("norm").output("y", f16, x * rsqrt(row_mean(x * x) + scalar("eps")) * weight);
}

KernelSpec product_spec() {
  const Expr a = input("a", f16, {dynamic("m", 1, 4), 512}), b = input("b", f16, {256, 512});
  return KernelSpec("product").output("c", f16, matmul_nt(a, b));
}

// Uploads the inputs, binds, launches, and compares every output with the reference.
void check(const Device& device, const KernelSpec& spec, std::int64_t size, int launches = 1,
           const std::vector<std::string>& settings = {}) {
  const Inputs inputs = random_inputs(spec, 7, {.dynamic_size = size});
  const LoadedKernel kernel = device.load(compiled(spec, device.target().arch(), settings));
  std::vector<DeviceMemory> memory;
  std::vector<Argument> arguments;
  for (const auto& [name, tensor] : inputs.tensors)
    arguments.emplace_back(name, memory.emplace_back(device.upload(tensor, name)).tensor(tensor.dtype(), tensor.shape()));
  for (const auto& [name, value] : inputs.scalars) arguments.emplace_back(name, value);
  std::map<std::string, DeviceTensor> outputs;
  for (const auto& [name, reference] : evaluate(spec, inputs)) {
    outputs[name] = memory.emplace_back(device.allocate(reference.data().size(), name)).tensor(reference.dtype(), reference.shape());
    arguments.emplace_back(name, outputs[name]);
  }
  const BoundKernel bound = kernel.bind(arguments);
  for (int i = 0; i < launches; ++i) bound.launch();
  Outputs actual;
  for (const auto& [name, tensor] : outputs) actual.emplace(name, device.download(tensor));
  const auto wrong = find_mismatch(actual, evaluate_bounds(spec, inputs));
  CHECK_MESSAGE(!wrong, (wrong ? to_text(*wrong) : std::string()));
}

} // namespace

TEST_CASE("emulated: a program computes what the spec means, on both architectures") {
  for (const char* arch : {"gfx942", "gfx950"}) check(Device::emulated(arch), norm_spec(), 3);
}

TEST_CASE("emulated: a workspace comes from the pool, and launches may follow one another") {
  const Device device = Device::emulated("gfx942");
  REQUIRE(compiled(product_spec(), "gfx942", {kiln::test::split}).workspace_bytes() > 0);
  check(device, product_spec(), 3, 2, {kiln::test::split});
}

TEST_CASE("emulated: a workspace may be the caller's") {
  const Device device = Device::emulated("gfx942");
  const LoadedKernel kernel = device.load(compiled(product_spec(), "gfx942", {kiln::test::split}));
  const auto bytes = kernel.kernel().workspace_bytes();
  const DeviceMemory a = device.allocate(512 * 2), b = device.allocate(256 * 512 * 2), c = device.allocate(256 * 2);
  const DeviceMemory workspace = device.allocate(static_cast<std::size_t>(bytes));
  device.zero(a.data(), a.bytes());
  device.zero(b.data(), b.bytes());
  device.zero(workspace.data(), workspace.bytes());
  std::vector<Argument> arguments{{"a", a.tensor(f16, {1, 512})}, {"b", b.tensor(f16, {256, 512})}, {"c", c.tensor(f16, {1, 256})}};
  arguments.emplace_back("workspace", workspace.tensor(u8, {bytes}));
  kernel.bind(arguments).launch();
  CHECK(device.download(c.tensor(f16, {1, 256})).at(255) == 0.0F);
  arguments.back() = {"workspace", workspace.tensor(u8, {bytes - 1})};
  expect_user_error([&] { static_cast<void>(kernel.bind(arguments)); }, "kernel product, argument workspace",
                    fmt::format("the kernel needs {}", bytes), "zeroed");
  arguments.back() = {"workspace", b.tensor(u8, {256 * 512 * 2})};
  if (bytes <= 256 * 512 * 2)
    expect_user_error([&] { static_cast<void>(kernel.bind(arguments)); }, "kernel product, argument workspace", "overlap b",
                      "memory of its own");
}

TEST_CASE("emulated: what nobody wrote is NaN, and what is read and written comes back") {
  const Device device = Device::emulated("gfx942");
  const DeviceMemory memory = device.allocate(64, "m");
  CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % 256 == 0);
  const Tensor fresh = device.download(memory.tensor(f16, {32}));
  CHECK(std::isnan(fresh.at(31)));
  Tensor strided(f32, {2, 3}, 4);
  for (int i = 0; i < 6; ++i) strided.set(i, static_cast<float>(i));
  const DeviceMemory copy = device.upload(strided);
  const Tensor back = device.download(copy.tensor(f32, {2, 3}, 4));
  for (int i = 0; i < 6; ++i) CHECK(back.at(i) == static_cast<float>(i));
  CHECK_THROWS_WITH_AS(static_cast<void>(memory.tensor(f16, {33})), doctest::Contains("it has 66 bytes, and 64 of 64 are left"), UserError);
  CHECK_THROWS_WITH_AS(device.zero(memory.data(), 65), doctest::Contains("1 bytes past the end of m (64 bytes)"), UserError);
}

TEST_CASE("emulated: a kernel that reads beyond an allocation ends in an error that says where") {
  // bind refuses too small a tensor, so the memory is released between the two.
  const Device device = Device::emulated("gfx942");
  const LoadedKernel kernel = device.load(compiled(norm_spec()));
  DeviceMemory x = device.allocate(2 * 1000 * 2, "x"), weight = device.allocate(2000, "weight"), y = device.allocate(4000, "y");
  const BoundKernel bound = kernel.bind(
      {{"x", x.tensor(f16, {2, 1000})}, {"weight", weight.tensor(f16, {1000})}, {"y", y.tensor(f16, {2, 1000})}, {"eps", 1e-6}});
  bound.launch();
  weight = device.allocate(16, "small");
  try {
    bound.launch();
    FAIL_CHECK("no error");
  } catch (const ExecutionError& error) {
    CHECK(!error.findings.empty());
    CHECK(std::string(error.what()).find("kernel norm") != std::string::npos);
    CHECK(error.findings.front().find("out_of_bounds") != std::string::npos);
  }
}

TEST_CASE("emulated: deferred launches run when the program waits, and a workspace is theirs until then") {
  const Device device = Device::emulated("gfx942", {.deferred = true});
  const KernelSpec spec = product_spec();
  const Inputs inputs = random_inputs(spec, 7, {.dynamic_size = 3});
  const LoadedKernel kernel = device.load(compiled(spec, "gfx942", {kiln::test::split}));
  const DeviceMemory a = device.upload(inputs.tensors.at("a")), b = device.upload(inputs.tensors.at("b"));
  const DeviceMemory c[] = {device.allocate(3 * 256 * 2), device.allocate(3 * 256 * 2)};
  const auto bind = [&](int i) {
    return kernel.bind({{"a", a.tensor(f16, {3, 512})}, {"b", b.tensor(f16, {256, 512})}, {"c", c[i].tensor(f16, {3, 256})}});
  };
  const auto workspace_of = [](const BoundKernel& bound) {
    void* address = nullptr;
    REQUIRE(bound.argument_block().size() >= 32);
    std::memcpy(&address, &bound.argument_block()[24], sizeof address); // after a, b and c
    return address;
  };
  { // two in the pool, so that nothing below waits for zeroes
    const BoundKernel one = bind(0), other = bind(1);
    CHECK(workspace_of(one) != workspace_of(other));
  }
  void* used[2];
  for (int i = 0; i < 2; ++i) {
    const BoundKernel bound = bind(i);
    used[i] = workspace_of(bound);
    bound.launch();
  } // gone, and neither has run
  CHECK(used[0] != used[1]);
  const void* third = workspace_of(bind(0)); // waits for its zeroes, and so for all
  CHECK((third != used[0] && third != used[1]));
  for (const DeviceMemory& memory : c) {
    const Outputs actual{{"c", device.download(memory.tensor(f16, {3, 256}))}};
    const auto wrong = find_mismatch(actual, evaluate_bounds(spec, inputs));
    CHECK_MESSAGE(!wrong, (wrong ? to_text(*wrong) : std::string()));
  }
  CHECK(workspace_of(bind(0)) == third); // it was never launched
}

TEST_CASE("emulated: findings of a deferred launch come with the call that waits for it") {
  const Device device = Device::emulated("gfx942", {.deferred = true});
  const LoadedKernel kernel = device.load(compiled(norm_spec()));
  DeviceMemory x = device.allocate(2 * 1000 * 2, "x"), weight = device.allocate(2000, "weight"), y = device.allocate(4000, "y");
  const BoundKernel bound = kernel.bind(
      {{"x", x.tensor(f16, {2, 1000})}, {"weight", weight.tensor(f16, {1000})}, {"y", y.tensor(f16, {2, 1000})}, {"eps", 1e-6}});
  weight = device.allocate(16, "small"); // frees what the kernel reads
  bound.launch();
  CHECK_THROWS_AS(device.synchronize(), ExecutionError);
  CHECK_NOTHROW(device.synchronize()); // said once
}

TEST_CASE("emulated: threads of a program may launch and copy at once") {
  const Device device = Device::emulated("gfx942");
  std::vector<std::thread> threads;
  const Expr x = input("x", f32, {dynamic("rows"), 64});
  const LoadedKernel kernel = device.load(compiled(KernelSpec("twice").output("y", f32, x * 2.0)));
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Tensor host(f32, {1, 64});
      for (int i = 0; i < 64; ++i) host.set(i, static_cast<float>(100 * t + i));
      const DeviceMemory in = device.upload(host), out = device.allocate(256);
      for (int n = 0; n < 5; ++n) kernel.bind({{"x", in.tensor(f32, {1, 64})}, {"y", out.tensor(f32, {1, 64})}}).launch();
      if (device.download(out.tensor(f32, {1, 64})).at(63) == static_cast<float>(2 * (100 * t + 63))) ++right;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 4);
}

TEST_CASE("emulated: kernels of another architecture are refused") {
  const Device device = Device::emulated("gfx950");
  const Kernel kernel = compiled(norm_spec(), "gfx942");
  expect_user_error([&] { static_cast<void>(device.load(kernel)); }, "kernel norm", "compiled for gfx942, the device is gfx950, emulated",
                    "Jit for gfx950");
}

TEST_CASE("devices by name") {
  CHECK(Device::open("emulated:gfx950").target().arch() == "gfx950");
  CHECK(Device::open("emulated:gfx950").is_emulated());
  CHECK(Device::open("emulated:gfx942").description() == "gfx942, emulated on the CPU");
  for (const char* wrong : {"", "hip", "hip:", "hip:-1", "hip:1x", "cuda:0"})
    expect_user_error([&] { static_cast<void>(Device::open(wrong)); }, "device", fmt::format("\"{}\" names none", wrong), "hip:ORDINAL");
  CHECK_THROWS_WITH_AS(static_cast<void>(Device::open("emulated:gfx90a")), doctest::Contains("gfx90a"), UserError);
}
