// Register model of skinny GEMM: LLVM's limits, and what configs need.
#include "gen/families/gemm/register_model.h"
#include <algorithm>

namespace kiln {
namespace {

constexpr int vgprs_a_load = 4; // 16 bytes

// Limits on VGPRs of a lane, of the 256 that an instruction can name.
constexpr int max_in_all = 224;              // ring and accumulators; the rest is for addresses and the epilogue
constexpr int max_loaded = 216;              // by the ring: 220 were copied
constexpr int max_with_group_sums = 192;     // ring, scales and accumulators, if the VALU adds the sums of groups: 206 spilled
constexpr int max_exchanged = 88;            // by the ring, if lanes also exchange what they have of whole lines: 96 spilled on gfx950
constexpr int max_exchanged_and_summed = 72; // the same where the products of a token's experts are added: 80 spilled
// Two waves a SIMD have 256 each, of both kinds: accumulators of 64 beside 160 spilled. So did 192 in all if the waves' steps are no whole
// turns of the ring.
constexpr int max_of_two_waves = 192, max_of_parts_of_turns = 160, max_accumulators_of_two = 32;
constexpr int max_beside_accumulators = 228; // ring alone, if accumulators lie in AGPRs: from 236 on loaded values are copied

// Addresses, what is unpacked, and the epilogue's, as LLVM 21 compiles products of 4-bit weights.
constexpr int vgprs_of_others = 48;

// Scales and zero points. Wide scales cover four groups: two VGPRs of scales and one of zero points, of this turn and the next.
int scale_vgprs(const GemmConfig& c) { return c.wide_scales() ? gemm_scale_loads(c) / 2 * 6 : gemm_scale_loads(c); }

int ring_vgprs(const GemmConfig& c) {
  // A out of LDS: of a step and of the next one, or all row tiles.
  const int tiles_from_lds = c.staged ? 2 * c.row_tiles() : c.shares_rows() ? c.row_tiles() : 0;
  const int staged = tiles_from_lds * (c.loads * vgprs_a_load + (c.a.plain() ? 0 : 1));
  return c.stages * (c.b_loads() + gemm_a_loads(c)) * vgprs_a_load + scale_vgprs(c) + staged;
}

int accumulator_vgprs(const GemmConfig& c) {
  const int each = c.is_matrix() ? c.edge() * c.edge() / wave_size * c.row_tiles() : c.method == GemmMethod::sparse ? 4 : c.rows;
  const int tiles = c.products * c.wave_tile_n() / c.rows_per_load();
  // Block scales: the sums of a group of up to four tiles wait to be scaled and added. With many rows they lie in AGPRs.
  const bool adds_later = c.block_scaled() && c.method == GemmMethod::matrix && c.row_tiles() == 1;
  const int groups = adds_later                            ? std::min(tiles, 4) * 4 + c.products * 2
                     : c.block_scaled() && c.shares_rows() ? 2 * tiles * 4 // of two row tiles
                                                           : 0;
  return tiles * each + groups;
}

// The ring's loads, and with a tail of k a copy of one step, in which what lies beyond the end is zeroed; beside that one, if rows are
// quantised in every step, A's words of it, what its rows are multiplied by, and 16 numbers on the way with their weights.
int loaded_vgprs(const GemmConfig& c) {
  const int quantised = c.quantises_steps() && c.k_tail() ? c.row_tiles() * (c.loads * vgprs_a_load + 1) + 32 : 0;
  return (c.stages + (c.k_tail() ? 1 : 0)) * (c.b_loads() + gemm_a_loads(c)) * vgprs_a_load + quantised;
}

// Masks of a tail of k, with 4-bit weights in tiles of 64 x 64 and short rings, spilled one or two SGPRs.
bool spills_masks(const GemmConfig& c) {
  return c.b.word_scales() > 0 && c.k_tail() && c.method == GemmMethod::matrix && c.row_tiles() * c.products * c.tile_n >= 4 * 64;
}

} // namespace

int gemm_a_loads(const GemmConfig& c) {
  const int rows = c.is_matrix() ? c.loaded_row_tiles() : c.method == GemmMethod::sparse ? 1 : c.rows;
  if (c.staged) return 0;
  const int weights = c.a.norm_parts > 0 ? 1 : 0; // as many as those of a row tile
  return (rows + weights) * c.loads * (c.a.bits / c.b.bits);
}

int gemm_scale_loads(const GemmConfig& c) {
  if (c.wide_scales()) return 2 * c.b_loads() / c.loads * c.scale_quads(); // four scales, four zero points
  if (c.a.mx()) return c.stages * (c.b_loads() + c.loaded_row_tiles() * c.loads) / (c.whole_lines() ? 2 : 1); // of both, a line's together
  if (c.packed()) return c.stages * c.b.word_scales() * c.b_loads();
  if (!c.block_scaled()) return 0;
  const int rows = c.is_matrix() ? c.loaded_row_tiles() : c.method == GemmMethod::sparse ? 2 : c.rows;
  return c.stages * (rows + c.products) * (c.method == GemmMethod::dot ? c.loads : 1);
}

// A scaled matrix instruction takes one scale for the two loads that bring 32 numbers of 8 bits (templates/gemm/operands/mx.h).
int gemm_scale_loads(const GemmConfig& c, const Target& target) {
  return gemm_scale_loads(c) / (c.a.mx() && c.b.bits == 8 && target.has_scaled_mfma() ? 2 : 1);
}

int gemm_vgprs(const GemmConfig& c) { return std::max(ring_vgprs(c), loaded_vgprs(c)) + accumulator_vgprs(c); }

int gemm_waves_per_simd(const GemmConfig& c) { return std::clamp(max_vgprs / (gemm_vgprs(c) + vgprs_of_others), 1, max_waves_per_simd); }

bool fits_registers(const GemmConfig& c) {
  if (spills_masks(c)) return false;
  if (c.quantises_steps() && c.waves > simds_per_cu) { // with the loads of a next tile beside a last one's sums more spilled
    const bool whole_turns = c.max_steps() % (c.waves * c.stages) == 0;
    return !c.crosses() && gemm_vgprs(c) <= (whole_turns ? max_of_two_waves : max_of_parts_of_turns) &&
           accumulator_vgprs(c) <= max_accumulators_of_two;
  }
  if (c.waves > simds_per_cu && gemm_waves_per_simd(c) * simds_per_cu < c.waves) return false;
  // If only MFMA reads A, LLVM may keep it in AGPRs, like the accumulators. A wave alone on its SIMD has 256 of each.
  if (c.unpacks_in_order() && c.waves <= 4) return std::max(ring_vgprs(c), loaded_vgprs(c)) <= max_beside_accumulators;
  if (c.block_scaled() && !c.shares_rows())
    return loaded_vgprs(c) + scale_vgprs(c) + accumulator_vgprs(c) <= max_with_group_sums &&
           (!c.whole_lines() || loaded_vgprs(c) <= (c.experts.sums ? max_exchanged_and_summed : max_exchanged));
  return ring_vgprs(c) + accumulator_vgprs(c) <= max_in_all && loaded_vgprs(c) <= max_loaded;
}

bool producers_fit_registers(const GemmConfig& c) { return c.stages * c.b_loads() * vgprs_a_load + accumulator_vgprs(c) <= max_in_all; }

bool gemm_without_agprs(const GemmConfig& c) {
  if (c.shares_rows()) return true;
  return c.block_scaled() && c.method == GemmMethod::matrix && c.row_tiles() == 1 && ring_vgprs(c) + accumulator_vgprs(c) <= max_in_all;
}

} // namespace kiln
