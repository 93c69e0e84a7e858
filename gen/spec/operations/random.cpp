// Random numbers: Philox 4x32-10 and what is drawn from its bits, written out in operations on i32.
#include "gen/error.h"
#include "gen/spec/math.h"
#include <array>
#include <fmt/format.h>

namespace kiln {
namespace {

// J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011): multipliers and key increments of philox4x32, and its rounds.
constexpr std::int64_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57, increment0 = 0x9E3779B9, increment1 = 0xBB67AE85;
constexpr int rounds = 10;

Expr whole(std::int64_t number) { return whole_number(number & 0xffffffff); }

} // namespace

Expr philox(const Expr& c0, const Expr& c1, const Expr& c2, const Expr& c3, const Expr& k0, const Expr& k1, std::int64_t word) {
  if (word < 0 || word > 3)
    throw UserError("function 'philox'", fmt::format("it is asked for word {}", word), "a counter gives four: use 0 to 3");
  std::array<Expr, 4> c{c0, c1, c2, c3};
  for (int round = 0; round < rounds; ++round) {
    const Expr key0 = round == 0 ? k0 : add_i32(k0, whole(increment0 * round)),
               key1 = round == 0 ? k1 : add_i32(k1, whole(increment1 * round));
    c = {bit_xor(bit_xor(umulhi(whole(multiplier1), c[2]), c[1]), key0), mul_i32(whole(multiplier1), c[2]),
         bit_xor(bit_xor(umulhi(whole(multiplier0), c[0]), c[3]), key1), mul_i32(whole(multiplier0), c[0])};
  }
  return c[static_cast<std::size_t>(word)];
}

Expr random_bits(const Expr& position, const Expr& offset, const Expr& seed) {
  const Expr counter = shift_right(position, 2), word = bit_and(position, 3);
  const auto of_word = [&](std::int64_t number) { return philox(counter, offset, 0, 0, seed, 0, number); };
  const Expr lower = select(eq(word, 0), of_word(0), of_word(1)), upper = select(eq(word, 2), of_word(2), of_word(3));
  return select(lt(word, 2), lower, upper);
}

Expr uniform(const Expr& bits) { return cast(f32, shift_right(bits, 9)) * 0x1p-23 + 0x1p-24; } // both steps are exact

Expr gumbel(const Expr& bits) { return -log(-log(uniform(bits))); }

} // namespace kiln
