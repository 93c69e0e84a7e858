// Tokens of the spec text, each with its place.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct Token {
  enum class Kind : std::uint8_t { name, number, symbol, end };
  Kind kind;
  std::string_view text; // of the source; the end has none
  int line, column;      // both from 1; columns count bytes
};

// "spec text, line 3, column 14"
std::string place(const Token& token);
// "'rsqrt'", or "the end of the text"
std::string quoted(const Token& token);

// The tokens of `text` with an end token behind them; "# ..." is a comment. Throws UserError at a character that begins no
// token. The tokens point into `text`.
std::vector<Token> tokenize(std::string_view text);

} // namespace kiln
