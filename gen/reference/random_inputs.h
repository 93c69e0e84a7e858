// Random inputs: the same for the same seed on every platform.
#pragma once
#include "gen/reference/evaluate.h"
#include "gen/spec/spec.h"
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace kiln {

struct RandomInputsOptions {
  std::int64_t dynamic_size = 3;                  // of every dynamic dim, moved into its bounds
  std::map<std::string, std::int64_t> sizes = {}; // of some of them, by name, in place of that
  bool special_values = false;                    // some infinities, NaN, zeros, denormals and largest values among the elements
};

// Tensors and scalars that fit `spec`: moderate numbers of both signs. Strided tensors have padding filled with NaN bits.
Inputs random_inputs(const KernelSpec& spec, std::uint64_t seed, const RandomInputsOptions& options = {});

// Fills the index tensors of `spec` among `inputs`, but for those that are `given`: rows that exist, each once where that is wanted, and
// one negative index in eight. random_inputs does it.
void fill_indices(const KernelSpec& spec, Inputs& inputs, std::uint64_t seed, const std::set<std::string>& given = {});

} // namespace kiln
