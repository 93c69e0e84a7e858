// TokenReader: a spec text token by token, each with its place, and the errors that name the place of one.
#pragma once
#include "gen/error.h"
#include "gen/spec/dtype.h"
#include <cstdint>
#include <fmt/format.h>
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

class TokenReader {
public:
  // Goes on with `text`, which has to live as long as tokens of it do.
  void read(std::string_view text) {
    tokens_ = tokenize(text);
    next_ = 0;
  }

  const Token& current() const { return tokens_[next_]; }
  bool at_end() const { return current().kind == Token::Kind::end; }
  bool at_text(std::string_view text) const { return !at_end() && current().text == text; }
  Token take() { return at_end() ? current() : tokens_[next_++]; }
  bool accept(std::string_view text) {
    if (!at_text(text)) return false;
    take();
    return true;
  }

  // The place of the next token, and back there.
  std::size_t position() const { return next_; }
  void return_to(std::size_t position) { next_ = position; }

  // These throw UserError when something else stands there.
  void expect(std::string_view text);
  Token expect_name(std::string_view what);
  std::int64_t expect_integer();
  DType expect_type();

  [[noreturn]] void refuse(const Token& token, std::string fact, std::string remedy) const {
    throw UserError(place(token), std::move(fact), std::move(remedy));
  }
  // Runs `build`, and puts the place of `token` before the subject of a UserError.
  template <typename Build> auto at(const Token& token, Build build) const -> decltype(build()) {
    try {
      return build();
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: {}", place(token), error.subject), error.fact, error.remedy);
    }
  }

private:
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
};

} // namespace kiln
