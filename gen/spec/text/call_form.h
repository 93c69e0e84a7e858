// CallForm: what stands between the parentheses of a call in a spec text. The parser reads by it, and other languages write by it.
#pragma once
#include "gen/spec/op.h"
#include "gen/spec/operations/helpers.h"
#include <span>
#include <string_view>
#include <vector>

namespace kiln {

// In this order: a type or a shape, `operands` values, `numbers` whole numbers, and any of the words in `options`.
struct CallForm {
  std::string_view name;
  int operands = 0, numbers = 0;
  bool type = false, shape = false;
  std::span<const std::string_view> options = {};
  const Helper* helper = nullptr; // a function that is written out as it is read; else `op`
  Op op = Op::input;
};

// Every word that calls, in the order of ops.def and of helpers().
std::span<const CallForm> call_forms();
const CallForm* find_call(std::string_view name); // null for a word that calls nothing

} // namespace kiln
