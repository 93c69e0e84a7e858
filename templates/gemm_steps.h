// Steps of a skinny GEMM: what a lane loads for one step along k, and how it is multiplied. One struct a method.
#pragma once
#include "common/matrix.h"
#include "common/memory.h"
#include "common/reduce.h"
#include "skinny_gemm_config.h"

namespace kiln {

// Where B's bytes of 16 k elements meet 16-bit A: B's word as `ratio` words of A's type, exactly. `part` counts 8 elements.
template <class A, class B> KILN_DEVICE Word16 widen(Word16 word, int part) {
  static_assert(sizeof(A) == 2 && sizeof(B) == 1);
  const Bytes<B, 8> eight = {{word[2 * part], word[2 * part + 1]}};
  const Vec<f32, 8> numbers = to<f32>(eight);
  if constexpr (__is_same(A, f16)) {
    Word16 result;
#pragma unroll
    for (int i = 0; i < 4; ++i) result[i] = __builtin_bit_cast(u32, __builtin_amdgcn_cvt_pkrtz(numbers[2 * i], numbers[2 * i + 1]));
    return result;
  } else { // every fp8 and i8 number is a bf16: its upper half as it is
    Word16 result;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const f32 low = numbers[2 * i], high = numbers[2 * i + 1];
      result[i] = __builtin_amdgcn_perm(__builtin_bit_cast(u32, high), __builtin_bit_cast(u32, low), 0x07060302u);
    }
    return result;
  }
}

// Where the loads of a lane begin, for B's tile rows and A's rows; the same for all methods.
template <SkinnyGemmConfig config, class A, class B> struct GemmOperands {
  static constexpr int lanes = config.lanes_per_row();
  static constexpr int ratio = config.a_bits / config.b_bits; // words of A that go with a word of B
  static constexpr int b_rows = config.tile_n / config.rows_per_load(); // loads that cover the rows of a tile
  static constexpr int a_rows = config.method == GemmMethod::dot ? config.rows : config.row_tiles();

  const char* a;                  // uniform
  const char* b[config.products]; // uniform: the first row of the tile
  u32 lane_k;                     // bytes of B, in a load, before this lane's
  u32 b_offset[b_rows], a_offset[a_rows];

  KILN_MEMBER void start(const A* a_matrix, u32 m) {
    const u32 lane = platform::thread_id() % 64;
    a = reinterpret_cast<const char*>(a_matrix);
    lane_k = config.method == GemmMethod::dot ? lane % lanes * 16 : lane / 16 * 16;
#pragma unroll
    for (int i = 0; i < a_rows; ++i) {
      u32 row = static_cast<u32>(i); // dot: all lanes have the same
      if constexpr (config.method == GemmMethod::matrix) row = i * 16 + lane % 16;
      if constexpr (config.method == GemmMethod::sparse) row = lane % 16 / 2;
      row = row < m ? row : m - 1; // rows that do not exist read the last one
      a_offset[i] = row * config.a_row_bytes() + (config.k_tail() ? 0 : lane_k * ratio);
    }
  }
  template <class... Bs> KILN_MEMBER void start_tile(u32 tile, const Bs*... matrices) {
    const u32 lane = platform::thread_id() % 64;
    const u64 first = static_cast<u64>(tile) * config.tile_n * config.row_bytes();
    int p = 0;
    ((b[p++] = reinterpret_cast<const char*>(matrices) + first), ...);
#pragma unroll
    for (int i = 0; i < b_rows; ++i) {
      u32 row = i * config.rows_per_load() + (config.method == GemmMethod::dot ? lane / lanes : lane % 16);
      if constexpr (config.n_tail()) {
        const u32 rows = config.n - tile * config.tile_n;
        row = row < rows ? row : rows - 1;
      }
      b_offset[i] = row * config.row_bytes() + (config.k_tail() ? 0 : lane_k);
    }
  }

  // Bytes of B along k where the load `u` of a step begins, in this lane if k_tail(), else in all.
  KILN_MEMBER u32 k_of(u32 step, int u) const {
    const u32 first = step * config.step_bytes() + u * (lanes * 16);
    if constexpr (!config.k_tail()) return first;
    const u32 mine = first + lane_k;
    return mine < config.row_bytes() ? mine : config.row_bytes() - 16;
  }
  KILN_MEMBER bool beyond(u32 step, int u) const {
    return step * config.step_bytes() + u * (lanes * 16) + lane_k >= static_cast<u32>(config.row_bytes());
  }
  // Weights are read once by one workgroup: nothing gains from keeping them in a cache.
  KILN_MEMBER Word16 load_b(int product, int row, u32 k) const {
    return platform::load_streamed(b[product] + (config.k_tail() ? 0 : k), b_offset[row] + (config.k_tail() ? k : 0));
  }
  KILN_MEMBER Word16 load_a(int row, u32 k, int word) const {
    return platform::load_word(a + (config.k_tail() ? 0 : k * ratio) + word * 16, a_offset[row] + (config.k_tail() ? k * ratio : 0));
  }
};

