// Views: values that are read from memory at other places than their own, and the indices of a spec.
#pragma once
#include "gen/spec/graph.h"
#include <optional>
#include <span>
#include <string>

namespace kiln {

// Says where a value of kind `view` lies in memory. From a column of the kernel to one of the tensor: first its partner, then the
// remainder by `tile`, then the quotient by `repeat`; or, without these, the one `shift` columns before.
struct View {
  std::string tensor;       // the input
  std::string index = {};   // the input that names its rows; empty: a row of the kernel has its own
  bool checked = false;     // the index is brought to the last row
  std::int64_t partner = 0; // distance; 0: none
  std::int64_t tile = 0;    // columns that come in turn; 0: all are different
  std::int64_t repeat = 1;  // columns that read the same one
  std::int64_t shift = 0;   // 0 is read where there is no such column
  bool keeps_columns() const { return partner == 0 && tile == 0 && repeat == 1 && shift == 0; }
};

// Nothing for what is no view, and for partners that a lane or its wave has itself.
std::optional<View> view_of(const Expr& expr);

// Pairs at most this far apart lie in one lane's elements, so that both are at hand once one is.
inline constexpr std::int64_t distance_in_lane = 2;
bool pairs_in_lane(const Expr& expr);   // a partner of such a distance
bool pairs_positions(const Expr& expr); // partner(iota) and partner(pair_sign): of the other one
// A partner that is taken in registers, from the lane's own elements or from another lane of its wave. Such pairs lie in
// max_paired_columns at most, as groups do.
bool pairs_in_wave(const Expr& expr);

// The spec with every other partner at inputs, gathers and positions: partner(f(x, w)) is f(partner(x), partner(w)). What is one
// a row is its own partner. If memory cannot give some partner (of groups, of running sums, of partners at another distance), those of
// all distances that are powers of two stay where they are, in registers. Throws UserError if one of the rest cannot be had either.
KernelSpec lower_partners(const SpecGraph& graph);

// Inputs that the kernel reads or writes at rows that an index names.
bool is_table(const SpecGraph& graph, const Expr& input);  // of gathers
bool is_target(const SpecGraph& graph, const Expr& input); // of a scatter
// Both: the rows that a kernel reads by index, and writes back to the same places.
inline bool is_state(const SpecGraph& graph, const Expr& input) { return is_table(graph, input) && is_target(graph, input); }

// The nodes whose shapes make the iteration space: all but tables, targets, and what tile and repeat widen.
std::vector<Expr> nodes_of_space(const SpecGraph& graph);

// Throws UserError: a table or target that is used for anything else, a scatter that is no output in place of its target, i64
// computed with, an iota over a size that no input has, any of these beside a matrix product.
void require_sound_indices(const SpecGraph& graph);

} // namespace kiln
