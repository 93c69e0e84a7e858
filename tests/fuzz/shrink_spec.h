// shrink_spec: the smallest spec, in steps that each leave out something, of which a test still says that it fails.
#pragma once
#include "gen/spec/spec.h"
#include <functional>

namespace kiln::testing {

// Drops outputs, puts an operand or 1 in the place of an operation, until none of these keeps `fails` true. `fails` is only
// asked about valid specs; `spec` itself fails.
KernelSpec shrink_spec(KernelSpec spec, const std::function<bool(const KernelSpec&)>& fails);

} // namespace kiln::testing
