// The catalogue, executed: awkward numbers of columns, both architectures, all activation types.
#include "gen/catalog/catalog.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace kiln;

namespace {

void check_catalog(std::int64_t cols, std::int64_t rows, DType dtype, bool special_values = false) {
  for (const std::string_view arch : known_archs())
    for (const CatalogEntry& entry : catalog()) {
      const Target to = target(arch);
      const auto wrong = testing::check_kernel(entry.build({.cols = cols, .dtype = dtype, .fp8 = to.fp8()}), to, 1,
                                               {.rows = rows, .special_values = special_values});
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    }
}

} // namespace

TEST_CASE("1 column") { check_catalog(1, 5, f16); }
TEST_CASE("63 columns") { check_catalog(63, 3, bf16); }
TEST_CASE("100 columns") { check_catalog(100, 7, f32); }
TEST_CASE("129 columns") { check_catalog(129, 3, f16); }
TEST_CASE("512 columns, infinities and NaN among them") { check_catalog(512, 6, f16, true); }
TEST_CASE("4097 columns") { check_catalog(4097, 2, bf16); }
TEST_CASE("16384 columns") { check_catalog(16384, 1, f16); }
TEST_CASE("zero rows") { check_catalog(256, 0, f16); }
