// A program of somebody else that calls a kernel of Kiln's by tvm-ffi alone: load_module LIBRARY KERNELS. No header of Kiln is needed.
#include <cstdio>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <vector>

int main(int argc, char** argv) try {
  namespace ffi = tvm::ffi;
  if (argc != 3) return std::fprintf(stderr, "usage: load_module .../libkiln_tvm_ffi.so FOLDER|MANIFEST|FILE.kiln\n"), 2;
  const ffi::Module library = ffi::Module::LoadFromFile(argv[1]);
  const auto load = library->GetFunction("load_module").value();
  const auto kernels = load(ffi::String(argv[2]), ffi::String("")).cast<ffi::Module>(); // "": the device that KILN_DEVICE names

  constexpr std::int64_t rows = 2, cols = 512;
  std::vector<float> x(rows * cols, 3.0F), y(rows * cols);
  std::int64_t shape[] = {rows, cols};
  const DLDevice place{kDLCPU, 0}; // of an emulated device; kDLROCM for a GPU
  DLTensor in{x.data(), place, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  DLTensor out{y.data(), place, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  kernels->GetFunction("softmax").value()(&in, &out);

  std::printf("softmax of %lld equal numbers: %.8f\n", static_cast<long long>(cols), static_cast<double>(y[0]));
  return y[rows * cols - 1] == 1.0F / cols ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
