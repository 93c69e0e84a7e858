// Proves that facts of the machine stand in machine/ alone: who needs one reads it there.
#include "tests/house/sources.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <regex>

namespace kiln::house {
namespace {

struct Fact {
  std::string what, pattern;      // a number as it would be written, in code and not in comments
  std::vector<std::string> words; // one of which every match has: finding those is 50 times as quick
};

// Numbers that mean one thing wherever they stand. Others (64, 16) mean many; reviewers look for those.
const std::vector<Fact> facts{{"CUs", R"(\b(304|110)\b)", {"304", "110"}},
                              {"bytes of LDS", R"(\b(64|160) \* 1024\b|\b(65536|163840)\b.*lds)", {"* 1024", "65536", "163840"}},
                              {"LDS granule", R"(\b1280\b)", {"1280"}},
                              {"bytes of L1 or L2", R"(\bl[12]_bytes = \d)", {"l1_bytes", "l2_bytes"}},
                              {"peak of HBM", R"(\b(5300|8000|1638)\b)", {"5300", "8000", "1638"}},
                              {"clock in MHz", R"(\b(2100|2400|1700)\b)", {"2100", "2400", "1700"}},
                              {"latency of HBM", R"(\b(425|362)\b)", {"425", "362"}},
                              {"SIMDs of a CU", R"(\bsimds(_per_cu)? = 4\b)", {"simds"}},
                              {"lanes of a wave", R"(\b(wave_size|lane_count|wave_lanes) = 64\b)", {"= 64"}},
                              {"registers", R"(\b(max_vgprs|max_arch_vgprs) = [1-9])", {"vgprs = "}},
                              {"depth of vmcnt", R"(\bvmcnt\w* (=|<|<=|>) (60|62|63)\b)", {"vmcnt"}},
                              {"depth of lgkmcnt", R"(\blgkmcnt\w* (=|<|<=|>) 15\b)", {"lgkmcnt"}},
                              {"number of an ELF machine", R"(\b0x(3f|4c|4f)\b.*machine)", {"machine"}}};

// What has such a number and means something else: a buffer of the host, a stride, a packet.
const std::vector<std::string> other_meanings{"std::array<char", "std::array<std::uint8_t"};

} // namespace

TEST_CASE("facts of the machine stand in machine/ alone") {
  std::vector<std::regex> patterns;
  std::vector<bool> found(facts.size());
  for (const Fact& fact : facts) patterns.emplace_back(fact.pattern);
  for (const auto& [path, text] : read_sources({"machine", "gen", "templates", "isa_checks", "runtime"}))
    for (const std::string& line : lines_of(text)) {
      const std::string code = line.substr(0, line.find("//"));
      if (std::ranges::any_of(other_meanings, [&](const std::string& other) { return code.find(other) != std::string::npos; })) continue;
      for (std::size_t i = 0; i < facts.size(); ++i) {
        const bool may_match =
            std::ranges::any_of(facts[i].words, [&](const std::string& word) { return code.find(word) != std::string::npos; });
        if (!may_match || !std::regex_search(code, patterns[i])) continue;
        found[i] = true;
        CHECK_MESSAGE(path.starts_with("machine/"), path, ": ", facts[i].what, " of the machine: ", line);
      }
    }
  for (const std::size_t i : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U}) CHECK_MESSAGE(found[i], "nothing in machine/ is ", facts[i].what);
}

} // namespace kiln::house
