// Flat: a flat run of elements, of which every workgroup handles one tile, and the passes over it.
#pragma once
#include "common/arithmetic.h"
#include "common/stream.h"
#include "elementwise_config.h"

namespace kiln {

// `ragged`: the run may end within a chunk.
template <ElementwiseConfig config, bool ragged = !config.exact> class Flat {
  static_assert(why_invalid(config) == nullptr, "invalid ElementwiseConfig");
  static constexpr int vec = config.vec;
  static constexpr int chunks = config.chunks;
  static constexpr int stride = wave_size * vec; // a wave covers a contiguous piece, chunk behind chunk

public:
  // The tile of workgroup `block`.
  KILN_MEMBER explicit Flat(u64 elements, u32 block = platform::block_x())
      : first_(block * static_cast<u64>(config.tile()) +
               platform::uniform(platform::thread_id() / wave_size) * (chunks * stride)),
        left_(elements - first_), is_short_(elements < vec), lane_(platform::thread_id() % wave_size) {}

  template <class T> KILN_MEMBER auto full(T* tensor) const {
    const u32 lane = lane_ * vec;
    return Stream<T, vec, stride, 0, ragged>{tensor + first_, bytes_of<__remove_cv(T)>(lane), static_cast<int>(left_) - static_cast<int>(lane)};
  }
  template <class T> KILN_MEMBER auto scalar(const T* tensor) const {
    return only_element<__remove_cv(T)>(load_chunk<__remove_cv(T), 1>(tensor, 0, 0));
  }

  // Calls body(at, chunk of each stream) for every chunk of this lane. One that a lane has or has not takes no other code where the run ends.
  template <class Body, class... Streams> KILN_MEMBER void pass(Body body, Streams... streams) const {
    if constexpr (chunks == 1 && !ragged && !config.exact) pass_partial<false>(body, streams...);
    else if (config.exact || static_cast<i64>(left_) >= chunks * stride) pass_full(body, Ring<Streams, vec, config.prefetch_depth>{streams, {}}...);
    else if (ragged && is_short_) pass_partial<ragged>(body, streams...);
    else pass_partial<false>(body, streams...);
  }

  KILN_DEVICE constexpr At at(int chunk) { return {chunk, vec, false}; }

private:
  template <class Body, class... Rings> KILN_MEMBER void pass_full(Body& body, Rings... rings) const {
#pragma unroll
    for (int c = 0; c < config.prefetch_depth; ++c) (rings.refill(at(c)), ...);
    pass_chunks<chunks, config.prefetch_depth, true>(*this, body, rings...);
  }

  template <bool is_short, class Body, class... Streams> KILN_MEMBER void pass_partial(Body& body, Streams... streams) const {
#pragma nounroll
    for (int c = 0; c < chunks; ++c) {
      const i64 left = static_cast<i64>(left_) - c * stride - static_cast<int>(lane_) * vec; // negative where nothing is
      const int count = !ragged || left >= vec ? vec : static_cast<int>(left);
      if (const At at{c, count, ragged, is_short}; left > 0) body(at, streams.load(at)...);
    }
  }

  u64 first_, left_; // of the wave: its first element, and how many there are from it to the end (negative beyond it)
  bool is_short_; // there are fewer elements than a chunk has
  u32 lane_;
};

} // namespace kiln
