// Casts to fp8, executed: every 16-bit input, as every fp8 type of each architecture, exactly what the reference says.
#include "gen/reference/evaluate.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include <cmath>
#include <doctest/doctest.h>

namespace fp8_numeric_tests {
using namespace kiln;

namespace {

constexpr std::int64_t rows = 64, cols = 1024;

Inputs every_number(DType type) {
  Inputs inputs;
  Tensor x(type, {rows, cols});
  for (std::int64_t i = 0; i < rows * cols; ++i) x.set_bits(i, static_cast<std::uint64_t>(i));
  inputs.tensors.emplace("x", std::move(x));
  return inputs;
}

} // namespace

TEST_CASE("every f16 and bf16 number as fp8: rounded, beyond the largest, infinities, NaN") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    for (const DType from : {f16, bf16})
      for (const DType type : {to.fp8_e4m3(), to.fp8_e5m2()}) {
        CAPTURE(arch);
        CAPTURE(to_string(from));
        CAPTURE(to_string(type));
        const KernelSpec spec = KernelSpec("to_fp8").output("y", type, input("x", from, {rows, cols}));
        const BuiltKernel built = build_kernel(spec, to, own_process_options(process_environment()));
        const Inputs inputs = every_number(from);
        const Tensor expected = evaluate(spec, inputs).at("y"), seen = emulate(spec, built.source, built.object, inputs).outputs.at("y");
        std::int64_t others = 0, nans = 0;
        for (std::int64_t i = 0; i < rows * cols; ++i) {
          const bool both_nan = std::isnan(expected.at(i)) && std::isnan(seen.at(i)); // of any bits
          nans += both_nan;
          others += !both_nan && expected.bits(i) != seen.bits(i);
        }
        CHECK(others == 0);
        CHECK(nans > 0);
      }
  }
}

} // namespace fp8_numeric_tests
