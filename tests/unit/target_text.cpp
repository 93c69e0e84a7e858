// Proves that the text of a spec may name its target's fp8.
#include "gen/plan/target_text.h"
#include "gen/error.h"
#include <doctest/doctest.h>

namespace kiln::target_text_tests {
namespace {

constexpr const char* quant = "kernel quant\ndim n\ninput x: f32[n, 64]\noutput q: $fp8[n, 64] = x / ($fp8_max)\n";

TEST_CASE("$fp8 and $fp8_max are the target's") {
  const KernelSpec on_942 = parse_spec(quant, target("gfx942")), on_950 = parse_spec(quant, target("gfx950"));
  CHECK(on_942.outputs().front().dtype == e4m3fnuz);
  CHECK(on_950.outputs().front().dtype == e4m3fn);
  CHECK(to_text(on_942).find("240") != std::string::npos);
  CHECK(to_text(on_950).find("448") != std::string::npos);
}

TEST_CASE("another name has no value, and the error says who gives values") {
  CHECK_THROWS_WITH_AS(parse_spec("kernel a dim n input x: f16[n, $cols] output y: f16[n, $cols] = x", target("gfx942")),
                       doctest::Contains("$cols, for which there is no value here; write the value, or give it in a line of a manifest"),
                       UserError);
}

TEST_CASE("filled_in ends a name where it ends") {
  CHECK(filled_in("$a$b-$a_b.$", [](const std::string& name) { return "<" + name + ">"; }) == "<a><b>-<a_b>.<>");
}

} // namespace
} // namespace kiln::target_text_tests
