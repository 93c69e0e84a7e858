// GemmSums: the accumulators of one wave over its steps of a tile, a struct for each method.
#pragma once
#include "common/loops.h"
#include "gemm/steps.h"

namespace kiln {

// clear, then add and settle for each step, which may stand apart; `to_lds(tile, round)` stores the sums of the rows of a round (sum_rows) as
// tile[row of A * lds_row + product * tile_n + row of B].
template <GemmConfig config, class A, class B, GemmMethod method> struct GemmSums;

// With scales of blocks, the sum of a group is formed from zero and then added times its scale. Accumulators are f32 then.
template <GemmConfig config, class A>
using SumOfLane = Either<config.block_scaled(), Vec<f32, config.edge() * config.edge() / wave_size>, typename SumsOf<A, config.edge()>::type>;

} // namespace kiln
