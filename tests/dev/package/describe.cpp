// Compiles a kernel of its own and prints what came out.
#include <iostream>
#include <kiln/gen/spec/dim.h>
#include <kiln/gen/spec/math.h>
#include <kiln/runtime/build/build_kernel.h>

int main() {
  using namespace kiln;
  const Expr x = input("x", DType::f16, {dynamic("rows"), 512});
  const KernelSpec spec = KernelSpec("twice").output("y", DType::f16, x * 2.0);
  try {
    const BuiltKernel built = build_kernel(spec, target("gfx950"));
    std::cout << built.facts.kernel << ' ' << built.facts.arch << ": " << built.facts.instructions << " instructions\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
