// HIP devices, with a stub in place of the HIP runtime: which calls are made, on which device, and what each failure becomes.
#include "tests/errors/expect.h"
#include "tests/launch/loaded.h"
#include <algorithm>
#include <cstring>
#include <thread>

using namespace kiln;
using kiln::test::bind_product;
using kiln::test::compiled;
using kiln::test::fresh_stub;
using kiln::test::HipStub;
using kiln::test::product;
using kiln::test::product_bytes;
using kiln::test::stub_device;

namespace {

const Kernel& twice() {
  static const Kernel kernel = compiled(KernelSpec("twice").output("y", f16, input("x", f16, {dynamic("rows"), 256}) * scalar("by")));
  return kernel;
}

struct Buffers {
  DeviceMemory x, y;
  explicit Buffers(const Device& device) : x(device.allocate(4 * 512)), y(device.allocate(4 * 512)) {}
  std::vector<Argument> arguments() const { return {{"x", x.tensor(f16, {4, 256})}, {"y", y.tensor(f16, {4, 256})}, {"by", 2}}; }
};

// Runs `provoke` and requires an EnvironmentError of HIP whose fact and remedy contain these.
template <class Provoke> void expect_hip_error(Provoke provoke, const std::string& fact, const std::string& remedy) {
  CAPTURE(fact);
  try {
    provoke();
    FAIL_CHECK("no error");
  } catch (const EnvironmentError& error) {
    CAPTURE(error.fact);
    CAPTURE(error.remedy);
    CHECK(error.fact.find(fact) != std::string::npos);
    CHECK(error.remedy.find(remedy) != std::string::npos);
  }
}

} // namespace

TEST_CASE("hip: the device is described, its target features cut off") {
  fresh_stub();
  const Device device = stub_device();
  CHECK(device.target().arch() == "gfx942");
  CHECK(!device.is_emulated());
  CHECK(device.product() == "AMD Instinct MI300X");
  CHECK(device.description() == "AMD Instinct MI300X (gfx942), HIP device 0 of 1");
}

TEST_CASE("hip: a launch is one call of HIP, with the arguments in order, on the caller's stream") {
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  const Buffers buffers(device);
  const LoadedKernel kernel = device.load(twice());
  const BoundKernel bound = kernel.bind(buffers.arguments());
  for (const KernelArgument& a : kernel.kernel().arguments()) stub.parameter_sizes.push_back(static_cast<std::size_t>(a.size));
  stub.calls.clear();
  int a_stream = 0;
  bound.launch(&a_stream);
  bound.launch();
  // Nothing else: so a launch can be captured, and never waits.
  CHECK(stub.calls == std::vector<std::string>{"hipModuleLaunchKernel", "hipModuleLaunchKernel"});
  REQUIRE(stub.launches.size() == 2);
  const auto& launch = stub.launches.front();
  CHECK(launch.kernel == "twice");
  CHECK(launch.stream == &a_stream);
  CHECK(stub.launches.back().stream == nullptr);
  CHECK(launch.grid == bound.blocks());
  CHECK(launch.block == bound.threads());
  for (std::size_t i = 0; i < launch.parameters.size(); ++i) {
    const KernelArgument& a = kernel.kernel().arguments()[i];
    CAPTURE(a.name);
    CHECK(std::memcmp(launch.parameters[i].data(), &bound.argument_block()[static_cast<std::size_t>(a.offset)],
                      launch.parameters[i].size()) == 0);
  }
  void* address = nullptr;
  std::memcpy(&address, launch.parameters.front().data(), 8);
  CHECK(address == buffers.x.data());
}

TEST_CASE("hip: threads launch one BoundKernel at once, each with whole arguments") {
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  const Buffers buffers(device);
  const BoundKernel bound = device.load(twice()).bind(buffers.arguments());
  for (const KernelArgument& a : twice().arguments()) stub.parameter_sizes.push_back(static_cast<std::size_t>(a.size));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&bound] {
      for (int i = 0; i < 500; ++i) bound.launch();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(stub.launches.size() == 2000);
  CHECK(std::ranges::all_of(stub.launches, [&](const auto& l) { return l.parameters == stub.launches.front().parameters; }));
}

