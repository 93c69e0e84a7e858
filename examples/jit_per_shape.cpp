// JIT per shape: columns are compiled in, so each width that turns up gets a kernel of its own, once; any number of rows runs
// with it. The second time a shape comes it is a lookup. The device is KILN_DEVICE's, or the first GPU.
#include <exception>
#include <fmt/format.h>
#include <kiln/kiln.h>

using namespace kiln;

// The model's norm for one width. The Jit knows a spec that it has seen, so nothing is kept here.
KernelSpec norm(std::int64_t cols) {
  const Expr x = input("x", bf16, {dynamic("rows"), cols}), weight = input("weight", bf16, {cols});
  return KernelSpec("norm").output("y", bf16, x * rsqrt(row_mean(x * x) + 1e-6) * weight);
}

int main() try {
  const Device device = default_device();
  Jit jit(device);
  struct Batch {
    std::int64_t rows, cols;
  };
  for (const auto& [rows, cols] : std::vector<Batch>{{2, 1024}, {1, 5120}, {3, 1024}, {4, 5120}}) {
    const LoadedKernel kernel = device.load(jit.compile(norm(cols))); // an engine keeps it, as long as it has such a layer
    Tensor twos(bf16, {rows, cols}), ones(bf16, {cols});
    for (std::int64_t i = 0; i < twos.size(); ++i) twos.set(i, 2);
    for (std::int64_t i = 0; i < ones.size(); ++i) ones.set(i, 1);
    const DeviceMemory x = device.upload(twos), weight = device.upload(ones), y = device.allocate(x.bytes());
    const DeviceTensor result = y.tensor(bf16, {rows, cols});
    kernel.bind({{"x", x.tensor(bf16, {rows, cols})}, {"weight", weight.tensor(bf16, {cols})}, {"y", result}}).launch();
    fmt::print("[{}, {}]: every element is {}\n", rows, cols, device.download(result).at(rows * cols - 1));
  }
  fmt::print("{}", to_text(jit.stats()));
  return jit.stats().memory_hits == 2 ? 0 : 1;
} catch (const std::exception& error) { // errors say the subject, the fact and the remedy
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
