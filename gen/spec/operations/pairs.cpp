// Functions of pairs: rotations, Hadamard transforms and Sinkhorn normalisations, written out in partners.
#include "gen/error.h"
#include "gen/spec/math.h"
#include "gen/spec/operations/helpers.h"
#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr std::int64_t max_times = 64; // of a normalisation, and as many as max_depth allows
constexpr std::int64_t max_edge = 16;  // of a matrix, whose elements are one chunk of a wave

bool is_edge(std::int64_t n) { return n > 1 && std::has_single_bit(static_cast<std::uint64_t>(n)); } // of a transform or a matrix

// Blocks of `block` consecutive columns make up a row.
void require_whole_blocks(std::string_view function, const Expr& x, std::int64_t block) {
  const auto subject = fmt::format("function '{}'", function);
  if (x.shape().empty() || x.shape().back().is_dynamic())
    throw UserError(subject, fmt::format("the columns of {} are no number", to_text(x.shape())),
                    "give it rows of known width: kernels are specialised for their columns");
  if (x.shape().back().size() % block)
    throw UserError(subject, fmt::format("{} columns are not made of blocks of {}", x.shape().back().size(), block),
                    "use a block that divides the columns");
}

// The sum over the columns whose numbers differ in the bits of `from` up to below `to`, at each of them.
Expr sum_of_partners(Expr x, std::int64_t from, std::int64_t to) {
  for (std::int64_t distance = from; distance < to; distance *= 2) x = x + partner(x, distance);
  return x;
}

} // namespace

Expr rotate(const Expr& x, std::int64_t distance) {
  const Expr other = partner(x, distance);
  return other * pair_sign(x.shape().back(), distance);
}

Expr hadamard(const Expr& x, std::int64_t n) {
  if (!is_edge(n) || n > max_paired_columns)
    throw UserError("function 'hadamard'", fmt::format("its block is {} columns", n),
                    fmt::format("use a power of two from 2 to {}", max_paired_columns));
  require_whole_blocks("hadamard", x, n);
  Expr y = x;
  for (std::int64_t distance = 1; distance < n; distance *= 2) {
    const Expr other = partner(y, distance);
    y = other - y * pair_sign(x.shape().back(), distance);
  }
  return y;
}

Expr sinkhorn(const Expr& x, std::int64_t n, std::int64_t times) {
  if (!is_edge(n) || n > max_edge)
    throw UserError("function 'sinkhorn'", fmt::format("its matrices have {} rows and columns", n), "use 2, 4, 8 or 16");
  if (times < 1 || times > max_times)
    throw UserError("function 'sinkhorn'", fmt::format("it normalises {} times", times), fmt::format("use 1 to {}", max_times));
  require_whole_blocks("sinkhorn", x, n * n);
  Expr y = x;
  for (std::int64_t i = 0; i < times; ++i) {
    y = y / sum_of_partners(y, 1, n);
    y = y / sum_of_partners(y, n, n * n);
  }
  return y;
}

std::span<const Helper> helpers() {
  using Operands = std::span<const Expr>;
  static constexpr Helper all[] = {
      {"rotate", 1, 1, [](Operands of, std::int64_t distance, std::int64_t) { return rotate(of[0], distance); }},
      {"hadamard", 1, 1, [](Operands of, std::int64_t n, std::int64_t) { return hadamard(of[0], n); }},
      {"sinkhorn", 1, 2, [](Operands of, std::int64_t n, std::int64_t times) { return sinkhorn(of[0], n, times); }},
      {"philox", 6, 1, [](Operands of, std::int64_t word, std::int64_t) { return philox(of[0], of[1], of[2], of[3], of[4], of[5], word); }},
      {"random_bits", 3, 0, [](Operands of, std::int64_t, std::int64_t) { return random_bits(of[0], of[1], of[2]); }},
      {"uniform", 1, 0, [](Operands of, std::int64_t, std::int64_t) { return uniform(of[0]); }},
      {"gumbel", 1, 0, [](Operands of, std::int64_t, std::int64_t) { return gumbel(of[0]); }},
  };
  return all;
}

const Helper* find_helper(std::string_view name) {
  const auto found = std::ranges::find(helpers(), name, &Helper::name);
  return found == helpers().end() ? nullptr : &*found;
}

} // namespace kiln
