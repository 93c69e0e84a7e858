// What configs share between the host's generator and the device: small integer arithmetic, no std.
#pragma once

namespace kiln {

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
constexpr bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

} // namespace kiln
