// Random: a seeded generator whose every draw is the same on every platform, which std's distributions are not.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace kiln {

class Random {
public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t bits() { return engine_(); }
  // From low to high, both included. The bias of the remainder is below 2^-32 for the small ranges drawn here.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(0, 99) < percent; }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53; }
  template <typename T> const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(from.size()) - 1))];
  }
  template <typename T> T pick(std::initializer_list<T> from) {
    return *(from.begin() + between(0, static_cast<std::int64_t>(from.size()) - 1));
  }

private:
  std::mt19937_64 engine_;
};

} // namespace kiln
