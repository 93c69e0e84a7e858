// Prefetched: operands of an epilogue that lanes load for their chunks of C while the last steps come, and keep in registers.
#pragma once
#include "common/loops.h"
#include "common/tile_chunk.h"
#include "gemm_config.h"

namespace kiln {

// Along which indices of C an operand varies.
enum class Along { rows, columns, both };

// `Places` counts a lane's chunks of a tile, and how many of their rows and columns differ: chunks go through columns first.
template <Along along, class T> struct PrefetchedOperand {
  const T* tensor;
  template <class Places> static constexpr int values = along == Along::rows      ? Places::chunk_rows
                                                        : along == Along::columns ? Places::chunk_columns
                                                                                  : Places::chunks;
  template <class Places> static constexpr int value_of_chunk(int c) {
    return along == Along::rows ? c / (Places::chunks / Places::chunk_rows) : c % values<Places>;
  }
  template <class Places> static constexpr int chunk_of_value(int i) {
    return along == Along::rows ? i * (Places::chunks / Places::chunk_rows) : i;
  }
  template <class C> KILN_MEMBER auto load(const C& chunk) const {
    if constexpr (along == Along::rows) return chunk.of_row(tensor);
    else if constexpr (along == Along::columns) return chunk.ahead(chunk.columns(tensor));
    else return chunk.ahead(chunk.full(tensor));
  }
};
template <class T> KILN_DEVICE PrefetchedOperand<Along::rows, T> prefetched_rows(const T* rows) { return {rows}; }
template <class T> KILN_DEVICE PrefetchedOperand<Along::columns, T> prefetched_columns(const T* columns) { return {columns}; }
template <class T> KILN_DEVICE PrefetchedOperand<Along::both, T> prefetched_elements(const T* elements) { return {elements}; }

template <class... Operands> struct Prefetched {
  template <GemmConfig config, class Places> struct Values {
    template <class ChunkOf> KILN_MEMBER void load(const Prefetched&, ChunkOf) {}
    KILN_MEMBER void pin() {}
    template <class F, class... Before> KILN_MEMBER void call(F& f, int, Before... before) const { f(before...); }
  };
};
template <class First, class... Rest> struct Prefetched<First, Rest...> {
  First first;
  Prefetched<Rest...> rest;

  // A lane's, in registers.
  template <GemmConfig config, class Places> struct Values {
    using Value = decltype(First().load(TileChunk<config.n, config.vec>(0, 0, 0)));
    static constexpr int count = First::template values<Places>;
    Value of[count];
    typename Prefetched<Rest...>::template Values<config, Places> rest;

    // chunk_of(c): a TileChunk that exists.
    template <class ChunkOf> KILN_MEMBER void load(const Prefetched& operands, ChunkOf chunk_of) {
      for_each<count>([&](int i) KILN_LAMBDA {
        of[i] = operands.first.load(chunk_of(First::template chunk_of_value<Places>(i)));
      });
      rest.load(operands.rest, chunk_of);
    }
    // Waits for them here: what comes before does not, and they are not loaded where they are used instead.
    KILN_MEMBER void pin() {
      platform::schedule_barrier();
      for_each<count>([&](int i) KILN_LAMBDA { of[i] = platform::pin_computed(of[i]); });
      rest.pin();
    }
    // f(before..., the values of chunk c).
    template <class F, class... Before> KILN_MEMBER void call(F& f, int c, Before... before) const {
      rest.call(f, c, before..., of[First::template value_of_chunk<Places>(c)]);
    }
  };
};
KILN_DEVICE Prefetched<> prefetched() { return {}; }
template <class First, class... Rest> KILN_DEVICE Prefetched<First, Rest...> prefetched(First first, Rest... rest) {
  return {first, prefetched(rest...)};
}

} // namespace kiln
