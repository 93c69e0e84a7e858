// Partners: what the columns have whose numbers differ in one bit, in the same lane or another one of the wave.
#pragma once
#include "common/lane_instructions.h"
#include "common/vec.h"

namespace kiln {

// Each element and the one `distance` beside it change places.
template <int distance, class T, int N> KILN_DEVICE Vec<T, N> swap_partners(Vec<T, N> x) {
  static_assert(N % (2 * distance) == 0, "pairs lie in one lane");
  Vec<T, N> result;
#pragma unroll
  for (int i = 0; i < N; ++i) result[i] = x[i ^ distance];
  return result;
}
template <int distance, class T, int N> KILN_DEVICE Bytes<T, N> swap_partners(Bytes<T, N> x) {
  static_assert(N % (2 * distance) == 0 && !is_packed<T>, "pairs lie in one lane");
  constexpr u32 neighbours = 0x02030001, pairs = 0x01000302; // the bytes that come first to last, from the right
  Bytes<T, N> result;
#pragma unroll
  for (int w = 0; w < Bytes<T, N>::words; ++w) {
    if constexpr (distance > 2) result.word[w] = x.word[w ^ distance / 4];
    else result.word[w] = platform::permute_bytes(0, x.word[w], distance == 1 ? neighbours : pairs);
  }
  return result;
}

namespace detail {

// Words of the lane whose number differs in the bit `lanes`.
template <int lanes, int count> KILN_DEVICE void take_from_partner_lane(u32 (&word)[count]) {
  if constexpr (lanes >= 16 && has_permlane_swap) {
    // Two words at a time: a and b of the even row 0 and the odd row 1. {a0 a1} {b0 b1} become {a0 b0} {a1 b1}, then {b1 b0} {a1 a0}.
#pragma unroll
    for (int i = 0; i + 1 < count; i += 2) {
      platform::swap_rows<lanes>(word[i], word[i + 1]);
      platform::swap_rows<lanes>(word[i + 1], word[i]);
      const u32 first = word[i + 1];
      word[i + 1] = word[i], word[i] = first;
    }
    if constexpr (count % 2) {
      u32 even = word[count - 1], odd = even;
      platform::swap_rows<lanes>(even, odd);
      word[count - 1] = platform::lane_id() & lanes ? even : odd;
    }
  } else {
#pragma unroll
    for (u32& each : word) each = platform::of_partner_lane<lanes>(each);
  }
}

} // namespace detail

// What each element's partner has. Pairs of a power of two `distance` apart lie in the lanes of a wave, N elements in each.
template <int distance, class C> KILN_DEVICE C partners(C x) {
  constexpr int N = width<C>;
  static_assert(is_power_of_two(distance) && is_power_of_two(N) && distance < N * wave_size, "pairs lie in one wave");
  if constexpr (distance < N) {
    return swap_partners<distance>(x);
  } else if constexpr (sizeof(C) % 4 == 0) {
    struct Words { u32 at[sizeof(C) / 4]; };
    auto words = KILN_BIT_CAST(Words, x);
    detail::take_from_partner_lane<distance / N>(words.at);
    return bit_cast<C>(words);
  } else { // one element of 16 bits
    u32 word[1] = {bit_cast<u16>(x)};
    detail::take_from_partner_lane<distance / N>(word);
    return bit_cast<C>(static_cast<u16>(word[0]));
  }
}
// The same of a value that is one in each lane, whose group of columns lies within the distance.
template <int distance, int N, class T> KILN_DEVICE T partners_of_group(T x) {
  u32 word[1] = {bit_cast<u32>(x)};
  detail::take_from_partner_lane<distance / N>(word);
  return bit_cast<T>(word[0]);
}

} // namespace kiln
