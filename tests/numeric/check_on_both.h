// check_on_both: check_kernel on each architecture that Kiln generates code for.
#pragma once
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>

namespace kiln::testing {

inline void check_on_both(const KernelSpec& spec, const CheckOptions& options = {}, std::uint64_t seed = 1) {
  for (const std::string_view arch : known_archs()) {
    const auto wrong = check_kernel(spec, target(arch), seed, options);
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

} // namespace kiln::testing
