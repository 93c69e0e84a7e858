// Mutator: damage to bytes and text, reproducible from a seed.
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::fuzz {

class Mutator {
public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : static_cast<std::size_t>(random_() % bound); }

  // One to eight changes inside [begin, end) of `bytes`: bits, bytes, numbers that are often wrong, copies of other places. The
  // size stays, so that the rest of a format stays where it is.
  void damage(std::vector<std::uint8_t>& bytes, std::size_t begin, std::size_t end);
  // Besides damage: cut off, lengthened, a part left out or doubled.
  void reshape(std::vector<std::uint8_t>& bytes);
  // Lines left out, doubled and exchanged, words replaced by others of the text or by `words`, characters changed.
  std::string garble(std::string_view text, std::span<const std::string_view> words);

private:
  void damage_once(std::vector<std::uint8_t>& bytes, std::size_t begin, std::size_t end);
  std::mt19937_64 random_;
};

} // namespace kiln::fuzz
