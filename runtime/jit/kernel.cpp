// Kernel: a compiled kernel as a user holds it.
#include "runtime/jit/kernel.h"
#include "gen/error.h"

namespace kiln {

const std::string& Kernel::spec_text() const {
  for (const auto& [field, value] : data_->kernel.key.fields)
    if (field == "spec") return value;
  throw InternalError("the key of kernel " + name() + " has no spec");
}

} // namespace kiln
