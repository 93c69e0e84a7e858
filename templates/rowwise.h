// Row<config>: the rows of a [rows, cols] iteration space, and what a kernel does with them: start, pass, keep, reduce. What few kernels
// use is declared here and defined in rowwise/cluster.h, groups.h, ranks.h and views.h, which the emitted text includes when it does.
#pragma once
#include "common/arithmetic.h"
#include "common/column_map.h"
#include "common/reduce.h"
#include "common/stream.h"
#include "rowwise_config.h"

namespace kiln {

template <int tiles, int waves> class Cluster;
struct NamedRow;
struct Found;
template <class R> struct ArgAccumulator;
// Which rows a view may read: all; those that an index names, or else the first one; those alone, as others may be written meanwhile.
enum class Rows { all, named, own };
template <int k, int N, int chunks> struct Ranking;

template <RowwiseConfig config> class Row {
  static_assert(why_invalid(config) == nullptr, "invalid RowwiseConfig");
  static constexpr int vec = config.vec;
  static constexpr int stride = config.chunk_stride();
  static constexpr int chunks = config.chunks();
  static constexpr int ahead = config.prefetch_depth;
  // Constant offsets reach from -4096 to 4095 bytes, so wide rows start in the middle of that.
  template <class T> static constexpr int centre() {
    using Element = __remove_cv(T);
    return config.unrolled() && bytes_of<Element>((chunks - 1) * stride) > 4095 ? is_packed<Element> ? 8192 : 4096 / static_cast<int>(sizeof(T)) : 0;
  }

public:
  // The row or rows of this workgroup. Leave the kernel if beyond(): there are only `rows` of them.
  KILN_MEMBER explicit Row(u32 rows) : Row(rows, platform::block_x()) {}
  // Those of workgroup `block`, whoever works on them.
  KILN_MEMBER Row(u32 rows, u32 block) : rows_(rows) {
    const u32 thread = platform::thread_id();
    if constexpr (config.tiles > 1) {
      tile_ = block % config.tiles;
      is_first_tile_ = tile_ == 0;
      block /= config.tiles;
    }
    if constexpr (config.threads_per_row > wave_size) {
      row_ = block;
      lane_ = config.exact() ? thread % wave_size : thread;
      wave_ = platform::uniform(thread / wave_size);
    } else {
      lane_ = thread % config.threads_per_row;
      if constexpr (config.threads_per_row == wave_size) {
        row_ = block * config.rows_per_block + platform::uniform(thread / wave_size);
      } else {
        row_ = block * config.rows_per_block;
        row_in_block_ = thread / config.threads_per_row;
      }
    }
  }
  // A row of several workgroups, with as many reductions, that meet in the workspace.
  KILN_MEMBER Row(u32 rows, void* workspace, u32 reductions) : Row(rows) { cluster_ = {workspace, row_, reductions, tile_}; }
  // Stands behind the first loads of inputs, where the row is a cluster's.
  KILN_MEMBER void ask_generation() const { cluster_.begin(); }
  KILN_MEMBER bool beyond() const { return config.rows_per_block > 1 && row_ + row_in_block_ >= rows_; }
  KILN_MEMBER u32 index() const { return row_ + row_in_block_; }

  // A [rows, cols] tensor whose rows lie `row_stride` elements apart.
  template <class T> KILN_MEMBER auto full(T* tensor, u64 row_stride = config.cols) const {
    return stream<T>(tensor, row_ * row_stride, row_in_block_ * static_cast<u32>(row_stride));
  }
  // A [cols] tensor, the same in every row.
  template <class T> KILN_MEMBER auto columns(T* tensor) const { return stream<T>(tensor, 0, 0); }
  // The one element of a tensor.
  template <class T> KILN_MEMBER auto scalar(const T* tensor) const { return load_one(tensor, 0); }
  // The element of this row in a [rows, 1] tensor.
  template <class T> KILN_MEMBER auto of_row(const T* tensor, u64 row_stride = 1) const {
    return load_one(tensor + row_ * row_stride, row_in_block_ * static_cast<u32>(row_stride));
  }
  template <class T, class V> KILN_MEMBER void store_of_row(T* tensor, V value, u64 row_stride = 1) const {
    if (lane_ == 0 && wave_ == 0 && is_first_tile_)
      store_one(tensor + row_ * row_stride, row_in_block_ * static_cast<u32>(row_stride), value);
  }
  // The row that the index of this row names, from a [rows, 1] tensor of i32 or i64.
  template <class T> KILN_MEMBER NamedRow named(const T* index, u64 row_stride = 1) const;
  // A row that begins at `tensor`, at other columns than the lane's own or those; nothing but zeros unless it exists.
  template <ColumnMap map, Rows rows, class T> KILN_MEMBER auto view(T* tensor, bool exists = true) const;
  // The row to store that begins at `tensor`; nothing is stored unless it exists.
  template <class T> KILN_MEMBER auto scattered(T* tensor, bool exists) const;
  KILN_MEMBER auto integer_columns_at(At at) const -> Vec<i32, vec>;
  // The columns of a chunk, or their partners, as numbers.
  template <ColumnMap map> KILN_MEMBER auto columns_at(At at) const -> Vec<f32, vec>;
  // -1 in the first of each pair of columns `distance` apart, 1 in the second.
  template <int distance, ColumnMap map> KILN_MEMBER auto signs_at(At at) const -> Vec<f32, vec>;
  // The element of this lane's group at `at` in a dense [rows, ceil(cols / group)] tensor, and in one with another stride.
  template <int group, class T> KILN_MEMBER auto of_group(At at, const T* tensor) const;
  template <int group, class T> KILN_MEMBER auto of_group(At at, const T* tensor, u64 row_stride) const;
  template <int group, class T, class V> KILN_MEMBER void store_of_group(At at, T* tensor, V value) const;
  template <int group, class T, class V> KILN_MEMBER void store_of_group(At at, T* tensor, V value, u64 row_stride) const;
  // To a [ceil(cols / group), rows] tensor.
  template <int group, class T, class V> KILN_MEMBER void store_of_group_transposed(At at, T* tensor, V value, u32 rows) const;
  // How many columns this lane's group has: fewer in the last group of a row.
  template <int group> KILN_MEMBER f32 group_size(At at) const;

  // Room for `ahead` chunks of a stream in flight.
  template <class S> KILN_MEMBER Ring<S, vec, ahead> ring(S stream) const { return {stream, {}}; }
  // Issues the first loads of several rings, chunk by chunk, so that the first chunk of all is there first.
  template <class... Rings> KILN_MEMBER void fetch(Rings&... rings) const {
#pragma unroll
    for (int c = 0; c < ahead; ++c) (rings.refill(at(c)), ...);
  }

  // What one pass computes and a later one needs, chunk by chunk, in the place of config.residency. `id` tells keeps apart.
  template <class T, int id> struct Kept {
    static constexpr bool in_lds = config.residency == Residency::lds;
    Chunk<T, vec> in_register[in_lds ? 1 : chunks];
    KILN_DEVICE Chunk<T, vec>* lds() {
      static __shared__ Chunk<T, vec> storage[chunks * config.threads()];
      return storage;
    }
    KILN_MEMBER void put(At at, Chunk<T, vec> chunk) {
      if constexpr (in_lds) lds()[at.chunk * config.threads() + platform::thread_id()] = chunk;
      else in_register[at.chunk] = chunk;
    }
    KILN_MEMBER Chunk<T, vec> take(At at) {
      if constexpr (in_lds) return lds()[at.chunk * config.threads() + platform::thread_id()];
      else return in_register[at.chunk] = platform::opaque_registers(in_register[at.chunk]);
    }
    KILN_MEMBER void refill(At) {}
    static constexpr bool refills = false;
  };
  template <class T, int id> KILN_MEMBER Kept<T, id> keep() const {
    static_assert(config.residency != Residency::reload, "nothing is kept with residency reload");
    return {};
  }

  // Calls body(at, chunk of each source) for every chunk of this lane.
  template <class Body, class... Sources> KILN_MEMBER void pass(Body body, Sources&... sources) const {
    pass_chunks<chunks, ahead, config.unrolled()>(*this, body, sources...);
  }

  // Rings that were fetched for nothing. They are used here, or the compiler would move their loads behind the branch that leads here.
  template <class... Rings> KILN_MEMBER void drop(Rings&... rings) const { (drop_slots(rings), ...); }

  // Combines accumulators over the row's lanes: `total` of each is the row's result in every lane afterwards. True, of a cluster: the turn
  // over this tile ends here, and another one goes over another tile.
  // `id` tells the reductions of a kernel apart: each has LDS of its own, so that one barrier does for each. `place`: of the first in
  // the row's cluster; `last`: of these.
  template <int id, int place = 0, bool last = true, class... R> KILN_MEMBER bool reduce(Accumulator<R>&... accumulators) const {
    if constexpr (config.tiles > 1) {
      if (cluster_.template recall<place>(accumulators...)) [[unlikely]] return false;
      cluster_.know_generation();
    }
    if constexpr (config.threads_per_row <= wave_size) {
      ((accumulators.total = across_lanes<R, config.threads_per_row>(accumulators.own())), ...);
    } else {
      constexpr int partials = config.waves_per_row() * 4; // one for each 16 lanes
      constexpr int each = partials > 16 ? partials / 16 : 1;
      static __shared__ Vec<f32, each> slots[sizeof...(R)][partials / each];
      const u32 thread = platform::thread_id();
      int k = 0;
      // All 16 lanes of a row hold the same number and write it to the same place.
      ((reinterpret_cast<f32*>(slots[k++])[thread / 16] = across_lanes<R, 16>(accumulators.own())), ...);
      platform::barrier();
      k = 0;
      ((accumulators.total = platform::uniform(combine_slots<R, partials / each>(slots[k++][thread % (partials / each)]))), ...);
    }
    if constexpr (config.tiles > 1) return cluster_.template meet<place, last>(tile_, accumulators...);
    return false;
  }

  // Finds the column over the row's lanes, which is `total` in every lane afterwards; `id` and `place` as for reduce.
  template <int id, int place = 0, bool last = true, class R> KILN_MEMBER bool find(ArgAccumulator<R>& accumulator) const;

  // ---- ranks: a wave has the whole row, and its first lanes have one rank each.

  template <int k> KILN_MEMBER auto ranking() const -> Ranking<k, vec, chunks>;
  // Finds the columns of the largest elements, one after the other.
  template <int k> KILN_MEMBER void rank(Ranking<k, vec, chunks>& ranking) const;
  // The elements of a row that some are picked from. `id` tells those of a kernel apart.
  template <int id> struct Picks;
  template <int id> KILN_MEMBER auto picks() const -> Picks<id>;
  // Running sums of a row in pieces, a chunk of a wave each: put() in one pass, meet() behind it, next() in a later one. `id` as above.
  template <int id> struct Pieces;
  template <int id> KILN_MEMBER auto pieces() const -> Pieces<id>;
  // A reduction of k ranks, and the rank of the largest (smallest) one.
  template <class R, int k> KILN_MEMBER f32 reduce_ranks(f32 value) const;
  template <class R, int k> KILN_MEMBER f32 find_rank(f32 value) const;
  template <int k> KILN_MEMBER f32 sum_up_to_rank(f32 value) const;
  KILN_MEMBER u32 rank_index() const { return lane_; }
  template <int k, class T, class V> KILN_MEMBER void store_ranks(T* tensor, V value, u64 row_stride = k) const;

  // Only the last chunk of a row can be partial; every tile asks, the last one finds it so.
  KILN_MEMBER At at(int chunk) const {
    const bool partial = !config.exact() && chunk == chunks - 1;
    const int left = config.cols - static_cast<int>(column_of(chunk));
    return {chunk, !partial || left >= vec ? vec : left > 0 ? left : 0, partial, config.cols < vec};
  }
  KILN_MEMBER u32 column(At at) const { return column_of(at.chunk); }

private:
  template <class S> KILN_DEVICE void drop_slots(Ring<S, vec, ahead>& ring) {
#pragma unroll
    for (auto& slot : ring.slot) slot = platform::pin_computed(slot);
  }

  // The first column of this wave, which is the same in all lanes, and that of this lane's first chunk.
  KILN_MEMBER u32 uniform_columns() const {
    u32 columns = 0;
    if constexpr (config.exact() && config.threads_per_row > wave_size) columns += wave_ * (chunks * stride);
    if constexpr (config.tiles > 1) columns += tile_ * config.tile_cols();
    return columns;
  }
  KILN_MEMBER u32 lane_column() const { return lane_ * vec + uniform_columns(); }
  KILN_MEMBER u32 column_of(int chunk) const { return lane_column() + static_cast<u32>(chunk * stride); }
  template <int group> KILN_MEMBER u32 group_index(At at) const;
  // Whether groups lie in the part of a wave; waves and tiles take several strides.
  template <int group> static constexpr bool has_whole_groups = config.exact() && config.cols % group == 0 && stride % group == 0;
  template <int group> KILN_MEMBER u64 groups_before() const;
  template <int group> KILN_MEMBER u32 group_in_part(At at) const;

  template <class T> KILN_MEMBER auto stream(T* tensor, u64 uniform_elements, u32 lane_row_elements) const {
    using Element = __remove_cv(T);
    const u32 of_wave = uniform_columns();
    Stream<T, vec, stride, bytes_of<Element>(centre<T>()), config.ragged()> result;
    // Opaque, or LLVM adds it to the constant offsets of the accesses, which then reach too far again.
    const u32 centred = of_wave + (centre<T>() ? platform::pin_constant(centre<T>()) : 0u);
    result.base = reinterpret_cast<T*>(reinterpret_cast<Bytes1<T>*>(tensor) + bytes_of<Element>(uniform_elements + centred));
    // Opaque where turns change the tile, or LLVM adds the lane's offset to the base in front of the loop, in VGPRs.
    if constexpr (config.tiles > 1) result.base = platform::uniform_base(result.base);
    result.lane_bytes = bytes_of<Element>(lane_row_elements + lane_ * vec);
    if constexpr (config.tiles > 1) platform::pin_vgpr(result.lane_bytes);
    result.columns_left = static_cast<int>(config.cols) - static_cast<int>(of_wave + lane_ * vec);
    return result;
  }
  template <class T> KILN_MEMBER auto load_one(const T* base, u32 offset) const {
    return only_element<__remove_cv(T)>(load_chunk<__remove_cv(T), 1>(base, offset * static_cast<u32>(sizeof(T)), 0));
  }
  template <class T> KILN_MEMBER void store_one(T* base, u32 offset, f32 value) const { store_one(base, offset, to<T>(Vec<f32, 1>(value))); }
  template <class T> KILN_MEMBER void store_one(T* base, u32 offset, i32 value) const { store_one(base, offset, to<T>(Vec<i32, 1>(value))); }
  template <class T> KILN_MEMBER void store_one(T* base, u32 offset, Chunk<T, 1> element) const {
    store_chunk<T, 1>(base, offset * static_cast<u32>(sizeof(T)), 0, element);
  }
  template <int k> KILN_MEMBER u32 with_rank(u32 found, u32 rank, u32 column) const;
  KILN_MEMBER u32 take_largest(Vec<f32, vec> (&left)[chunks]) const;
  template <class R, int lanes, int N> KILN_DEVICE f32 combine_slots(Vec<f32, N> partial) {
    f32 value = partial[0];
#pragma unroll
    for (int i = 1; i < N; ++i) value = R::combine(value, partial[i]);
    return across_lanes<R, lanes>(value);
  }

  u32 rows_, row_ = 0, row_in_block_ = 0, lane_ = 0, wave_ = 0;
  mutable u32 tile_ = 0; // that this turn goes over
  bool is_first_tile_ = true; // of this workgroup. LLVM takes a tile that it knows in some lanes for one that differs in them
  struct Alone {};
  Either<(config.tiles > 1), Cluster<config.tiles, config.waves_per_row()>, Alone> cluster_; // of a row with reductions and several workgroups
};

} // namespace kiln
