// MetaReader: meta.json read from its beginning, in the order in which it is written. It builds no tree, so its memory is what it
// gives back, and a load spends some microseconds on it instead of a hundred.
#pragma once
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace kiln {

// Every member throws CorruptEntry where the text goes on otherwise: with another name, another kind of value, or no JSON.
class MetaReader {
public:
  explicit MetaReader(std::string_view text) : text_(text) {}

  void open(char bracket);          // '{' or '['
  bool close(char bracket);         // true: it was there. Otherwise a member or an item follows
  void end(char bracket);           // no member or item follows
  void name(std::string_view name); // of the next member, with its colon
  std::string name();
  std::string text();
  bool is_number(); // what comes next
  template <typename Integer> Integer number() {
    if (!is_number()) fail("a number");
    Integer value{};
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("a whole number within its bounds");
    at_ = static_cast<std::size_t>(end - text_.data());
    after_value_ = true;
    return value;
  }

private:
  char next(); // after white space; zero at the end
  void take(char c);
  void before_value();
  std::string quoted();
  char escaped();
  [[noreturn]] void fail(std::string_view expected) const;

  std::string_view text_;
  std::size_t at_ = 0;
  bool after_value_ = false; // then a comma comes before the next one
};

} // namespace kiln
