// Scales of groups of k: which group a lane's load of a step lies in, and how its scale is loaded.
#pragma once
#include "common/loops.h"
#include "common/matrix.h"
#include "common/memory.h"
#include "gemm_config.h"

namespace kiln {

// Bits of an element of a matrix in memory.
template <class T> inline constexpr int gemm_bits = __is_same(T, u4x2) || is_packed<T> ? 4 : 8 * static_cast<int>(sizeof(T));

// A matrix in memory is a pointer, or a struct of its encoding with `values` and `scale`.
namespace detail {

template <class B> KILN_DEVICE const char* values_of(const B* b) { return reinterpret_cast<const char*>(b); }
template <class Matrix> KILN_DEVICE const char* values_of(Matrix b) { return reinterpret_cast<const char*>(b.values); }
template <class Matrix> KILN_DEVICE const char* scale_of(Matrix b) { return reinterpret_cast<const char*>(b.scale); }
template <class Matrix> KILN_DEVICE const char* zero_of(Matrix b) {
  if constexpr (requires { b.zero; }) return reinterpret_cast<const char*>(b.zero);
  else return nullptr;
}

} // namespace detail

// The group that a load of a step lies in: a uniform part and the lane's.
struct GroupIndex {
  u64 uniform;
  u32 lane;
};

template <GemmConfig config> struct GroupPosition {
  static constexpr u32 step_k = config.step_k(), group = config.b.group;
  static constexpr bool steps_in_group = group % step_k == 0, groups_in_step = !steps_in_group && step_k % group == 0;
  // Whether the lane's part is the same in every step, so that it can be part of the lane's offset.
  static constexpr bool lane_fixed = steps_in_group || (groups_in_step && !config.k_tail());

  u32 at = 0;      // step of the tile, the same in all lanes
  u32 lane_k = 0;  // the lane's first element of k in a load

  // The lane's fixed part, in groups.
  KILN_MEMBER u32 lane_part() const { return groups_in_step ? lane_k / group : 0; }
  // The group of load `u`, `step` steps after the current one.
  KILN_MEMBER GroupIndex index(u32 step, int u) const {
    if constexpr (steps_in_group) return {group == step_k ? static_cast<u64>(at) + step : (at + step) / (group / step_k), 0};
    if constexpr (lane_fixed) return {static_cast<u64>(at) * (step_k / group) + step * (step_k / group) + u * config.load_k() / group, 0};
    const u32 mine = ((at + step) * step_k + u * config.load_k() + lane_k) / group, last = config.groups() - 1;
    return {0, mine < last ? mine : last};
  }
};

// Loads a scale or a zero point, whose row starts at `row` bytes from `base`, and whose groups are `distance` bytes apart. The row is opaque: if all lanes had the same visible
// one, LLVM would make scalar loads. Those return in any order, so that a wait for one is a wait for all.
// A type narrower than a register stays narrow until it is used: a conversion here would wait at the end of a loop.
template <class T, u32 distance = sizeof(T)> KILN_DEVICE T load_of_group(const char* base, u32& row, GroupIndex index) {
  platform::pin_vgpr(row);
  const char* const uniform = base + index.uniform * distance;
  const u32 offset = row + index.lane * distance;
  return *reinterpret_cast<const T*>(uniform + offset);
}

// The same with groups `distance` bytes apart, which only the launch says. All groups of all rows have less than 4 GiB.
template <class T> KILN_DEVICE T load_of_group(const char* base, u32& row, GroupIndex index, u32 distance) {
  platform::pin_vgpr(row);
  return *reinterpret_cast<const T*>(base + static_cast<u32>(index.uniform) * distance + (row + index.lane * distance));
}

// A's scales in memory: row after row, or group after group.
template <GemmConfig config, class T> struct ScalesOfA {
  const char* first;
  u32 distance; // bytes from a group to the next one, if group follows group

  template <class RowOf> KILN_MEMBER void start(RowOf row_of, const void* scales) {
    first = static_cast<const char*>(scales);
    if constexpr (config.a.scales_by_group) distance = row_of.count * static_cast<u32>(sizeof(T));
  }
  // The lane's group of a row, in bytes from the first scale.
  KILN_MEMBER u32 place(u32 row, u32 group) const {
    if constexpr (config.a.scales_by_group) return row * sizeof(T) + group * distance;
    else return (row * config.groups() + group) * sizeof(T);
  }
  // What is loaded may have the scales of several groups of a row.
  template <class Loaded = T> KILN_MEMBER Loaded load(u32& place, GroupIndex index) const {
    if constexpr (config.a.scales_by_group) return load_of_group<Loaded>(first, place, index, distance);
    else return load_of_group<Loaded, sizeof(T)>(first, place, index);
  }
};

// What an encoding gives for the words of both operands that are multiplied: here as they lie, narrower ones widened.
struct PlainWords {
  // Word `w` of what is multiplied for 16 bytes of B, the lane's of its load (product, row, u).
  template <class A, class B> KILN_MEMBER Word16 b_word(const Word16& loaded, int, int, int, int w) const {
    if constexpr (gemm_bits<A> > gemm_bits<B>) return widen<A, B>(loaded, w);
    else return loaded;
  }
  // A word of A in the order of k that b_word has.
  template <class A> KILN_DEVICE Word16 a_word(const Word16& loaded) { return loaded; }
};

struct NoScales : PlainWords {
  struct Operands {
    template <class RowOf> KILN_MEMBER void start(RowOf, const void*, u32) {}
    template <class RowOf, class... Bs> KILN_MEMBER void move_to(u32, u32, RowOf, Bs...) {}
    KILN_MEMBER void advance(int) {}
  };
  KILN_MEMBER void load(Operands&, u32) {}
  KILN_MEMBER void cut(bool, int) {}
};

// A scale of type T for every group of a row of B, [row][group], which a lane loads for each of its words.
template <GemmConfig config, class T> struct WordScaleOperands {
  static constexpr int rows = config.tile_n / config.rows_per_load();
  static constexpr u32 scale_bytes = sizeof(T);
  const char* scale[config.products];
  GroupPosition<config> position;
  u32 scale_row[rows];

  template <class RowOf> KILN_MEMBER void start(RowOf, const void*, u32 lane_k) { position.lane_k = lane_k; }
  // `row_of(i)` is the lane's row of the tile in its i-th load.
  template <class RowOf, class... Bs> KILN_MEMBER void move_to(u32 tile, u32 step, RowOf row_of, Bs... matrices) {
    const u64 first = static_cast<u64>(tile) * config.tile_n * config.groups();
    int p = 0;
    ((scale[p++] = detail::scale_of(matrices) + first * scale_bytes), ...);
#pragma unroll
    for (int i = 0; i < rows; ++i) scale_row[i] = (row_of(i) * config.groups() + fixed_part()) * scale_bytes;
    position.at = step;
  }
  KILN_MEMBER void advance(int steps) { position.at += steps; }
  // The lane's groups before those of the step, where they are the same in all.
  KILN_MEMBER u32 fixed_part() const { return position.lane_fixed && !config.wide_scales() ? position.lane_part() : 0; }
};
template <GemmConfig config, class T> struct WordScales {
  using Operands = WordScaleOperands<config, T>;
  T scale[config.products][Operands::rows][config.loads]; // as bits

  KILN_MEMBER void load(Operands& from, u32 step) {
    each_load([&](int p, int i, int u) KILN_LAMBDA { scale[p][i][u] = load_of_group<T>(from.scale[p], from.scale_row[i], from.position.index(step, u)); });
  }
  // Beyond the end of k weights are 0, whatever the scale is.
  KILN_MEMBER void cut(bool beyond, int u) {
    for_each<config.products, Operands::rows>([&](int p, int i) KILN_LAMBDA { scale[p][i][u] = beyond ? T{} : scale[p][i][u]; });
  }

protected:
  template <class F> static KILN_MEMBER void each_load(F f) {
    for_each<config.loads, config.products, Operands::rows>([&](int u, int p, int i) KILN_LAMBDA { f(p, i, u); });
  }
};

} // namespace kiln
