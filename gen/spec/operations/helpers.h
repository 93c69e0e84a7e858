// Helper: a function of the text form that stands for several operations, into which it is written out as it is read.
#pragma once
#include "gen/spec/expr.h"

namespace kiln {

struct Helper {
  std::string_view name; // as in C++
  int operands, numbers; // numbers stand behind operands
  Expr (*build)(std::span<const Expr> of, std::int64_t first, std::int64_t second);
};
std::span<const Helper> helpers();
const Helper* find_helper(std::string_view name); // nullptr for a name of none

} // namespace kiln
