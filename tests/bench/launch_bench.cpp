// What Kiln adds to a launch: BoundKernel::launch beside the bare call of hipModuleLaunchKernel, with a HIP runtime that does
// nothing, and what bind costs. The argument is the launches of a round (200000). Exit code 1: the bound is missed.
#include "gen/catalog/catalog.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/device.h"
#include "runtime/stopwatch.h"
#include "runtime/table.h"
#include "tests/bench/arguments.h"
#include "tests/launch/hip_stub.h"
#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>

using namespace kiln;

namespace {

constexpr double max_ns = 150; // of Kiln's own code a launch
constexpr int rounds = 15;     // bare and bound in turn; the medians are compared

using LaunchFunction = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

template <class Call> double nanoseconds(int count, const Call& call) {
  const Stopwatch watch;
  for (int i = 0; i < count; ++i) call();
  return watch.milliseconds() * 1e6 / count;
}

Kernel subject() {
  const Target gpu = target(known_archs().front());
  JitOptions options = jit_options(process_environment());
  options.policy = JitPolicy::jit;
  options.workers.in_process = true;
  options.cache = {};
  return Jit(gpu, options).compile(catalog_spec("add_rmsnorm_quant", {.cols = 16384, .dtype = f16, .fp8 = gpu.fp8()}));
}

int run(int count) {
  void* library = dlopen(KILN_HIP_STUB, RTLD_NOW);
  if (library == nullptr) throw std::runtime_error(dlerror());
  auto* bare_launch = reinterpret_cast<LaunchFunction*>(dlsym(library, "hipModuleLaunchKernel"));
  kiln::test::HipStub& stub = *reinterpret_cast<decltype(&kiln_hip_stub)>(dlsym(library, "kiln_hip_stub"))();

  const Kernel kernel = subject();
  const KernelSpec spec = parse_spec(kernel.spec_text());
  const auto measure = [&](const char* title, const std::vector<std::string>& devices, Stream stream) {
    stub.devices = devices;
    stub.record = true;
    const Device device = Device::hip(0, KILN_HIP_STUB);
    const LoadedKernel loaded = device.load(kernel);
    const DeviceMemory memory = device.allocate(std::size_t{1} << 20);
    std::vector<Argument> arguments;
    std::size_t offset = 0;
    const auto add = [&](const std::string& name, DType dtype, const Shape& shape) {
      DeviceTensor tensor{.data = static_cast<std::byte*>(memory.data()) + offset, .dtype = dtype};
      for (const Dim& dim : shape) tensor.shape.push_back(dim.is_dynamic() ? 1 : dim.size());
      offset += static_cast<std::size_t>(tensor.bytes() + 255) / 256 * 256;
      arguments.emplace_back(name, tensor);
    };
    for (const Expr& e : spec.inputs()) add(e->name, e.dtype(), e.shape());
    for (const Output& o : spec.outputs()) add(o.name, o.dtype, o.value.shape());
    const BoundKernel bound = loaded.bind(arguments);
    stub.record = false;
    std::vector<void*> parameters(arguments.size() + 1);
    std::vector<double> bare, ours, bind;
    for (int i = 0; i < rounds; ++i) {
      bare.push_back(nanoseconds(
          count, [&] { bare_launch(nullptr, bound.blocks(), 1, 1, bound.threads(), 1, 1, 0, stream, parameters.data(), nullptr); }));
      ours.push_back(nanoseconds(count, [&] { bound.launch(stream); }));
      bind.push_back(nanoseconds(count / 100, [&] { static_cast<void>(loaded.bind(arguments)); }));
    }
    const double own = median(ours) - median(bare);
    fmt::print("{}", to_text(Table{.header = {title, "ns", "of the bare call", "bound"},
                                   .rows = {{"hipModuleLaunchKernel that does nothing", fmt::format("{:.1f}", median(bare)), "1.0x", "-"},
                                            {"BoundKernel::launch", fmt::format("{:.1f}", median(ours)),
                                             fmt::format("{:.1f}x", median(ours) / median(bare)), "-"},
                                            {"Kiln's own share", fmt::format("{:.1f}", own), "", fmt::format("{:.0f} ns", max_ns)},
                                            {"bind, for comparison", fmt::format("{:.0f}", median(bind)), "", "-"}},
                                   .right = {false, true, true, true}}));
    return own <= max_ns;
  };
  int a_stream = 0;
  const bool own_stream = measure("one device, a stream", {"gfx942"}, &a_stream);
  const bool default_stream = measure("8 devices, the default stream", std::vector<std::string>(8, "gfx942"), nullptr);
  if (!own_stream || !default_stream) fmt::print("the bound is missed\n");
  return own_stream && default_stream ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  const bool short_form = take_short_form(argc, argv);
  const auto count = count_argument(argc, argv, "launches", short_form ? 1000 : 200000, 1000);
  if (!count) return 2;
  try {
    const int missed = run(*count);
    return short_form ? 0 : missed;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
