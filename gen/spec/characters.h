// Characters of names and numbers in spec text: ASCII alone, whatever the locale is.
#pragma once

namespace kiln {

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

} // namespace kiln
