// Device text: how numbers, types and reducers are spelled in emitted kernels.
#pragma once
#include "gen/spec/op.h"
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

std::string whole_literal(std::int64_t value); // of an i32
std::string literal(float value);              // "1.5f", the shortest that reads back as the same number
bool finds_column(Op op);                      // row_argmax, row_argmin
std::string_view reducer(Op op);               // of a reduction: "SumOf"

} // namespace kiln
