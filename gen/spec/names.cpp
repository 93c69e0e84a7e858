// Names: what an input, output, scalar, dimension or kernel may be called.
#include "gen/spec/names.h"
#include "gen/error.h"
#include "gen/spec/characters.h"
#include "gen/spec/dtype.h"
#include "gen/spec/op.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <utility>
#include <vector>

namespace kiln {
namespace {

constexpr std::size_t max_length = 64;

// Words of the spec text, then of C++20 (operators' spellings included); names of types and operations are looked up.
constexpr std::string_view reserved[] = {
    "kernel", "dim", "let", "output", "in_place_of", "strided", "checked", "duplicates", "inf", "nan", "cast_nonsaturating", "alignas",
    "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char", "char8_t", "char16_t",
    "char32_t", "class", "compl", "concept", "const", "consteval", "constexpr", "constinit", "const_cast", "continue", "co_await",
    "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit", "export",
    "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not",
    "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "return",
    "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw",
    "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor",
    "xor_eq", "main", "linux", "unix",
    // words of all emitted kernels (templates/); those of a family stand with it
    "row", "flat", "at", "to", "config", "kiln", "machine", "platform", "map", "rounded", "rounded_nonsaturating", "to_nonsaturating",
    "mixed_product", "power_over", "to_scaled", "by_rule", "reduce_group", "swap_partners", "partners", "partners_of_group", "Row", "Rows",
    "Flat", "At", "Vec", "Truth", "Accumulator", "SumOf", "MaxOf", "MinOf", "AbsMaxOf", "Residency", "ArgAccumulator", "ColumnMap",
    "NamedRow", "RunningSum", "lt_i32", "le_i32", "gt_i32", "ge_i32", "eq_i32", "ne_i32", "min_i32", "max_i32", "clamp_i32", "select_i32",
    "i16", "u16", "u32", "u64"};

} // namespace

bool is_reserved_word(std::string_view name) {
  return std::ranges::find(reserved, name) != std::end(reserved) || parse_dtype(name) || parse_op(name) || is_word_of_a_family(name);
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_edits = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    // Levenshtein distance, one row at a time.
    std::vector<std::size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < name.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i + 1);
      for (std::size_t j = 0; j < candidate.size(); ++j) {
        const std::size_t substitute = diagonal + (name[i] == candidate[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
      }
    }
    if (row.back() < best_edits) {
      best_edits = row.back();
      best = candidate;
    }
  }
  if (best.empty()) { // matmul is the beginning of matmul_nt
    const auto longer = std::ranges::find_if(candidates, [&](std::string_view c) { return name.size() >= 3 && c.starts_with(name); });
    if (longer != candidates.end()) best = *longer;
  }
  return best.empty() ? fmt::format("use one of {}", fmt::join(candidates, ", ")) : fmt::format("did you mean '{}'?", best);
}

std::string unused_name(std::string name, const std::set<std::string>& taken) {
  while (taken.contains(name)) name = "kiln_" + name;
  return name;
}

void require_name(std::string_view what, std::string_view name) {
  const auto refuse = [&](std::string fact, std::string remedy) {
    throw UserError(fmt::format("{} '{}'", what, name), std::move(fact), std::move(remedy));
  };
  if (name.empty()) refuse("the name is empty", "give it a name such as 'x'");
  if (name.size() > max_length) refuse(fmt::format("the name has {} characters", name.size()), fmt::format("use at most {}", max_length));
  if (!is_letter(name[0])) refuse(fmt::format("the name begins with '{}'", name[0]), "begin it with a letter");
  for (const char c : name)
    if (!is_letter(c) && !is_digit(c) && c != '_') refuse(fmt::format("the name contains '{}'", c), "use letters, digits and underscores");
  if (name.find("__") != name.npos) refuse("two underscores in a row are reserved in C++", "use one underscore");
  if (is_reserved_word(name)) refuse("the name is a word of the spec text, of C++ or of the emitted kernels", "choose another name");
}

} // namespace kiln