// What one lane holds of a step.
template <SkinnyGemmConfig config, class A, class B> struct GemmSlot {
  using Operands = GemmOperands<config, A, B>;
  Word16 b[config.products][Operands::b_rows][config.loads];
  Word16 a[Operands::a_rows][config.loads * Operands::ratio];

  KILN_MEMBER void load(const Operands& from, u32 step) {
#pragma unroll
    for (int u = 0; u < config.loads; ++u) {
      const u32 k = from.k_of(step, u);
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i) b[p][i][u] = from.load_b(p, i, k);
#pragma unroll
      for (int i = 0; i < Operands::a_rows; ++i)
#pragma unroll
        for (int w = 0; w < Operands::ratio; ++w) a[i][u * Operands::ratio + w] = from.load_a(i, k, w);
    }
  }
  // Zero what lies beyond the end of the rows, in both: the bytes that were read instead may be NaN.
  KILN_MEMBER void cut(const Operands& from, u32 step) {
#pragma unroll
    for (int u = 0; u < config.loads; ++u) {
      const bool beyond = from.beyond(step, u);
      const auto zero = [&](Word16& word) KILN_LAMBDA {
#pragma unroll
        for (int i = 0; i < 4; ++i) word[i] = beyond ? 0u : word[i];
      };
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i) zero(b[p][i][u]);
#pragma unroll
      for (int i = 0; i < Operands::a_rows; ++i)
#pragma unroll
        for (int w = 0; w < Operands::ratio; ++w) zero(a[i][u * Operands::ratio + w]);
    }
  }
};

// The sums of one wave over its steps of a tile. `to_lds(tile)` adds nothing: it stores them as tile[row * lds_row + column].
template <SkinnyGemmConfig config, class A, class B, GemmMethod method> struct GemmSums;

template <SkinnyGemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::matrix> {
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  using S = typename SumsOf<A>::type;
  S sums[config.products][Operands::b_rows][Operands::a_rows];

  KILN_MEMBER void clear() {
#pragma unroll
    for (int p = 0; p < config.products; ++p)
#pragma unroll
      for (int i = 0; i < Operands::b_rows; ++i)
#pragma unroll
        for (int r = 0; r < Operands::a_rows; ++r) sums[p][i][r] = S(0);
  }
  KILN_MEMBER void add(const Slot& slot) {
    if constexpr (has_wide_fp8_mfma && is_fp8<A> && is_fp8<B> && config.loads == 2) {
#if defined(__gfx950__)
      each([&](int p, int i, int r) KILN_LAMBDA {
        sums[p][i][r] = multiply_pair<B, A>(slot.b[p][i][0], slot.b[p][i][1], slot.a[r][0], slot.a[r][1], sums[p][i][r]);
      });
#endif
    } else {
#pragma unroll
      for (int u = 0; u < config.loads; ++u) {
        if constexpr (Operands::ratio == 1) {
          each([&](int p, int i, int r) KILN_LAMBDA { sums[p][i][r] = multiply<B, A>(slot.b[p][i][u], slot.a[r][u], sums[p][i][r]); });
        } else {
#pragma unroll
          for (int w = 0; w < Operands::ratio; ++w)
#pragma unroll
            for (int p = 0; p < config.products; ++p)
#pragma unroll
              for (int i = 0; i < Operands::b_rows; ++i) {
                const Word16 wide = widen<A, B>(slot.b[p][i][u], w);
#pragma unroll
                for (int r = 0; r < Operands::a_rows; ++r)
                  sums[p][i][r] = multiply<A, A>(wide, slot.a[r][u * Operands::ratio + w], sums[p][i][r]);
              }
        }
      }
    }
  }
  KILN_MEMBER void to_lds(f32* tile) const {
    const u32 lane = platform::thread_id() % 64;
#pragma unroll
    for (int r = 0; r < Operands::a_rows; ++r) {
      const u32 row = r * 16 + lane % 16;
      if (config.rows % 16 && row >= static_cast<u32>(config.rows)) continue;
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i)
          *reinterpret_cast<Sums*>(tile + row * config.lds_row() + p * config.tile_n + i * 16 + lane / 16 * 4) =
              __builtin_convertvector(sums[p][i][r], Sums);
    }
  }

private:
  template <class F> KILN_DEVICE void each(F f) {
#pragma unroll
    for (int p = 0; p < config.products; ++p)
#pragma unroll
      for (int i = 0; i < Operands::b_rows; ++i)
#pragma unroll
        for (int r = 0; r < Operands::a_rows; ++r) f(p, i, r);
  }
};

} // namespace kiln
