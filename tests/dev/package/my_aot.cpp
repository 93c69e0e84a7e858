// Compiles this project's kernels ahead of time: the whole program.
#include <kiln/kiln.h>

static std::vector<kiln::KernelSpec> specs(const kiln::Target& target) {
  using namespace kiln;
  const Expr x = input("x", f16, {dynamic("rows"), 512}), scale = input("scale", f32, {});
  return {KernelSpec("scaled_quant").output("q", target.fp8(), x / scale)};
}

KILN_AOT_MAIN(specs)
