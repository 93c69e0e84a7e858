// evaluate: the plain, slow, obviously right reference on the CPU, that every other way to run a spec is compared with.
#pragma once
#include "gen/reference/tensor.h"
#include "gen/spec/spec.h"
#include <map>
#include <string>

namespace kiln {

struct Inputs {
  std::map<std::string, Tensor> tensors; // by the names of the spec's inputs
  std::map<std::string, double> scalars; // by the names of its scalars; rounded to the scalar's type
};
using Outputs = std::map<std::string, Tensor>; // contiguous, whatever layout the spec asks for

// What the DSL means: every pointwise operation rounded to f32 once, sums in f64 rounded to f32 at their end, casts as
// from_f32 says. Throws UserError on an invalid spec, and when the inputs do not fit the spec: missing, of another type or
// shape, two sizes for one dimension, a size outside its bounds.
Outputs evaluate(const KernelSpec& spec, const Inputs& inputs);

// The sizes of the dynamic dims that `inputs` imply, by name. Throws UserError as evaluate does.
std::map<std::string, std::int64_t> dim_sizes(const KernelSpec& spec, const Inputs& inputs);

} // namespace kiln
