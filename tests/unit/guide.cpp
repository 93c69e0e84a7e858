// The guide is true: its spec texts parse, and its grammar has the words that the parser takes and no others.
#include "gen/spec/names.h"
#include "gen/spec/op.h"
#include "gen/spec/operations/helpers.h"
#include "gen/spec/spec.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

using namespace kiln;

namespace {

std::string guide() {
  std::ostringstream text;
  for (const char* page : {"guide", "gallery", "indices", "attention", "moe", "tutorial"})
    text << std::ifstream(std::string(KILN_SOURCE_DIR "/docs/") + page + ".md").rdbuf();
  return text.str();
}

// The fenced blocks of the guide whose first word is `first`, or that are of language `first`.
std::vector<std::string> blocks(const std::string& first) {
  std::vector<std::string> found;
  const std::string text = guide();
  const std::regex fence("(^|\n)```([a-z]*)\n([^`]*)```");
  for (std::sregex_iterator at(text.begin(), text.end(), fence), end; at != end; ++at)
    if (at->str(2) == first || at->str(3).starts_with(first)) found.push_back(at->str(3));
  return found;
}

} // namespace

TEST_CASE("the guide's spec texts parse") {
  const std::vector<std::string> texts = blocks("kernel ");
  REQUIRE(!texts.empty());
  for (const std::string& text : texts) {
    const KernelSpec spec = parse_spec(text);
    CHECK(parse_spec(to_text(spec)) == spec);
  }
}

TEST_CASE("the guide's grammar has every word of the spec text, and no other") {
  const std::vector<std::string> grammars = blocks("ebnf");
  REQUIRE(grammars.size() == 1);
  std::set<std::string> words;
  const std::regex quoted("\"([A-Za-z_0-9]+)\"");
  for (std::sregex_iterator at(grammars[0].begin(), grammars[0].end(), quoted), end; at != end; ++at) words.insert(at->str(1));
  for (const std::string& word : words)
    if (word != "e" && word != "E")
      CHECK_MESSAGE((is_reserved_word(word) || find_helper(word) || word == "input" || word == "scalar" || word == "preshuffled"), word);
  for (const Helper& helper : helpers()) CHECK_MESSAGE(words.contains(std::string(helper.name)), helper.name);
  CHECK(std::ranges::count_if(words, [](const std::string& word) { return parse_dtype(word).has_value(); }) == std::ssize(all_dtypes()));
  for (int i = 0; i < static_cast<int>(pointwise_ops().front()); ++i) { // the structural operations come first
    const auto op = static_cast<Op>(i);
    if (op != Op::constant) CHECK_MESSAGE(words.contains(std::string(info(op).name)), info(op).name);
  }
}
