// GroupedGemmConfig: how workgroups share the products of tokens with the matrices of their experts. Shared by the host and the device.
//
// A block is up to `rows` pairs of one expert, which share its weights. The work is cut into steps as a product's is
// (skinny_gemm_config.h), tile after tile; a tile is a block and `tile_n` columns. Blocks of the same columns follow each other. How many
// blocks there are is known at launch: every workgroup takes an equal run of steps, but for one.
#pragma once
#include "skinny_gemm_config.h"

namespace kiln {

struct GroupedGemmConfig {
  int experts = 0, top = 0; // experts of all, and of a token
  int tokens = 0;           // at most
  int n = 0, k = 0;         // of one product
  int expert_n = 0;         // rows of B of an expert: n, or more if the products are columns of one
  int a_bits = 0, b_bits = 0, group = 0; // as of SkinnyGemmConfig, and the next
  bool mx = false;
  int zero_bytes = 0;
  bool of_pairs = false; // A has a row for each pair, else for each token
  bool sums = false;     // the weighted sum over a token's experts
  int products = 1;
  int rows = 16;         // of a block
  int tile_n = 64;
  int waves = 4;
  int loads = 1;
  int ring = 4;
  int workgroups = 1;
  int vec = 4;

  constexpr int threads() const { return waves * wave_size; }
  constexpr int pairs() const { return tokens * top; } // at most, as all that follow
  constexpr int blocks() const { return (experts < pairs() ? experts : pairs()) + pairs() / rows; }
  // What a workgroup does with a tile.
  constexpr SkinnyGemmConfig tile() const {
    return {.rows = rows, .n = n, .k = k, .a_bits = a_bits, .b_bits = b_bits, .group = group, .mx = mx, .zero_bytes = zero_bytes,
            .open = true, .products = products, .tile_n = tile_n, .waves = waves, .loads = loads, .ring = ring,
            .workgroups = workgroups, .vec = vec};
  }
  constexpr int column_tiles() const { return ceil_div(n, tile_n); }
  constexpr long long steps() const { return static_cast<long long>(blocks()) * tile().steps(); }
  // Elements of all scales of an expert's matrix, and bytes of the matrix.
  constexpr long long scales_of_expert() const { return static_cast<long long>(tile().scales_of_lanes() ? expert_n : ceil_div(expert_n, 128)) * tile().groups(); }
  constexpr long long zero_bytes_of_expert() const { return zero_bytes ? static_cast<long long>(zero_bytes) * tile().groups() : scales_of_expert(); }
  constexpr long long bytes_of_expert() const { return static_cast<long long>(expert_n) * tile().row_bytes(); }

  // The workspace: counters, with one for each tile of columns of a sum, and parts of tiles; the sums of all pairs.
  constexpr StreamKSpace shared() const { return {.workgroups = workgroups, .numbers = tile().partial_floats(), .counters = sums ? column_tiles() : 0}; }
  constexpr long long workspace_bytes() const { return shared().bytes() + (sums ? 4ll * pairs() * n : 0); }
  // LDS: that of a tile, and the lists of blocks and pairs.
  constexpr int list_bytes() const { return blocks() * 4 + ceil_div(pairs() * 2, 4) * 4 + 4; }
  constexpr int lds_bytes() const { return tile().lds_bytes() + list_bytes() + 16; }

  bool operator==(const GroupedGemmConfig&) const = default;
};

// nullptr, or what is wrong with it. Serves as the host's error text and the device's static_assert.
constexpr const char* why_invalid(const GroupedGemmConfig& c) {
  if (c.experts < 1 || c.experts > 1024) return "experts must be from 1 to 1024";
  if (c.tokens < 1 || c.tokens > 128 || c.top < 1 || c.top > 16) return "tokens must be from 1 to 128, and top from 1 to 16";
  if (c.rows != 16 && c.rows != 32 && c.rows != 64 && c.rows != 128) return "rows must be 16, 32, 64 or 128";
  if (c.sums && c.products != 1) return "a sum over experts is of one product";
  if (c.vec < 1 || c.n % c.vec) return "vec must divide n";
  if (const char* const invalid = why_invalid(c.tile())) return invalid;
  if (c.workgroups > c.steps()) return "workgroups must not exceed the steps of the work";
  if (c.steps() >= 1ll << 31) return "the work has too many steps: use a larger tile_n, loads or rows";
  return nullptr;
}

} // namespace kiln
