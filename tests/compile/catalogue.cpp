// Every entry of the catalogue, for each architecture and type, compiles with warnings as errors and without scratch.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "runtime/build/build_kernel.h"
#include <cstdlib>
#include <doctest/doctest.h>

using namespace kiln;

namespace {

void compile_one(const CatalogEntry& entry, std::string_view arch, DType dtype, std::int64_t cols) {
  CAPTURE(entry.name);
  CAPTURE(arch);
  CAPTURE(to_string(dtype));
  CompileOptions options = own_process_options(process_environment());
  options.warnings_as_errors = true;
  const Target one = target(arch);
  try {
    CatalogOptions shape{.cols = cols, .dtype = dtype, .fp8 = one.fp8()};
    if (entry.is.ranked) shape.cols = shape.n = cols % 1024 ? cols : 256; // experts
    const BuiltKernel built = build_kernel(entry.build(shape), one, options);
    CHECK(built.facts.resources.scratch_bytes == 0);
    CHECK(built.facts.resources.vgpr_spills == 0);
    CHECK(built.facts.undecodable == 0);
    CHECK(built.facts.resources.workgroup_size == built.source.launch.workgroup_threads());
  } catch (const Error& error) {
    FAIL_CHECK(error.what()); // and on to the next one
  }
}

// Each entry and type at one of two sizes, which `turn` tells apart, on one architecture; with KILN_LINT_ALL at both, on both.
void compile_all(std::int64_t cols, unsigned turn) {
  for (const CatalogEntry& entry : catalog())
    for (const DType dtype : {f16, bf16, f32}) {
      ++turn;
      if (why_not(entry, {.cols = cols}) || ((entry.is.gemm || entry.is.attention) && dtype == f32)) continue;
      for (unsigned place = 0; const std::string_view arch : known_archs())
        if ((place++ == turn % known_archs().size() && turn / 2 % 2 == 0) || std::getenv("KILN_LINT_ALL") != nullptr)
          compile_one(entry, arch, dtype, cols);
    }
}

} // namespace

TEST_CASE("the catalogue at 4096 columns") { compile_all(4096, 3); }
TEST_CASE("the catalogue at 1000 columns, a multiple of 8 only") { compile_all(1000, 1); }
