// SpecWriter: a spec that is read statement by statement, for programs of other languages that write one.
#pragma once
#include "gen/spec/spec.h"
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

class SpecParser;

class SpecWriter {
public:
  explicit SpecWriter(std::string_view kernel);
  ~SpecWriter();
  SpecWriter(const SpecWriter&) = delete;
  SpecWriter& operator=(const SpecWriter&) = delete;

  // Reads whole statements of the grammar in docs/guide.md: dim, input, scalar, let, output. Gives the value that the last of them
  // declares; nothing of a dim. Throws UserError, whose places count from the begin of `statements`.
  std::optional<Expr> add(std::string statements);
  // What was added so far. Values that no output uses are no part of it.
  const KernelSpec& spec() const;

private:
  std::unique_ptr<SpecParser> parser_;
};

} // namespace kiln
