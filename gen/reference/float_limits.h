// The ends of f32's numbers, as f64 values, for interval arithmetic.
#pragma once
#include <limits>

namespace kiln {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double largest_f32 = 0x1.fffffep127, smallest_normal_f32 = 0x1p-126; // IEEE 754 binary32

} // namespace kiln
