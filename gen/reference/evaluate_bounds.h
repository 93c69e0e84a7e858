// evaluate_bounds: what a correct device may answer, element by element, so that its answer can be judged.
#pragma once
#include "gen/reference/evaluate.h"
#include "gen/reference/range.h"
#include <limits>
#include <optional>

namespace kiln {

struct BoundsOptions {
  // The most f32 additions that an element passes through in a row or group sum. Unlimited means any order of
  // summation. A kernel of T threads that adds pairwise across lanes stays below cols / T + 20.
  std::int64_t addition_depth = std::numeric_limits<std::int64_t>::max();
  // Products multiply elements of b by the zeros of a sparse operand too (GemmMethod::sparse): an infinity of b may then give NaN.
  bool absent_products = false;
};

struct Bounds {
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<Range> ranges; // row-major
};

// For every output, by name. Follows every rounding of the spec with its documented error (gen/spec/ops.def); sound for any
// order of sums, contraction to fma and a / b as a * rcp(b). The reference of evaluate always lies within. Throws as
// evaluate does.
std::map<std::string, Bounds> evaluate_bounds(const KernelSpec& spec, const Inputs& inputs, const BoundsOptions& options = {});

struct Mismatch {
  std::string output;
  std::int64_t index; // row-major, of the first element outside its range
  double value;
  Range range;
  std::int64_t count; // of all such elements of the output
};
std::string to_text(const Mismatch& mismatch);

// The first output, in the order of their names, with an element outside its range. Throws UserError when an output is
// missing or has another type or shape.
std::optional<Mismatch> find_mismatch(const Outputs& actual, const std::map<std::string, Bounds>& bounds);

} // namespace kiln
