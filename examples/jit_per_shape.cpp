// What an inference engine does at its start and while it serves: kernels for its shapes are compiled in the background, with
// progress; then every request is a hash lookup, and nothing compiles any more.
#include <fmt/format.h>
#include <kiln/kiln.h>

int main() {
  using namespace kiln;
  try {
    const Target gpu = target("gfx942");
    std::vector<KernelSpec> specs; // one for each row length; the number of rows is given at the launch
    for (const std::int64_t cols : {4096, 5120, 8192})
      specs.push_back(catalog_spec("add_rmsnorm_quant", {.cols = cols, .fp8 = gpu.fp8()}));

    Jit jit(gpu); // caches in KILN_CACHE_DIR, compiles in worker processes
    const auto kernels = jit.warm(
        specs, [](const Progress& p) { fmt::print("{}/{} {}, {:.1f} s left\n", p.done, p.total, p.kernel, p.remaining_s); });
    for (const auto& kernel : kernels) kernel.wait();

    const Kernel kernel = jit.compile(specs[1]); // there already
    fmt::print("{}: {} bytes, from {}\n{}", kernel.name(), kernel.code_object().size(), name(kernel.origin()),
               to_text(jit.stats()));

    JitOptions serving = jit.options(); // a process that must never compile
    serving.policy = JitPolicy::cache_only;
    try {
      Jit(gpu, serving).compile(catalog_spec("softmax", {.cols = 777}));
    } catch (const CacheMiss& miss) {
      fmt::print("not there: {} ({}...)\n", miss.kernel, miss.key.substr(0, 12));
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
