// First kernel: a residual add, RMS norm and quantisation to fp8, as one kernel, for both architectures. Needs no GPU.
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include <fmt/format.h>

int main() {
  using namespace kiln;
  for (const Target& to : {target("gfx942"), target("gfx950")}) {
    const Dim rows = dynamic("rows");
    const Expr x = input("x", f16, {rows, 8192}), residual = input("residual", f16, {rows, 8192});
    const Expr weight = input("weight", f16, {8192}), scale = input("scale", f32, {});

    const Expr h = cast(f16, x + residual);
    const Expr y = h * rsqrt(row_mean(h * h) + 1e-6) * weight;
    KernelSpec spec("my_norm");
    spec.output("residual_out", f16, h).output("q", to.fp8(), y / scale);

    const BuiltKernel kernel = build_kernel(spec, to);
    fmt::print("{}{}\n", to_text(kernel.schedule), isa::to_text(kernel.facts));
  }
}
