// Checks of products that the tests of this folder share.
#pragma once
#include "gen/reference/random_inputs.h"
#include "runtime/build/build_kernel.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <string>
#include <vector>

namespace kiln::testing {

using Settings = std::vector<std::string>;

inline Dim up_to(std::int64_t most) { return dynamic("m", 1, most); }

// Within bounds for `m` rows; on one architecture, which the seed chooses, and with KILN_LINT_ALL on both.
inline void check_product(const KernelSpec& spec, const Target& to, std::uint64_t seed, std::int64_t m, const Settings& settings = {}) {
  if (!runs_here(to, seed)) return;
  const auto wrong = check_kernel(spec, to, seed, {.rows = m, .settings = settings});
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

// The same bits in every interleaving of two launches on one workspace, within bounds, where workgroups and waves meet.
inline void check_product_orders(const KernelSpec& spec, std::string_view arch, std::int64_t m, int count, const Settings& settings) {
  const BuiltKernel built = build_kernel(spec, target(arch), own_process_options(process_environment()), settings);
  const Inputs inputs = random_inputs(spec, 5, {.dynamic_size = m});
  const auto wrong = check_orders(spec, built, inputs, {.count = static_cast<std::uint64_t>(count), .launches = 2, .side_by_side = true});
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
}

} // namespace kiln::testing
