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
  int expert_n = 0;         // rows of B of an expert: n, or more if the products are columns of one
  bool of_pairs = false;    // A has a row for each pair, else for each token
  bool sums = false;        // the weighted sum over a token's experts
  SkinnyGemmConfig tile = {.rows = 16, .open = true}; // what a workgroup does with a block's tile; its workgroups are those of the grid

  constexpr int threads() const { return tile.threads(); }
  constexpr int pairs() const { return tokens * top; } // at most, as all that follow
  constexpr int blocks() const { return (experts < pairs() ? experts : pairs()) + pairs() / tile.rows; }
  constexpr int column_tiles() const { return tile.tiles(); }
  constexpr long long steps() const { return static_cast<long long>(blocks()) * tile.steps(); }
  // Elements of all scales of an expert's matrix, and bytes of the matrix.
  constexpr long long scales_of_expert() const { return static_cast<long long>(tile.b.word_scales() > 0 ? expert_n : ceil_div(expert_n, 128)) * tile.groups(); }
  constexpr long long zero_bytes_of_expert() const { return tile.b.zero_bytes ? static_cast<long long>(tile.b.zero_bytes) * tile.groups() : scales_of_expert(); }
  constexpr long long bytes_of_expert() const { return static_cast<long long>(expert_n) * tile.row_bytes(); }

  // The workspace: counters, with one for each tile of columns of a sum, and parts of tiles; the sums of all pairs.
  constexpr StreamKSpace shared() const { return {.workgroups = tile.workgroups, .numbers = tile.partial_floats(), .counters = sums ? column_tiles() : 0}; }
  constexpr long long workspace_bytes() const { return shared().bytes() + (sums ? 4ll * pairs() * tile.n : 0); }
  // LDS: that of a tile, and the lists of blocks and pairs.
  constexpr int list_bytes() const { return blocks() * 4 + ceil_div(pairs() * 2, 4) * 4 + 4; }
  constexpr int lds_bytes() const { return tile.lds_bytes() + list_bytes() + 16; }

  bool operator==(const GroupedGemmConfig&) const = default;
};

// nullptr, or what is wrong with it. Serves as the host's error text and the device's static_assert.
constexpr const char* why_invalid(const GroupedGemmConfig& c) {
  if (c.experts < 1 || c.experts > 1024) return "experts must be from 1 to 1024";
  if (c.tokens < 1 || c.tokens > 128 || c.top < 1 || c.top > 16) return "tokens must be from 1 to 128, and top from 1 to 16";
  if (c.tile.rows != 16 && c.tile.rows != 32 && c.tile.rows != 64 && c.tile.rows != 128) return "rows must be 16, 32, 64 or 128";
  if (c.sums && c.tile.products != 1) return "a sum over experts is of one product";
  if (c.tile.vec < 1 || c.tile.n % c.tile.vec) return "vec must divide n";
  if (!c.tile.open || c.tile.method != GemmMethod::matrix || c.tile.a.quantises || c.tile.b.preshuffled || c.tile.rows_at_end || c.tile.atomics)
    return "products by expert take method matrix, and parts of any of their tiles";
  if (const char* const invalid = why_invalid(c.tile)) return invalid;
  if (c.tile.workgroups > c.steps()) return "workgroups must not exceed the steps of the work";
  if (c.steps() >= 1ll << 31) return "the work has too many steps: use a larger tile_n, loads or rows";
  return nullptr;
}

} // namespace kiln
