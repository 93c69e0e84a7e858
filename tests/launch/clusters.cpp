// Kernels whose rows have several workgroups, on their way through Jit to a program that replays a graph: bound once, and launched again
// and again with nothing between the launches.
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_inputs.h"
#include "runtime/jit/jit.h"
#include "tests/launch/loaded.h"

using namespace kiln;
using kiln::test::fresh_stub;
using kiln::test::HipStub;
using kiln::test::stub_device;

namespace {

KernelSpec norm_of_few_rows(std::int64_t columns) {
  const Expr x = input("x", f16, {dynamic("rows", 1, 2), columns});
  return KernelSpec("norm").output("y", f16, x * rsqrt(row_mean(x * x) + 1e-5));
}

JitOptions without_cache() {
  JitOptions silent;
  silent.compile.environment = process_environment();
  silent.log = {};
  return silent;
}

// Inputs, what they give, and the launch that computes it.
struct Replay {
  Inputs inputs;
  DeviceMemory x;
  BoundKernel bound;
};

} // namespace

TEST_CASE("clusters: Jit chooses one for few rows, and its launch is one call of HIP, which a graph can hold") {
  HipStub& stub = fresh_stub();
  const Device device = stub_device();
  Jit jit(device, without_cache());
  const LoadedKernel kernel = device.load(jit.compile(norm_of_few_rows(16384)));
  REQUIRE(kernel.kernel().workspace_bytes() > 0);
  const DeviceMemory memory = device.allocate(4 * 2 * 16384);
  const BoundKernel bound =
      kernel.bind({{"x", memory.tensor(f16, {2, 16384})}, {"y", memory.tensor(f16, {2, 16384}, 0, std::size_t{2} * 2 * 16384)}});
  CHECK(bound.blocks() > 2);
  stub.calls.clear();
  stub.parameter_sizes.clear();
  for (const KernelArgument& a : kernel.kernel().arguments()) stub.parameter_sizes.push_back(static_cast<std::size_t>(a.size));
  int a_stream = 0;
  for (int i = 0; i < 3; ++i) bound.launch(&a_stream);
  CHECK(stub.calls == std::vector<std::string>(3, "hipModuleLaunchKernel")); // the workspace is not zeroed again
  REQUIRE(stub.launches.size() == 3);
  CHECK(stub.launches[0].parameters == stub.launches[2].parameters); // what a graph has kept is what the next launch would pass
}

TEST_CASE("clusters: a workspace that is given belongs to one kernel while that is bound") {
  const Device device = Device::emulated("gfx942");
  Jit jit(device, without_cache());
  const auto kernel_of = [&](std::int64_t columns) {
    return device.load(
        jit.compile(norm_of_few_rows(columns), {"vec=4", "threads_per_row=64", "rows_per_block=1", "prefetch_depth=1", "tiles=2"}));
  };
  const LoadedKernel one = kernel_of(512), other = kernel_of(1024);
  const DeviceMemory memory = device.allocate(4 * 2 * 1024), workspace = device.allocate(512);
  device.zero(workspace.data(), workspace.bytes());
  const auto bind = [&](const LoadedKernel& kernel, std::int64_t columns, std::size_t offset) {
    const std::int64_t bytes = kernel.kernel().workspace_bytes();
    return kernel.bind({{"x", memory.tensor(f16, {2, columns})},
                        {"y", memory.tensor(f16, {2, columns}, 0, std::size_t{2} * 2 * 1024)},
                        {"workspace", workspace.tensor(u8, {bytes}, 0, offset)}});
  };
  {
    const BoundKernel first = bind(one, 512, 0), again = bind(one, 512, 0); // launches of one kernel in turn
    CHECK_THROWS_WITH_AS(bind(other, 1024, 0), doctest::Contains("are the workspace of another kernel, norm"), UserError);
    CHECK_NOTHROW(bind(other, 1024, 256));
  }
  CHECK_NOTHROW(bind(other, 1024, 0)); // the caller has zeroed it again
}

TEST_CASE("clusters: two launches in turn on one workspace, more often than there are generations") {
  const KernelSpec spec = norm_of_few_rows(512);
  for (const char* arch : {"gfx942", "gfx950"}) {
    const Device device = Device::emulated(arch);
    Jit jit(device, without_cache());
    const LoadedKernel kernel =
        device.load(jit.compile(spec, {"vec=4", "threads_per_row=64", "rows_per_block=1", "prefetch_depth=1", "tiles=2"}));
    const auto bytes = kernel.kernel().workspace_bytes();
    REQUIRE(bytes > 0);
    const DeviceMemory workspace = device.allocate(static_cast<std::size_t>(bytes)), y = device.allocate(2 * 2 * 512);
    device.zero(workspace.data(), workspace.bytes());
    std::vector<Replay> replays;
    for (const std::uint64_t seed : {3, 4}) {
      Inputs inputs = random_inputs(spec, seed, {.dynamic_size = 2});
      const Tensor& values = inputs.tensors.at("x");
      DeviceMemory x = device.upload(values, "x");
      BoundKernel bound =
          kernel.bind({{"x", x.tensor(f16, values.shape())}, {"y", y.tensor(f16, {2, 512})}, {"workspace", workspace.tensor(u8, {bytes})}});
      replays.push_back({std::move(inputs), std::move(x), std::move(bound)});
    }
    // A part that an earlier launch left is the other input's: whoever took it for its own would compute something else.
    constexpr int generations = 256;
    for (int i = 0; i < generations + 4; ++i) {
      const Replay& replay = replays[static_cast<std::size_t>(i % 2)];
      replay.bound.launch();
      if (i >= 4 && i < generations - 2) continue;
      Outputs actual;
      actual.emplace("y", device.download(y.tensor(f16, {2, 512})));
      const auto wrong = find_mismatch(actual, evaluate_bounds(spec, replay.inputs));
      CHECK_MESSAGE(!wrong, fmt::format("{}, launch {}: {}", arch, i, wrong ? to_text(*wrong) : ""));
    }
  }
}
