// A kernel includes what its text uses beyond what most kernels do, and no other header travels to the compiler.
#include "gen/emit/includes.h"
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include <algorithm>
#include <doctest/doctest.h>

namespace unit_includes {
using namespace kiln;

namespace {

std::vector<std::string> includes(std::string_view entry, const CatalogOptions& options, std::string_view arch = "gfx942") {
  const Target gpu = target(arch);
  const Plan plan = make_plan(catalog_spec(entry, options), gpu);
  const std::string text = emit_source(plan, choose_schedule(plan, gpu), gpu).text;
  std::vector<std::string> names;
  for (std::size_t at = text.find("#include \""); at != text.npos; at = text.find("#include \"", at + 1))
    names.push_back(text.substr(at + 10, text.find('"', at + 10) - at - 10));
  return names;
}
using Names = std::vector<std::string>;

} // namespace

TEST_CASE("kernels include what they use") {
  CHECK(includes("add_rmsnorm_quant", {.cols = 16384, .fp8 = e4m3fnuz}) == Names{"rowwise.h"});
  CHECK(includes("add_rmsnorm_quant", {.cols = 16384, .fp8 = e4m3fn}, "gfx950") == Names{"rowwise.h"});
  CHECK(includes("silu_mul", {}) == Names{"elementwise.h", "common/functions.h"});
  CHECK(includes("rmsnorm", {.cols = 8192, .max_rows = 2}) == Names{"rowwise.h", "rowwise/cluster.h"});
  CHECK(includes("mx_quant", {.mx = e4m3fn}) == Names{"rowwise.h", "common/microscaling.h", "rowwise/groups.h", "rowwise/cluster.h"});
  CHECK(includes("argmax_rows", {}) == Names{"rowwise.h", "rowwise/ranks.h"});
  CHECK(includes("gemm", {}) == Names{"gemm/gemm.h"});
}

TEST_CASE("headers are found through those that include them") {
  const auto found = included_headers("// a kernel\n#include \"rowwise.h\"\n");
  CHECK(found.contains("machine/arch.h"));
  CHECK(found.contains("common/platform.h"));
  CHECK(included_headers("#include \"common/math.h\"\n// #include \"attention.h\"\n").contains("common/mx_convert.h"));
  CHECK_FALSE(included_headers("// #include \"attention.h\"\n").contains("attention.h"));
  CHECK_FALSE(found.contains("common/mx_convert.h"));
  CHECK_FALSE(found.contains("common/matrix_instructions.h"));
}

} // namespace unit_includes
