// MetaReader: tokens of JSON, one after the other.
#include "runtime/cache/meta_reader.h"
#include "runtime/cache/entry.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln {

void MetaReader::fail(std::string_view expected) const {
  throw CorruptEntry(fmt::format("meta.json is not as this Kiln writes it: byte {} should begin {}", at_, expected));
}

char MetaReader::next() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

void MetaReader::take(char c) {
  if (next() != c) fail(fmt::format("'{}'", c));
  ++at_;
}

void MetaReader::before_value() {
  if (after_value_) take(',');
  after_value_ = false;
  next();
}

void MetaReader::open(char bracket) {
  before_value();
  take(bracket);
  after_value_ = false;
}

bool MetaReader::close(char bracket) {
  if (next() != bracket) return false;
  ++at_;
  after_value_ = true;
  return true;
}

void MetaReader::end(char bracket) {
  if (!close(bracket)) fail(fmt::format("'{}'", bracket));
}

std::string MetaReader::name() {
  before_value();
  std::string found = quoted();
  take(':');
  after_value_ = false;
  return found;
}

void MetaReader::name(std::string_view name) {
  const std::size_t begin = at_;
  if (this->name() == name) return;
  at_ = begin;
  fail(fmt::format("the member \"{}\"", name));
}

std::string MetaReader::text() {
  before_value();
  std::string found = quoted();
  after_value_ = true;
  return found;
}

bool MetaReader::is_number() {
  before_value();
  const char c = next();
  return c == '-' || (c >= '0' && c <= '9');
}

std::string MetaReader::quoted() {
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
char MetaReader::escaped() {
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

} // namespace kiln
