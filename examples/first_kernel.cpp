// First kernel: a residual add, RMS norm and quantisation to fp8 in one kernel, from an expression to its result. It runs on the
// first GPU, or without one: KILN_DEVICE=emulated:gfx942 (or gfx950) is the CPU model.
#include <exception>
#include <fmt/format.h>
#include <kiln/kiln.h>

using namespace kiln;

// What to compute. All maths is f32 and every rounding is a cast; rows are known at launch, columns are compiled in.
KernelSpec add_norm_quant(DType fp8) {
  const Dim rows = dynamic("rows");
  const Expr x = input("x", f16, {rows, 8192}), residual = input("residual", f16, {rows, 8192});
  const Expr weight = input("weight", f16, {8192}), scale = input("scale", f32, {});
  const Expr h = cast(f16, x + residual);
  const Expr y = h * rsqrt(row_mean(h * h) + 1e-6) * weight;
  return KernelSpec("my_norm").output("h", f16, h).output("q", fp8, y / scale);
}

// An engine has buffers of its own: DeviceTensor{.data = address, .dtype = f16, .shape = {4, 8192}} is all that bind needs.
DeviceMemory filled(const Device& device, DType type, std::vector<std::int64_t> shape, float value) {
  Tensor tensor(type, std::move(shape));
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, value);
  return device.upload(tensor);
}

int main() try {
  const Device device = default_device();
  const DType fp8 = device.target().fp8(); // gfx942 and gfx950 have different ones, so they are different types
  Jit jit(device);                         // compiles in worker processes, keeps kernels in KILN_CACHE_DIR

  // At start-up: compiled once by all threads and processes that ask, a lookup from then on.
  const LoadedKernel kernel = device.load(jit.compile(add_norm_quant(fp8)));

  const DeviceMemory x = filled(device, f16, {4, 8192}, 1), residual = filled(device, f16, {4, 8192}, 2);
  const DeviceMemory weight = filled(device, f16, {8192}, 3), scale = filled(device, f32, {}, 0.5);
  const DeviceMemory h = device.allocate(4 * 8192 * 2), q = device.allocate(4 * 8192);

  // When buffers or sizes change: every argument by name, all of them checked.
  const BoundKernel norm = kernel.bind({{"x", x.tensor(f16, {4, 8192})},
                                        {"residual", residual.tensor(f16, {4, 8192})},
                                        {"weight", weight.tensor(f16, {8192})},
                                        {"scale", scale.tensor(f32, {})},
                                        {"h", h.tensor(f16, {4, 8192})},
                                        {"q", q.tensor(fp8, {4, 8192})}});
  norm.launch(); // the hot path: one call of HIP, here on the default stream
  device.synchronize();

  const float first = device.download(q.tensor(fp8, {4, 8192})).at(0);
  fmt::print("{}: every element of q is {}\n{}", device.description(), first, to_text(jit.stats()));
  return first == 6 ? 0 : 1;            // 3 is the norm's weight, 0.5 the scale
} catch (const std::exception& error) { // errors say the subject, the fact and the remedy
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
