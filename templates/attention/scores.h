// Scores: what an emitted score expression reads, and its streams with loads ahead of their use.
#pragma once
#include "attention_config.h"
#include "common/column_map.h"
#include "common/math.h"
#include "common/stream.h"

namespace kiln {

// Four elements that were loaded one by one. They come together where they are used, and the compiler must not do it where they were
// loaded: it would wait for them there.
template <class T> struct Elements {
  Chunk<T, 1> at[4];
  KILN_MEMBER Chunk<T, 4> together() const {
    Chunk<T, 4> chunk{};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (is_byte<T>) chunk.word[0] |= platform::opaque_registers(at[i].word[0]) << (8 * i);
      else if constexpr (sizeof(T) == 2) chunk[i] = bit_cast<T>(static_cast<u16>(platform::opaque_registers<u32>(bit_cast<u16>(at[i][0]))));
      else chunk[i] = at[i][0];
    }
    return chunk;
  }
};

// A row of q as the score expression sees it: one lane has one, and four keys of it at a time, of which At::chunk is the first.
template <AttentionConfig config> class ScoreRow {
public:
  // `index` counts [sequences, tokens, heads]; `length` keys exist, of `keys` that a sequence has room for.
  KILN_MEMBER ScoreRow(u32 index, u32 length, u32 keys) : index_(index), length_(length), keys_(keys) {}
  KILN_MEMBER u32 index() const { return index_; }
  template <class T> KILN_MEMBER f32 scalar(const T* tensor) const { return one(tensor); }
  template <class T> KILN_MEMBER f32 of_row(const T* tensor, u64 row_stride = 1) const { return one(tensor + index_ * row_stride); }
  // The positions of the keys; no other map of columns is taken.
  template <ColumnMap map> KILN_MEMBER Vec<f32, 4> columns_at(At at) const {
    return Vec<f32, 4>{0.0f, 1.0f, 2.0f, 3.0f} + static_cast<f32>(at.chunk);
  }
  // Tensors with one element a key: by single elements, of keys that exist.
  template <class T> struct Stream {
    const T* tensor;
    u32 length;
    KILN_MEMBER auto load(At at) const {
      Elements<T> elements;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const u32 key = static_cast<u32>(at.chunk + i), last = length - 1;
        elements.at[i] = load_chunk<T, 1>(tensor + (key < last ? key : last), 0, 0);
      }
      return elements;
    }
  };
  template <class T> KILN_MEMBER auto full(const T* tensor) const { return full(tensor, keys_); }
  template <class T> KILN_MEMBER auto full(const T* tensor, u64 row_stride) const { return Stream<T>{tensor + index_ * row_stride, length_}; }
  template <class T> KILN_MEMBER auto columns(const T* tensor) const { return Stream<T>{tensor, length_}; }

private:
  template <class T> KILN_MEMBER f32 one(const T* from) const { return to<f32>(load_chunk<T, 1>(from, 0, 0))[0]; }
  u32 index_, length_, keys_;
};

// Says where the score expression leaves its chunk.
struct ScoreResult {
  Vec<f32, 4> value;
  KILN_MEMBER void store(At, Vec<f32, 4> v) { value = v; }
};

// Values of different types in order.
template <class... T> struct Pack {
  KILN_MEMBER Pack<> load(At) const { return {}; }
  template <class F, class... Before> KILN_MEMBER void apply(F& f, Before... before) const { f(before...); }
};
template <class T, class... Rest> struct Pack<T, Rest...> {
  T first;
  Pack<Rest...> rest;
  // For streams: a chunk of each.
  KILN_MEMBER auto load(At at) const {
    auto chunk = first.load(at);
    auto others = rest.load(at);
    return joined(chunk, others);
  }
  // f(before..., first, rest...)
  template <class F, class... Before> KILN_MEMBER void apply(F& f, Before... before) const { rest.apply(f, before..., first); }

private:
  template <class C, class... Others> KILN_DEVICE Pack<C, Others...> joined(C chunk, Pack<Others...> others) { return {chunk, others}; }
};
KILN_DEVICE Pack<> pack() { return {}; }
template <class T, class... Rest> KILN_DEVICE Pack<T, Rest...> pack(T first, Rest... rest) { return {first, pack(rest...)}; }

// The score expression of a row: body(at, product, result, chunk of each stream).
template <class Body, class Streams> struct Scored {
  Body body;
  Streams streams;
  KILN_MEMBER auto load(At at) const { return streams.load(at); }
  template <class Chunks> KILN_MEMBER Vec<f32, 4> operator()(At at, Vec<f32, 4> product, const Chunks& chunks) const {
    ScoreResult result;
    auto call = [&](auto... elements) KILN_LAMBDA { body(at, product, result, elements.together()...); };
    chunks.apply(call);
    return result.value;
  }
};
template <class Body, class... Streams> KILN_DEVICE auto scored(Body body, Streams... streams) {
  return Scored<Body, decltype(pack(streams...))>{body, pack(streams...)};
}

} // namespace kiln
