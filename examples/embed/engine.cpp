// Embedding Kiln: a fused kernel of one's own, compiled for the GPU at hand and launched. `KILN_DEVICE=emulated:gfx942 engine`
// runs it without a GPU.
#include <cstdio>
#include <kiln/kiln.h>

int main() try {
  using namespace kiln;
  const Device device = default_device();
  Jit jit(device); // with the user's kernel cache

  const Dim rows = dynamic("rows");
  const Expr gate = input("gate", f16, {rows, 2048}), up = input("up", f16, {rows, 2048});
  const KernelSpec spec = KernelSpec("swiglu").output("y", f16, silu(gate) * up);
  const LoadedKernel kernel = device.load(jit.compile(spec));

  Tensor ones(f16, {4, 2048});
  for (std::int64_t i = 0; i < ones.size(); ++i) ones.set(i, 1.0F);
  const DeviceMemory a = device.upload(ones), b = device.upload(ones), c = device.allocate(a.bytes());
  const DeviceTensor y = c.tensor(f16, {4, 2048});
  const BoundKernel swiglu = kernel.bind({{"gate", a.tensor(f16, {4, 2048})}, {"up", b.tensor(f16, {4, 2048})}, {"y", y}});

  swiglu.launch(); // the hot path: one call of HIP on the stream that is given, here the default one
  device.synchronize();
  std::printf("%s: silu(1) = %.4f\n", device.description().c_str(), static_cast<double>(device.download(y).at(0)));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
