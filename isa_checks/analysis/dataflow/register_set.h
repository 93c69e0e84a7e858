// RegisterSet: a set of registers that is quick to ask about ranges.
#pragma once
#include "isa_checks/target/registers.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace kiln::isa {

class RegisterSet {
public:
  static constexpr std::size_t size = 1024; // the registers, and room for what value_sources.h numbers behind them
  bool test(std::size_t r) const { return (words_[r / 64] >> r % 64 & 1U) != 0; }
  void set(std::size_t r) { words_[r / 64] |= std::uint64_t{1} << r % 64; }
  RegisterSet& reset(std::size_t r) {
    words_[r / 64] &= ~(std::uint64_t{1} << r % 64);
    return *this;
  }
  void set_all() { words_.fill(~std::uint64_t{0}); }
  bool empty() const { return words_ == std::array<std::uint64_t, size / 64>{}; }
  bool any(RegisterRange range) const {
    bool found = false;
    each_word(range, [&](std::size_t word, std::uint64_t mask) { found = found || (words_[word] & mask) != 0; });
    return found;
  }
  std::size_t count(RegisterRange range) const {
    std::size_t sum = 0;
    each_word(range, [&](std::size_t word, std::uint64_t mask) { sum += static_cast<std::size_t>(std::popcount(words_[word] & mask)); });
    return sum;
  }
  void clear(RegisterRange range) {
    each_word(range, [&](std::size_t word, std::uint64_t mask) { words_[word] &= ~mask; });
  }
  void set(RegisterRange range) {
    each_word(range, [&](std::size_t word, std::uint64_t mask) { words_[word] |= mask; });
  }
  // The range's registers that are not in `without`.
  void set(RegisterRange range, const RegisterSet& without) {
    each_word(range, [&](std::size_t word, std::uint64_t mask) { words_[word] |= mask & ~without.words_[word]; });
  }
  void clear(const RegisterSet& others) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= ~others.words_[w];
  }
  bool meets(const RegisterSet& other) const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      if ((words_[w] & other.words_[w]) != 0) return true;
    return false;
  }
  // Makes this the union, or the intersection; true when that changed it.
  bool join(const RegisterSet& other, bool intersect) {
    const auto before = words_;
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] = intersect ? words_[w] & other.words_[w] : words_[w] | other.words_[w];
    return words_ != before;
  }

private:
  template <class Visit> static void each_word(RegisterRange range, Visit visit) {
    for (std::size_t first = range.first, end = first + range.count; first < end;) {
      const std::size_t word = first / 64, last = std::min(end, (word + 1) * 64), length = last - first;
      visit(word, (length == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1) << first % 64);
      first = last;
    }
  }
  std::array<std::uint64_t, size / 64> words_{};
};

} // namespace kiln::isa
