// Random inputs: the same for the same seed on every platform.
#pragma once
#include "gen/reference/evaluate.h"
#include "gen/spec/spec.h"
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace kiln {

enum class InputValues : std::uint8_t {
  moderate, // of both signs, mostly within a few units
  special,  // some infinities, NaN, zeros, denormals and largest values among moderate ones
  largest,  // every other one the largest of its type, of either sign
};

struct RandomInputsOptions {
  std::int64_t dynamic_size = 3;                  // of every dynamic dim, moved into its bounds
  std::map<std::string, std::int64_t> sizes = {}; // of some of them, by name, in place of that
  InputValues values = InputValues::moderate;
};

// `size` moved into the bounds of a dynamic dim; the size of one that is static.
std::int64_t size_within(const Dim& dim, std::int64_t size);

// Tensors and scalars that fit `spec`. Strided tensors have padding filled with NaN bits.
Inputs random_inputs(const KernelSpec& spec, std::uint64_t seed, const RandomInputsOptions& options = {});

// Fills the index tensors of `spec` among `inputs`, but for those that are `given`: rows that exist, each once where that is wanted, and
// one negative index in eight. random_inputs does it.
void fill_indices(const KernelSpec& spec, Inputs& inputs, std::uint64_t seed, const std::set<std::string>& given = {});

} // namespace kiln
