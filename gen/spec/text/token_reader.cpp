// TokenReader: what a spec text has to have at some place.
#include "gen/spec/text/token_reader.h"
#include "gen/spec/characters.h"
#include "gen/spec/names.h"

namespace kiln {
namespace {

bool begins_name(char c) { return is_letter(c) || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// The length of the number at the start of `text`: 12, 0.5, 1e-06. A point belongs to it only before a digit, so that
// "1..16" is a range.
std::size_t number_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  const auto digits_from = [&](std::size_t i) {
    while (is_digit(at(i))) ++i;
    return i;
  };
  std::size_t end = digits_from(0);
  if (at(end) == '.' && is_digit(at(end + 1))) end = digits_from(end + 1);
  if (at(end) != 'e' && at(end) != 'E') return end;
  const std::size_t exponent = end + (at(end + 1) == '-' || at(end + 1) == '+' ? 2 : 1);
  return is_digit(at(exponent)) ? digits_from(exponent) : end;
}

std::size_t name_length(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size() && (begins_name(text[i]) || is_digit(text[i]))) ++i;
  return i;
}

std::string printable(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
}

} // namespace

std::string place(const Token& token) { return fmt::format("spec text, line {}, column {}", token.line, token.column); }

std::string quoted(const Token& token) { return token.kind == Token::Kind::end ? "the end of the text" : fmt::format("'{}'", token.text); }

std::vector<Token> tokenize(std::string_view text) {
  constexpr std::string_view symbols = "+-*/()[]{}:=,";
  std::vector<Token> tokens;
  int line = 1;
  std::size_t line_start = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\n') {
      ++line;
      line_start = i + 1;
    }
    if (is_space(text[i])) {
      ++i;
      continue;
    }
    if (text[i] == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
      continue;
    }
    Token token{Token::Kind::symbol, text.substr(i, 1), line, static_cast<int>(i - line_start) + 1};
    if (begins_name(text[i])) {
      token.kind = Token::Kind::name;
      token.text = text.substr(i, name_length(text.substr(i)));
    } else if (is_digit(text[i])) {
      token.kind = Token::Kind::number;
      token.text = text.substr(i, number_length(text.substr(i)));
    } else if (text.substr(i, 2) == "..") {
      token.text = text.substr(i, 2);
    } else if (symbols.find(text[i]) == symbols.npos) {
      throw UserError(place(token), fmt::format("the character '{}' has no meaning here", printable(text[i])),
                      text[i] == '<' || text[i] == '>'
                          ? "comparisons are functions: lt(a, b), le, gt, ge, eq, ne"
                          : "the text has names, numbers, the symbols + - * / ( ) [ ] { } : = , and comments after #");
    }
    tokens.push_back(token);
    i += token.text.size();
  }
  tokens.push_back({Token::Kind::end, {}, line, static_cast<int>(text.size() - line_start) + 1});
  return tokens;
}

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
