// Random tensors: the same numbers for the same seed and name on every machine and standard library.
#pragma once
#include "gen/reference/tensor.h"
#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln {

// What the numbers look like.
enum class Distribution : std::uint8_t {
  normal,   // mean 0, variance 1, as activations and weights after a norm; integers: times 32
  positive, // uniform from 0.5 to 2, as scales; integers: 1 or 2
};

// Contiguous, each element rounded to `dtype` (saturating). bool: a fair coin.
Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape, Distribution distribution, std::uint64_t seed,
                     std::string_view name);

} // namespace kiln