TEST_CASE("hip: loading, binding and launching leave the caller's current device alone") {
  HipStub& stub = fresh_stub();
  stub.devices = {"gfx942", "gfx942", "gfx950"};
  const Device device = stub_device(1);
  CHECK(stub.current == 0);
  const Buffers buffers(device);
  for (const auto& [address, ordinal] : stub.allocated_on)
    if (address == buffers.x.data()) CHECK(ordinal == 1);
  const LoadedKernel kernel = device.load(twice());
  const BoundKernel bound = kernel.bind(buffers.arguments());
  CHECK(stub.current == 0);
  int a_stream = 0;
  stub.calls.clear();
  bound.launch(&a_stream); // a stream knows its device
  CHECK(stub.calls == std::vector<std::string>{"hipModuleLaunchKernel"});
  for (const std::uintptr_t default_stream : {0, 1, 2}) { // null, hipStreamLegacy, hipStreamPerThread
    bound.launch(reinterpret_cast<Stream>(default_stream));
    CHECK(stub.launches.back().device == 1);
    CHECK(stub.current == 0);
  }
  stub.current = 1;
  stub.calls.clear();
  bound.launch();
  CHECK(std::ranges::count(stub.calls, "hipSetDevice") == 0);
  CHECK(stub_device(2).target().arch() == "gfx950");
  CHECK_THROWS_WITH_AS(static_cast<void>(stub_device(2).load(twice())), doctest::Contains("compiled for gfx942, the device is"), UserError);
}

TEST_CASE("hip: a kernel is loaded once a device, and unloaded with its last user") {
  HipStub& stub = fresh_stub();
  REQUIRE(stub.modules == 0);
  {
    const Device device = stub_device();
    const Buffers buffers(device);
    std::optional<LoadedKernel> first = device.load(twice());
    const LoadedKernel second = device.load(twice());
    CHECK(stub.modules == 1);
    CHECK(std::ranges::count(stub.calls, "hipModuleLoadData") == 1);
    const BoundKernel bound = first->bind(buffers.arguments());
    first.reset();
    CHECK(stub.modules == 1);
    bound.launch();
  }
  CHECK(stub.modules == 0);
  CHECK(stub.allocations.empty());
}

TEST_CASE("hip: workspaces are zeroed once, given back, and taken again") {
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  const DeviceMemory memory = device.allocate(product_bytes);
  {
    const LoadedKernel kernel = device.load(product());
    REQUIRE(product().workspace_bytes() > 0);
    const auto live = [&] { return stub.allocations.size(); };
    const std::size_t before = live();
    {
      const BoundKernel one = bind_product(kernel, memory), beside = bind_product(kernel, memory);
      CHECK(live() == before + 2);
      CHECK(std::memcmp(one.argument_block().data(), beside.argument_block().data(), one.argument_block().size()) != 0);
      for (const auto& [address, bytes] : stub.allocations)
        if (address != memory.data()) {
          CHECK(bytes == static_cast<std::size_t>(product().workspace_bytes()));
          CHECK(std::ranges::all_of(std::span(static_cast<const char*>(address), bytes), [](char c) { return c == 0; }));
        }
    }
    stub.calls.clear();
    const BoundKernel again = bind_product(kernel, memory);
    CHECK(stub.calls.empty()); // of the pool: no allocation, nothing to zero
    CHECK(live() == before + 2);
  }
  CHECK(stub.allocations.size() == 1);
}

