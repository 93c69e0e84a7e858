// The arguments of a kernel: their order, sizes and alignment, and their text as its parameters.
#pragma once
#include "gen/emit/kernel_source.h"
#include "gen/plan/plan.h"
#include <string>
#include <vector>

namespace kiln {

// How a schedule accesses tensors of elements: `vec` at a time, or single ones when rows end within a vector.
struct Access {
  int vec = 1;
  bool ragged = false;
  int bytes(DType type) const; // that its address is a multiple of
  int stride_multiple() const { return ragged ? 1 : vec; } // elements that strides are a multiple of
};

// Pointers first: the operands of products, tensors in the order of the plan, the workspace of `workspace_bytes` if any; then
// scalars, run-time sizes and strides.
std::vector<KernelArgument> kernel_arguments(const Plan& plan, const Access& access, std::int64_t workspace_bytes = 0);

// "workspace", or a longer name when the spec uses that one itself.
std::string workspace_name(const Plan& plan);

std::string parameter_text(const Plan& plan, const std::vector<KernelArgument>& arguments);

} // namespace kiln
