// Random tensors: the same numbers for the same seed and name on every machine and standard library.
#include "runtime/cli/random_tensor.h"
#include "gen/reference/random.h"
#include <cmath>
#include <numbers>

namespace kiln {
namespace {

// Every name has a sequence of its own, whatever other inputs a spec has.
Random random_of(std::uint64_t seed, std::string_view name) {
  std::vector<std::uint32_t> words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  words.insert(words.end(), name.begin(), name.end());
  std::uint32_t mixed[2];
  std::seed_seq(words.begin(), words.end()).generate(std::begin(mixed), std::end(mixed));
  return Random(mixed[0] | static_cast<std::uint64_t>(mixed[1]) << 32);
}

// Box and Muller: two uniform numbers make a normal one.
double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform(0, 1)));
  return radius * std::cos(2 * std::numbers::pi * random.uniform(0, 1));
}

float draw(Random& random, DType dtype, Distribution distribution) {
  if (dtype == DType::boolean) return random.chance(50) ? 1.0f : 0.0f;
  if (distribution == Distribution::positive) return static_cast<float>(random.uniform(0.5, 2));
  return static_cast<float>(is_float(dtype) ? normal(random) : 32 * normal(random));
}

} // namespace

Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape, Distribution distribution, std::uint64_t seed,
                     std::string_view name) {
  Random random = random_of(seed, name);
  Tensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, draw(random, dtype, distribution));
  return tensor;
}

} // namespace kiln
