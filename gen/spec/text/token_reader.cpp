// TokenReader: what a spec text has to have at some place.
#include "gen/spec/text/token_reader.h"
#include "gen/spec/names.h"
#include <charconv>

namespace kiln {

template <class Number> bool read_whole(std::string_view text, Number& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stop == text.data() + text.size();
}
template bool read_whole(std::string_view text, float& number);
template bool read_whole(std::string_view text, std::int64_t& number);

void TokenReader::expect(std::string_view text) {
  if (!accept(text))
    refuse(current(), fmt::format("{} stands where '{}' belongs", quoted(current()), text), "docs/guide.md has the grammar");
}

Token TokenReader::expect_name(std::string_view what) {
  if (current().kind != Token::Kind::name)
    refuse(current(), fmt::format("{} stands where {} belongs", quoted(current()), what), "write a name");
  return take();
}

std::int64_t TokenReader::expect_integer() {
  const Token token = take();
  std::int64_t value = 0;
  if (token.kind != Token::Kind::number || !read_whole(token.text, value))
    refuse(token, fmt::format("{} stands where a whole number belongs", quoted(token)), "write digits, at most 9223372036854775807");
  return value;
}

DType TokenReader::expect_type() {
  const Token token = expect_name("a type");
  const auto type = parse_dtype(token.text);
  if (!type) {
    std::vector<std::string_view> names;
    for (const DType each : all_dtypes()) names.push_back(to_string(each));
    refuse(token, fmt::format("there is no type '{}'", token.text), did_you_mean(token.text, names));
  }
  return *type;
}

} // namespace kiln
