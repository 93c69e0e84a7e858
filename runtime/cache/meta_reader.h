// MetaReader: meta.json read from its beginning, in the order in which it is written. It builds no tree, so its memory is what it
// gives back, and a load spends some microseconds on it instead of a hundred.
#pragma once
#include "runtime/cache/entry.h"
#include <charconv>
#include <cstddef>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kiln {

// Every member throws CorruptEntry where the text goes on otherwise: with another name, another kind of value, or no JSON.
class MetaReader {
public:
  explicit MetaReader(std::string_view text) : text_(text) {}

  // Takes '{' or '['.
  void open(char bracket) {
    before_value();
    take(bracket);
    after_value_ = false;
  }

  // True: it was there. Otherwise a member or an item follows.
  bool close(char bracket) {
    if (next() != bracket) return false;
    ++at_;
    after_value_ = true;
    return true;
  }

  // Refuses a further member or item.
  void end(char bracket) {
    if (!close(bracket)) fail(fmt::format("'{}'", bracket));
  }
  // Takes the name of the next member, with its colon.
  void name(std::string_view name) {
    const std::size_t begin = at_;
    if (this->name() == name) return;
    at_ = begin;
    fail(fmt::format("the member \"{}\"", name));
  }

  std::string name() {
    before_value();
    std::string found = quoted();
    take(':');
    after_value_ = false;
    return found;
  }

  std::string text() {
    before_value();
    std::string found = quoted();
    after_value_ = true;
    return found;
  }

  bool is_number() { // what comes next
    before_value();
    const char c = next();
    return c == '-' || (c >= '0' && c <= '9');
  }

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
  char next() { // after white space; zero at the end
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void take(char c) {
    if (next() != c) fail(fmt::format("'{}'", c));
    ++at_;
  }

  void before_value() {
    if (after_value_) take(',');
    after_value_ = false;
    next();
  }

  std::string quoted() {
    take('"');
    const std::size_t begin = at_;
    std::string value;
    bool ascii = true;
    while (true) {
      const std::size_t plain = at_;
      for (; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\'; ++at_) {
        if (static_cast<unsigned char>(text_[at_]) < 0x20) fail("no control character");
        ascii = ascii && static_cast<unsigned char>(text_[at_]) < 0x80;
      }
      value.append(text_, plain, at_ - plain);
      if (at_ == text_.size() || text_[at_] == '"') break;
      ++at_;
      value += escaped();
    }
    // Paths in variables may hold any UTF-8, and messages and other documents repeat it.
    if (!ascii && !nlohmann::json::accept(fmt::format("\"{}\"", text_.substr(begin, at_ - begin)))) fail("UTF-8 before it");
    take('"');
    return value;
  }

  // What a dump escapes: quotes, backslashes and control characters.
  char escaped() {
    constexpr std::string_view letters = "\"\\bfnrt", meant = "\"\\\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (const std::size_t known = letters.find(c); known != std::string_view::npos) {
      ++at_;
      return meant[known];
    }
    const std::string_view digits = text_.substr(at_).substr(0, 5);
    unsigned value = 0;
    if (digits.size() != 5 || c != 'u' || std::from_chars(digits.data() + 1, digits.data() + 5, value, 16).ptr != digits.data() + 5 ||
        value >= 0x20)
      fail("an escape of JSON");
    at_ += 5;
    return static_cast<char>(value);
  }

  [[noreturn]] void fail(std::string_view expected) const {
    throw CorruptEntry(fmt::format("meta.json is not as this Kiln writes it: byte {} should begin {}", at_, expected));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool after_value_ = false; // then a comma comes before the next one
};

} // namespace kiln
