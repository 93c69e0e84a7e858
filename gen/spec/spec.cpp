// KernelSpec: a named set of outputs.
#include "gen/spec/spec.h"
#include "gen/spec/names.h"
#include <utility>

namespace kiln {

KernelSpec::KernelSpec(std::string name) : name_(std::move(name)) { require_name("kernel", name_); }

KernelSpec& KernelSpec::output(std::string name, DType dtype, Expr value, OutputOptions options) {
  require_name("output", name);
  if (is_packed(dtype)) require_blocks("output '" + name + "'", dtype, value.shape(), options.layout);
  outputs_.push_back({.name = std::move(name),
                      .dtype = dtype,
                      .value = cast(dtype, std::move(value)),
                      .in_place_of = std::move(options.in_place_of),
                      .layout = options.layout});
  return *this;
}

bool operator==(const KernelSpec& a, const KernelSpec& b) { return to_text(a) == to_text(b); }

} // namespace kiln