TEST_CASE("hip: every failure names the call, the error and what to do") {
  HipStub& stub = fresh_stub();
  expect_hip_error(
      [&] {
        stub.errors["hipRuntimeGetVersion"] = 3;
        static_cast<void>(stub_device());
      },
      "hipRuntimeGetVersion failed: hipErrorUnknown (3)", "kiln doctor");
  fresh_stub();
  expect_hip_error(
      [&] {
        stub.errors["hipGetDeviceCount"] = 100;
        static_cast<void>(stub_device());
      },
      "hipGetDeviceCount failed", "/dev/kfd");
  fresh_stub();
  expect_hip_error(
      [&] {
        stub.errors["hipGetDevicePropertiesR0600"] = 101;
        static_cast<void>(stub_device());
      },
      "hipGetDevicePropertiesR0600 failed", "stream of the device");
  fresh_stub();
  const Device device = stub_device();
  const Buffers buffers(device);
  expect_hip_error(
      [&] {
        stub.errors["hipMalloc"] = 2;
        static_cast<void>(device.allocate(64));
      },
      "hipMalloc failed: hipErrorOutOfMemory (2), out of memory", "free device memory");
  fresh_stub();
  expect_hip_error(
      [&] {
        stub.errors["hipModuleLoadData"] = 209;
        static_cast<void>(device.load(twice()));
      },
      "hipModuleLoadData failed: hipErrorNoBinaryForGpu (209)", "architecture of this device");
  fresh_stub();
  expect_hip_error(
      [&] {
        stub.errors["hipModuleLoadData"] = 900;
        static_cast<void>(device.load(twice()));
      },
      "hipErrorStreamCaptureUnsupported", "before the capture begins");
  fresh_stub();
  expect_hip_error(
      [&] {
        stub.errors["hipModuleGetFunction"] = 500;
        static_cast<void>(device.load(twice()));
      },
      "hipModuleGetFunction failed", "kiln doctor");
  stub.errors.clear();
  static_cast<void>(device.allocate(64));
  CHECK(stub.modules == 0); // unloaded again, with the next allocation
  fresh_stub();
  const BoundKernel bound = device.load(twice()).bind(buffers.arguments());
  expect_hip_error(
      [&] {
        stub.errors["hipModuleLaunchKernel"] = 700;
        bound.launch();
      },
      "hipModuleLaunchKernel failed", "emulated device");
  stub.errors.clear();
  bound.launch(); // a failure leaves nothing behind
  const Tensor host(f16, {4, 256});
  for (const char* function : {"hipMemcpyAsync", "hipStreamSynchronize"})
    expect_hip_error(
        [&] {
          fresh_stub();
          stub.errors[function] = 719;
          static_cast<void>(device.upload(host));
        },
        std::string(function) + " failed", "earlier kernel or copy");
  expect_hip_error(
      [&] {
        fresh_stub();
        stub.errors["hipMemsetAsync"] = 1;
        device.zero(buffers.x.data(), 8);
      },
      "hipMemsetAsync failed", "kiln doctor");
  fresh_stub();
  stub.devices = {"gfx942", "gfx942"};
  const Device second = stub_device(1);
  for (const char* function : {"hipGetDevice", "hipSetDevice"})
    expect_hip_error(
        [&] {
          fresh_stub();
          stub.devices = {"gfx942", "gfx942"};
          stub.errors[function] = 101;
          static_cast<void>(second.allocate(64));
        },
        std::string(function) + " failed", "stream of the device");
  fresh_stub();
}

TEST_CASE("hip: a workspace that cannot be had is an error of bind, and the next bind works") {
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  const DeviceMemory memory = device.allocate(product_bytes);
  const LoadedKernel kernel = device.load(product());
  for (const char* function : {"hipMalloc", "hipMemsetAsync"}) {
    stub.errors[function] = 2;
    expect_hip_error([&] { static_cast<void>(bind_product(kernel, memory)); }, std::string(function) + " failed", "free device memory");
    stub.errors.clear();
  }
  CHECK(bind_product(kernel, memory).blocks() > 0);
}

TEST_CASE("hip: no runtime, one that is too old, one that is no HIP, no such device") {
  HipStub& stub = fresh_stub();
  expect_hip_error([] { static_cast<void>(Device::hip(0, "/nowhere/libamdhip64.so")); },
                   "/nowhere/libamdhip64.so of KILN_HIP_PATH could not be loaded", "KILN_DEVICE=emulated");
  expect_hip_error([] { static_cast<void>(Device::hip(0, "libm.so.6")); }, "has no function hipRuntimeGetVersion", "6.2 to 7.x");
  stub.version = 60143484;
  expect_hip_error([] { static_cast<void>(stub_device()); }, "is version 6.1.43484, Kiln needs 6.2.0 or newer", "ROCm 6.2");
  fresh_stub();
  expect_hip_error([] { static_cast<void>(stub_device(1)); }, "HIP has 1 device", "from 0 to 0");
  stub.devices.clear();
  expect_hip_error([] { static_cast<void>(stub_device(0)); }, "HIP has 0 devices", "emulated device");
  fresh_stub();
  stub.devices = {"gfx90a"};
  expect_hip_error([] { static_cast<void>(stub_device()); }, "Kiln generates no code for it", "gfx942");
  fresh_stub();
}
