// Proves that waves_per_eu limits the registers of a kernel, that the ISA contract asks for it, and that what cannot be so is refused.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "runtime/build/build_kernel.h"
#include <doctest/doctest.h>

using namespace kiln;

namespace {

BuiltKernel build(const KernelSpec& spec, const std::vector<std::string>& settings) {
  CompileOptions options = own_process_options(process_environment());
  return build_kernel(spec, target("gfx942"), options, settings);
}

} // namespace

TEST_CASE("waves_per_eu leaves room for so many waves") {
  const KernelSpec rows = catalog_spec("add_rmsnorm_quant", {.cols = 16384, .fp8 = e4m3fnuz});
  const std::vector<std::string> many{"threads_per_row=256", "prefetch_depth=8"},
      less{"threads_per_row=256", "prefetch_depth=8", "waves_per_eu=7"};
  CHECK(build(rows, many).facts.resources.vgprs > 72);
  CHECK(build(rows, less).facts.resources.vgprs <= 72); // 512 / 7, in eights
  CHECK_THROWS_WITH_AS(build(rows, {"threads_per_row=256", "prefetch_depth=8", "waves_per_eu=8"}),
                       doctest::Contains("no schedule keeps its ISA contract"), Error);
  const KernelSpec product = catalog_spec("gemm", {.dtype = e4m3fnuz, .fp8 = e4m3fnuz, .m = 8, .n = 2304, .k = 4096});
  CHECK(build(product, {"loads=1", "stages=8", "waves_per_eu=7"}).facts.resources.vgprs <= 72);
}
