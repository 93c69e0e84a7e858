// States of random specs: rows that a slot names, read and written back, windows and tokens that are stacked, columns that are shifted.
#pragma once
#include "gen/reference/random.h"
#include "gen/spec/spec.h"
#include <optional>
#include <vector>

namespace kiln {

class StateDraws {
public:
  StateDraws(std::uint64_t seed, int percent) : random_(seed), drawn_(random_.chance(percent)) {}

  // Values that come from a state, from slices and from shifted columns, of a space whose first input is `x`.
  void add_values(const Shape& space, const Expr& x, std::vector<Expr>& values);
  // Whether a lane may have to take single columns.
  bool shifts() const { return shifts_; }
  // Outputs of `first` and `second`, which have the shape of the space.
  void add_outputs(KernelSpec& spec, const Expr& first, const Expr& second);

private:
  enum class Kind { rows, tokens, window }; // a row for each slot; a slot for each token; several rows a slot
  Expr state_of(const Shape& rows);

  Random random_;
  bool drawn_, shifts_ = false, stacks_ = false;
  Kind kind_ = Kind::rows;
  std::int64_t count_ = 2; // of tokens, or of rows of a window
  std::optional<Expr> state_, slot_;
};

} // namespace kiln
