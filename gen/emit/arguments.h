// The arguments of a kernel: their order, sizes and alignment, and their text as its parameters.
#pragma once
#include "gen/emit/kernel_source.h"
#include "gen/plan/plan.h"
#include <functional>

namespace kiln {

struct ArgumentRules {
  std::function<int(DType)> access_bytes; // the widest access to a tensor of elements: its address is a multiple of that
  int stride_multiple = 1;                // elements that strides of such tensors are a multiple of
};

// Pointers first: the matrices of products, tensors in the order of the plan, the workspace of `workspace_bytes` if any; then
// scalars, run-time sizes and strides.
std::vector<KernelArgument> kernel_arguments(const Plan& plan, const ArgumentRules& rules, std::int64_t workspace_bytes = 0);

// "workspace", or a longer name where the spec has that itself.
std::string workspace_name(const Plan& plan);

std::string parameter_text(const Plan& plan, const std::vector<KernelArgument>& arguments);

} // namespace kiln
