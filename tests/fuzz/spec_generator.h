// Random specs: valid by construction, the same for the same seed on every platform.
#pragma once
#include "gen/spec/spec.h"
#include <cstdint>

namespace kiln {

struct RandomSpecOptions {
  DType fp8_e4m3 = e4m3fn, fp8_e5m2 = e5m2; // the flavours to use: target.fp8_e4m3(), target.fp8_e5m2()
  std::int64_t max_cols = 16384;
  int indexed_percent = 35; // specs with gathers, scatters, partners, widened columns or positions
  int mx_percent = 15;      // of those with rows of whole blocks: specs that quantise to MX formats or read them
  int ranked_percent = 20;  // specs with ranks or running sums
  int state_percent = 12;   // of those of two dimensions or more: specs with states by slot, stacks or shifted columns
  int integer_percent = 15; // specs with operations on i32
  int wide_percent = 4;     // specs of ranks that a wave does not hold, and nothing else
  int several_percent = 10; // specs of two problems, with inputs and sizes of their own
  int paired_percent = 15;  // of those whose columns have them: specs with partners at two or three distances, powers of two
};

// A spec of the rowwise family (row or group reductions, or row and column broadcasts over [rows, cols]) or of the
// elementwise family (rank 1 to 4), with 1 to 4 tensors of mixed types and broadcasts, scalars, up to 12 pointwise
// operations, up to 3 reductions, casts, 1 to 3 outputs, some of them in place or strided. Some gather, scatter, pair, count or rank; some
// have the outputs of another such spec too.
KernelSpec random_spec(std::uint64_t seed, const RandomSpecOptions& options = {});

} // namespace kiln
