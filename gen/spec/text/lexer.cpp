// Tokens of the spec text, each with its place.
#include "gen/spec/text/lexer.h"
#include "gen/error.h"
#include "gen/spec/characters.h"
#include <fmt/format.h>

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

} // namespace kiln
