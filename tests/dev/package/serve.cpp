// Serves kernels from the caches that the build made, and compiles nothing: serve CACHE CACHE.
#include <iostream>
#include <kiln/kiln.h>

int main(int argc, char** argv) {
  using namespace kiln;
  JitOptions options = jit_options(process_environment());
  options.policy = JitPolicy::cache_only;
  options.cache = {.folder = {}, .layers = {argv + 1, argv + argc}, .remote = {}};
  try {
    const Target gpu = target("gfx950");
    Jit jit(gpu, options);
    const Expr x = input("x", f16, {dynamic("rows"), 512}), scale = input("scale", f32, {});
    const KernelSpec own = KernelSpec("scaled_quant").output("q", gpu.fp8(), x / scale);
    for (const KernelSpec& spec : {catalog_spec("softmax", {.cols = 1024}), own}) {
      const Kernel kernel = jit.compile(spec);
      std::cout << kernel.name() << " from a " << to_string(kernel.origin()) << ", " << kernel.code_object().size() << " bytes\n";
    }
    jit.compile(catalog_spec("softmax", {.cols = 2048}));
  } catch (const CacheMiss& miss) {
    std::cout << "missing: " << miss.kernel << ' ' << miss.arch << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return 1;
}
