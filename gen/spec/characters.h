// Characters of names and numbers in spec text: ASCII alone, whatever the locale is.
#pragma once
#include <charconv>
#include <string_view>

namespace kiln {

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether all of `text` is a number of this type.
template <class Number> bool read_whole(std::string_view text, Number& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stop == text.data() + text.size();
}

} // namespace kiln
