// Who may go before whom on a HIP device, with a stub that does what HIP 7.2 does: streams, captures, a device that is reset.
#include "tests/launch/loaded.h"
#include <algorithm>
#include <set>

using namespace kiln;
using kiln::test::bind_product;
using kiln::test::fresh_stub;
using kiln::test::HipStub;
using kiln::test::product;
using kiln::test::product_bytes;
using kiln::test::stub_device;

namespace {

std::vector<std::byte> block_of(const BoundKernel& bound) { return {bound.argument_block().begin(), bound.argument_block().end()}; }

std::int64_t calls(const HipStub& stub, const char* function) { return std::ranges::count(stub.calls, function); }

} // namespace

TEST_CASE("lifetimes: a BoundKernel with a workspace goes after the stream of its last launch") {
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  const DeviceMemory memory = device.allocate(product_bytes);
  {
    const LoadedKernel kernel = device.load(product());
    int a_stream = 0;
    {
      const BoundKernel bound = bind_product(kernel, memory);
      bound.launch(&a_stream);
      stub.destroyed_streams.insert(&a_stream); // hipStreamDestroy
      stub.calls.clear();
    }
    CHECK(stub.calls.empty()); // no stream is asked, no event is made
  }
  CHECK(!stub.crashed);
  CHECK(stub.allocations.size() == 1); // the workspace is freed with the kernel
}

TEST_CASE("lifetimes: a workspace is not taken again before the device was waited for") {
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  const DeviceMemory memory = device.allocate(product_bytes);
  const LoadedKernel kernel = device.load(product());
  const auto launched = [&] { // as a temporary
    const BoundKernel bound = bind_product(kernel, memory);
    bound.launch();
    return block_of(bound);
  };
  std::set<std::vector<std::byte>> seen;
  for (std::size_t i = 0; i < WorkspacePool::max_retired; ++i) seen.insert(launched());
  CHECK(seen.size() == WorkspacePool::max_retired); // each its own
  CHECK(calls(stub, "hipDeviceSynchronize") == 0);
  stub.calls.clear();
  for (std::size_t i = 0; i < WorkspacePool::max_retired; ++i) CHECK(seen.contains(launched()));
  CHECK(calls(stub, "hipDeviceSynchronize") == 1); // once, then all of them are free
  CHECK(calls(stub, "hipMalloc") == 0);
  { // bound and never launched: free at once
    const auto first = block_of(bind_product(kernel, memory));
    CHECK(block_of(bind_product(kernel, memory)) == first);
  }
  stub.errors["hipDeviceSynchronize"] = 719; // an error of an earlier launch comes up in bind, and is not lost
  const auto bind_all = [&] {
    for (std::size_t i = 0; i <= WorkspacePool::max_retired; ++i) static_cast<void>(launched());
  };
  CHECK_THROWS_WITH_AS(bind_all(), doctest::Contains("hipDeviceSynchronize failed"), EnvironmentError);
  stub.errors.clear();
  bind_all();
}

TEST_CASE("lifetimes: what goes while a stream is captured leaves the capture alone") {
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  std::optional<DeviceMemory> memory = device.allocate(product_bytes);
  std::optional<LoadedKernel> kernel = device.load(product());
  std::optional<BoundKernel> bound = bind_product(*kernel, *memory);
  bound->launch();
  stub.capturing = true; // another thread's, in global mode
  bound.reset(), kernel.reset(), memory.reset();
  CHECK(!stub.capture_invalid);
  CHECK(stub.modules == 1); // unloading waits for the device, so it comes later
  CHECK(stub.allocations.empty());
  CHECK_THROWS_WITH_AS(static_cast<void>(device.allocate(64)), doctest::Contains("hipErrorStreamCaptureUnsupported"), EnvironmentError);
  stub.capturing = false;
  static_cast<void>(device.allocate(64));
  CHECK(stub.modules == 0);
}

TEST_CASE("lifetimes: loading is not refused in a capture, binding with a new workspace is") {
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  const DeviceMemory memory = device.allocate(product_bytes);
  stub.capturing = true;
  const LoadedKernel kernel = device.load(product());
  CHECK(!stub.capture_invalid);
  CHECK_THROWS_WITH_AS(static_cast<void>(bind_product(kernel, memory)), doctest::Contains("before the capture begins"), EnvironmentError);
  stub.capturing = false;
  static_cast<void>(bind_product(kernel, memory));
}

TEST_CASE("lifetimes: hipDeviceReset before a BoundKernel with a workspace ends") {
  HipStub& stub = fresh_stub();
  {
    const Device device = stub_device();
    const DeviceMemory memory = device.allocate(product_bytes);
    const LoadedKernel kernel = device.load(product());
    const BoundKernel bound = bind_product(kernel, memory);
    bound.launch();
    stub.was_reset = true;
  }
  CHECK(!stub.crashed); // what hipFree answers is on the error output
  stub.allocations.clear();
}

TEST_CASE("lifetimes: errors of destructors leave a trace and end nothing") {
  HipStub& stub = fresh_stub();
  {
    const Device device = stub_device();
    static_cast<void>(device.load(product()));
    stub.errors["hipModuleUnload"] = 1;
    stub.errors["hipThreadExchangeStreamCaptureMode"] = 1;
  }
  CHECK(calls(stub, "hipModuleUnload") == 1);
  fresh_stub();
}
