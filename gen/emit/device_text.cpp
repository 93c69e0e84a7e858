// Device text: numbers and reducers.
#include "gen/emit/device_text.h"
#include "gen/error.h"
#include <cmath>
#include <fmt/format.h>

namespace kiln {

std::string literal(float value) {
  if (std::isnan(value)) return "__builtin_nanf(\"\")";
  if (std::isinf(value)) return value < 0 ? "(-__builtin_inff())" : "__builtin_inff()";
  std::string text = fmt::format("{}", value); // the shortest that reads back as the same number
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return std::signbit(value) ? "(" + text + "f)" : text + "f";
}

std::string whole_literal(std::int64_t value) { return fmt::format("i32({:#x}u)", static_cast<std::uint32_t>(value)); }

bool finds_column(Op op) { return op == Op::row_argmax || op == Op::row_argmin; }

std::string_view reducer(Op op) {
  switch (row_form(op)) {
  case Op::row_sum:
  case Op::row_mean: return "SumOf";
  case Op::row_max:
  case Op::row_argmax: return "MaxOf";
  case Op::row_min:
  case Op::row_argmin: return "MinOf";
  case Op::row_absmax: return "AbsMaxOf";
  case Op::row_absmax_nan: return "AbsMaxNanOf";
  default: throw InternalError(fmt::format("'{}' is no reduction", info(op).name));
  }
}

} // namespace kiln
