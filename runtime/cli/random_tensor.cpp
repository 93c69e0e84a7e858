// Random tensors: the same numbers for the same seed and name on every machine and standard library.
#include "runtime/cli/random_tensor.h"
#include <cmath>
#include <numbers>
#include <random>

namespace kiln {
namespace {

// The engine and seed_seq are defined to the bit by the standard; its distributions are not, hence the two below.
std::mt19937_64 engine_of(std::uint64_t seed, std::string_view name) {
  std::vector<std::uint32_t> words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (const char letter : name) words.push_back(static_cast<unsigned char>(letter));
  std::seed_seq sequence(words.begin(), words.end());
  return std::mt19937_64(sequence);
}

// From 0 to below 1, 53 bits.
double uniform(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1p-53; }

// Box and Muller: two uniform numbers make a normal one.
double normal(std::mt19937_64& engine) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(engine)));
  return radius * std::cos(2 * std::numbers::pi * uniform(engine));
}

float draw(std::mt19937_64& engine, DType dtype, Distribution distribution) {
  if (dtype == DType::boolean) return uniform(engine) < 0.5 ? 0.0f : 1.0f;
  if (distribution == Distribution::positive) return static_cast<float>(0.5 + 1.5 * uniform(engine));
  return static_cast<float>(is_float(dtype) ? normal(engine) : 32 * normal(engine));
}

} // namespace

Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape, Distribution distribution, std::uint64_t seed,
                     std::string_view name) {
  std::mt19937_64 engine = engine_of(seed, name);
  Tensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, draw(engine, dtype, distribution));
  return tensor;
}

} // namespace kiln
