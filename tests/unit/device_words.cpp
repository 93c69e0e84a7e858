// Names that emitted kernels use of device code are refused as names of a spec: an input that is called as one would hide it.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "gen/spec/expr.h"
#include "gen/spec/names.h"
#include <cctype>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <set>

namespace device_words {
using namespace kiln;

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The text without comments.
std::string code_of(std::string_view text) {
  std::string code;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    code += fmt::format("{}\n", line.substr(0, line.find("//")));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return code;
}

// Words that are called, or that are types or namespaces, where a name of the spec may stand as well: no members, no macros, no names that
// the text declares itself.
std::set<std::string> device_words_of(const std::string& code) {
  std::set<std::string> used, declared;
  std::string before; // the word before
  for (std::size_t at = 0; at < code.size();) {
    if (!is_word(code[at]) || (std::isdigit(static_cast<unsigned char>(code[at])) != 0)) {
      if (!std::isspace(static_cast<unsigned char>(code[at])))
        before = code[at] == '>' ? ">" : "";              // of a template's arguments: a declaration
      while (at < code.size() && is_word(code[at])) ++at; // a number
      if (at < code.size() && !is_word(code[at])) ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < code.size() && is_word(code[at])) ++at;
    const std::string word = code.substr(begin, at - begin);
    const bool member = begin > 0 && (code[begin - 1] == '.' || code[begin - 1] == ':' || code[begin - 1] == '"');
    const std::string_view behind = std::string_view(code).substr(at, 2);
    const bool means_something = behind.starts_with('(') || behind.starts_with('<') || behind.starts_with('{') || behind == "::" ||
                                 (behind.starts_with(' ') && behind.size() == 2 && is_word(behind[1]));
    if (!before.empty() && !is_reserved_word(word)) declared.insert(word);
    if (!member && means_something && !word.starts_with("KILN_") && !word.starts_with("__")) used.insert(word);
    before = word;
  }
  for (const std::string& word : declared) used.erase(word);
  return used;
}

} // namespace

TEST_CASE("emitted kernels use no words of device code that a spec may have as names") {
  for (const std::string_view arch : known_archs())
    for (const CatalogEntry& entry : catalog()) {
      CAPTURE(arch);
      const Target to = target(arch);
      const CatalogOptions options{.cols = 256, .fp8 = to.fp8(), .n = 256};
      if (why_not(entry, options)) continue;
      const KernelSpec spec = catalog_spec(entry.name, options);
      const Plan plan = make_plan(spec, to);
      for (const std::string& word : device_words_of(code_of(emit_source(plan, choose_schedule(plan, to), to).text)))
        CHECK_MESSAGE((is_reserved_word(word) || word == spec.name()), fmt::format("{} uses '{}'", entry.name, word));
    }
}

TEST_CASE("names of device code are refused with a remedy") {
  for (const char* const name : {"prefetched", "prefetched_columns", "Gemm"})
    CHECK_THROWS_WITH_AS(input(name, f32, {4}), doctest::Contains("choose another name"), UserError);
}

} // namespace device_words
