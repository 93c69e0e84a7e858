// Warm-up: all kernels of a model are asked for at its start and compile in worker processes, while the program reads weights and
// says how far it is. A kernel that is needed is waited for, and no other.
#include <exception>
#include <fmt/format.h>
#include <kiln/kiln.h>

using namespace kiln;

int main() try {
  const Device device = default_device();
  Jit jit(device);
  std::vector<KernelSpec> specs;
  for (const std::int64_t cols : {1024, 2048})
    for (const char* name : {"rmsnorm", "softmax", "silu_mul"}) specs.push_back(catalog_spec(name, {.cols = cols, .dtype = f16}));

  const auto kernels = jit.warm(specs, [](const Progress& p) {
    fmt::print("{} of {}: {} is there after {:.1f} s, about {:.1f} s to go\n", p.done, p.total, p.kernel, p.elapsed_s, p.remaining_s);
  });
  fmt::print("{} kernels are on their way; the program goes on\n", kernels.size());

  std::vector<LoadedKernel> loaded;
  for (const auto& kernel : kernels) loaded.push_back(device.load(kernel.get())); // throws what the compile threw
  const JitStats stats = jit.stats();
  fmt::print("{}", to_text(stats));
  return stats.failed == 0 ? 0 : 1;
} catch (const std::exception& error) { // errors say the subject, the fact and the remedy
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
