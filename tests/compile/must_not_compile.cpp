// Device code that must not compile: the static_asserts that stand behind the host's checks.
#include "gen/error.h"
#include "runtime/compile/compile.h"
#include "tests/compile/kernels.h"
#include <doctest/doctest.h>

using namespace kiln;

namespace {

// `body` of a kernel with a float pointer `p`, behind declarations `before`.
void refuse(const std::string& header, const std::string& before, const std::string& body, std::string_view message,
            std::string_view arch = "gfx942") {
  const std::string text = "#include \"" + header + "\"\nnamespace kiln {\n" + before + "\nKILN_KERNEL(256) void alone(f32* p) {\n  " +
                           body + "\n  (void)p;\n}\n}\n";
  CAPTURE(text);
  CompileOptions options = own_process_options(process_environment());
  try {
    compile(test::with_text(test::scale_kernel("alone", std::string(arch)), text), target(arch), options);
  } catch (const EnvironmentError& error) {
    CAPTURE(error.log);
    CHECK(error.log.find(message) != error.log.npos);
    return;
  }
  FAIL_CHECK("it compiles");
}

void refuse_row(const std::string& config) {
  refuse("rowwise.h", "constexpr RowwiseConfig config{" + config + "};", "const Row<config> row(1);", "invalid RowwiseConfig");
}

} // namespace

TEST_CASE("wrong row configs") {
  refuse_row(".cols = 0, .threads_per_row = 64");
  refuse_row(".cols = 64, .vec = 3, .threads_per_row = 64");
  refuse_row(".cols = 64, .vec = 32, .threads_per_row = 64");
  refuse_row(".cols = 64, .threads_per_row = 48");
  refuse_row(".cols = 4096, .threads_per_row = 2048");
  refuse_row(".cols = 4096, .vec = 8, .threads_per_row = 128, .rows_per_block = 2");
  refuse_row(".cols = 4096, .vec = 8, .threads_per_row = 256, .tiles = 3");
  refuse_row(".cols = 4096, .vec = 8, .threads_per_row = 256, .prefetch_depth = 3");
  refuse_row(".cols = 4096, .vec = 1, .threads_per_row = 32, .rows_per_block = 8"); // 128 chunks in registers
}

TEST_CASE("wrong flat configs") {
  for (const char* config : {".vec = 5", ".vec = 8, .threads = 100", ".vec = 8, .chunks = 0", ".vec = 8, .chunks = 2, .prefetch_depth = 3"})
    refuse("elementwise.h", std::string("constexpr ElementwiseConfig config{") + config + "};", "const Flat<config> flat(1);",
           "invalid ElementwiseConfig");
}

TEST_CASE("verbs that a config does not have") {
  const std::string reload =
      "constexpr RowwiseConfig config{.cols = 4096, .vec = 8, .threads_per_row = 256, .residency = Residency::reload};";
  refuse("rowwise.h", reload, "const Row<config> row(1); auto kept = row.keep<f16, 0>(); (void)kept;", "nothing is kept");
  refuse("common/reduce.h", "", "*p = reduce_group<SumOf, 128>(At{0, 1, false}, Vec<f32, 1>(*p));", "at most the lanes of a wave");
}

TEST_CASE("fp8 that neither the target nor OCP has") { // OCP's is converted by integer code, for MX formats
  refuse("common/convert.h", "", "*p = rounded<e5m2fnuz>(*p);", "not native on this target", "gfx950");
}
