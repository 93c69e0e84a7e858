// Random specs of ranks that a wave does not hold: of wide rows, or many of them; and random operations on i32.
#pragma once
#include "gen/reference/random.h"
#include "gen/spec/spec.h"

namespace kiln {

// Columns of one to three inputs, numbers of rows and ranks, and outputs of both.
KernelSpec random_wide_ranks(std::uint64_t seed, DType fp8);

// An i32 of the shape that x and y broadcast to, from three to eight operations on them; both are i32.
Expr random_integers(const Expr& x, const Expr& y, Random& random);

} // namespace kiln
