// Proves that each promise of each family can fail, by name, on each target: kernels are built with a device header altered in one place.
// The table of promises, alterations and kinds of kernels stands in docs/contracts.md; KILN_UPDATE_GOLDEN=1 writes it. The usual run takes
// a slice of the kinds and of their promises, and compares it with the table; with KILN_LINT_ALL all of them make the table anew, and with
// KILN_CONTRACT_KIND=NAME that kind alone is broken whole.
#include "gen/error.h"
#include "tests/contract/altered.h"
#include "tests/contract/table.h"
#include "tests/numeric/check_kernel.h"
#include <bit>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace contract_tests {
using namespace kiln;
using namespace kiln::testing;

namespace {

bool takes_all() { return compares_everything() || std::getenv("KILN_UPDATE_GOLDEN") != nullptr; }

// Whether pairs of set bits so far apart are even in number, as in runs_in_slice: about half of all numbers, without a period.
bool pairs_are_even(std::uint64_t number, int apart) { return std::popcount(number & number >> apart) % 2 == 0; }

struct Broken {
  std::vector<TableRow> rows;     // of the promises that were tried
  std::set<std::string> promises; // all that the case's report has
};

// Breaks the promises of the case's report that `is_tried` takes by their number. One altered kernel may break several.
template <class IsTried> Broken break_promises(const ContractCase& c, const Target& to, IsTried is_tried) {
  const BuiltKernel kernel = build_kernel(c.spec, to, own_process_options(process_environment()), c.settings);
  CHECK_MESSAGE(kernel.rejected.empty(), "the first schedule breaks a promise");
  const Alterations known = joined(c.own, alterations_of_all(c.place, c.few_registers));
  std::map<Alteration, std::set<std::string>> broken;
  Broken result;
  std::uint64_t number = 0;
  for (const isa::ExpectationResult& promise : kernel.report.results) {
    INFO(c.name, " on ", to.arch(), ": ", promise.name, ", expected ", promise.expected, ", found ", promise.found);
    result.promises.insert(promise.name);
    const auto found = known.find(promise.name);
    CHECK_MESSAGE(found != known.end(), "nothing breaks this promise: find what does, or promise it no more");
    if (found == known.end() || !is_tried(number++)) continue;
    const Alteration& alteration = found->second;
    INFO(alteration.title);
    try {
      if (!broken.contains(alteration)) broken[alteration] = broken_by(alteration, kernel, to);
      const bool breaks = broken[alteration].contains(promise.name);
      CHECK(breaks);
      if (breaks) result.rows.push_back({promise.name, alteration.title, {c.name, to.arch()}});
    } catch (const std::exception& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
  return result;
}

Kinds all_kinds() {
  Kinds kinds;
  for (const std::string_view arch : known_archs())
    for (const ContractCase& c : contract_cases(target(arch))) kinds.push_back({c.name, std::string(arch)});
  return kinds;
}

std::string page() {
  std::stringstream text;
  text << std::ifstream(KILN_SOURCE_DIR "/docs/contracts.md").rdbuf();
  return text.str();
}

// The page's rows of the kind, each "promise: alteration"; and its promises.
struct OnPage {
  std::set<std::string> rows, promises;
  OnPage(const std::vector<TableRow>& table, const KindOn& kind) {
    for (const TableRow& row : table)
      if (row.in == kind) rows.insert(row.promise + ": " + row.broken_by), promises.insert(row.promise);
  }
};

} // namespace

TEST_CASE("a slice of the kinds: each promise is in the table, and broken by what the table says") {
  if (takes_all()) return;
  const std::vector<TableRow> table = rows_of(table_in(page()), all_kinds());
  const char* const only = std::getenv("KILN_CONTRACT_KIND"); // all promises of this kind, and no other
  std::size_t tried = 0;
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    std::uint64_t kind = 0;
    for (const ContractCase& c : contract_cases(to)) {
      const bool taken = runs_in_slice(to, ++kind) && pairs_are_even(kind, 2);
      if (only ? c.name != only : !taken) continue;
      const auto in_slice = [&](std::uint64_t promise) {
        return only || (!pairs_are_even(kind + promise, 1) && pairs_are_even(kind + promise, 2));
      };
      const Broken broken = break_promises(c, to, in_slice);
      const OnPage on_page(table, {c.name, to.arch()});
      CHECK_MESSAGE(broken.promises == on_page.promises, "docs/contracts.md has other promises of ", c.name, " on ", arch);
      for (const TableRow& row : broken.rows)
        CHECK_MESSAGE(on_page.rows.contains(row.promise + ": " + row.broken_by), "docs/contracts.md does not say: ", c.name, " on ", arch,
                      ", ", row.promise, ", ", row.broken_by);
      tried += broken.rows.size();
    }
  }
  MESSAGE(tried, " promises broken");
}

TEST_CASE("the table names every kind, and no other") {
  const Kinds kinds = all_kinds();
  const std::set<KindOn> all(kinds.begin(), kinds.end());
  CHECK(all.size() == kinds.size());
  std::set<KindOn> named;
  for (const TableRow& row : rows_of(table_in(page()), kinds)) named.insert(row.in);
  for (const KindOn& each : named) CHECK_MESSAGE(all.contains(each), "the table has ", each.kind, " ", each.arch, ", which no test builds");
  for (const KindOn& each : all) CHECK_MESSAGE(named.contains(each), "the table lacks ", each.kind, " on ", each.arch);
}

TEST_CASE("all kinds: each promise of each family is broken by an alteration, and named") {
  if (!takes_all()) return;
  std::vector<TableRow> rows;
  for (const std::string_view arch : known_archs())
    for (const ContractCase& c : contract_cases(target(arch))) {
      const Broken broken = break_promises(c, target(arch), [](std::uint64_t) { return true; });
      rows.insert(rows.end(), broken.rows.begin(), broken.rows.end());
    }
  MESSAGE(rows.size(), " promises broken");
  const std::string wanted = page_with(page(), table_of(rows, all_kinds()));
  if (std::getenv("KILN_UPDATE_GOLDEN") != nullptr) std::ofstream(KILN_SOURCE_DIR "/docs/contracts.md") << wanted;
  else CHECK_MESSAGE(wanted == page(), "docs/contracts.md has another table: KILN_UPDATE_GOLDEN=1 writes it");
}

TEST_CASE("cells of the table: short, and the same back") {
  const Kinds all{{"a", "x"}, {"b", "x"}, {"c", "x"}, {"long one", "x"}, {"a", "y"}, {"b", "y"}, {"long one", "y"}};
  const auto check = [&](const std::set<KindOn>& members, const std::string& text) {
    CHECK(cell_of(members, all) == text);
    CHECK(members_of(text, all) == members);
  };
  const std::set<KindOn> everything(all.begin(), all.end());
  check(everything, "all");
  check({{"a", "x"}, {"a", "y"}, {"c", "x"}}, "a, c");
  check({{"a", "x"}}, "a (x)");
  check({{"a", "y"}, {"b", "y"}, {"long one", "y"}}, "all (y)");
  check({{"a", "x"}, {"b", "x"}, {"c", "x"}}, "a (x), b (x), c");
  check({{"b", "x"}, {"c", "x"}, {"long one", "x"}}, "all (x) but a");
  std::set<KindOn> some = everything;
  some.erase({"a", "x"});
  check(some, "all but a (x)");
  CHECK(members_of("a, unknown", all).contains({"unknown", ""}));
  CHECK(members_of("all but unknown", all).contains({"unknown", ""}));
  const std::string page = "before\n<!-- table of tests/contract -->\nold\n<!-- end -->\nafter";
  const std::vector<TableRow> rows{{"p", "what breaks it", {"a", "x"}}, {"p", "what breaks it", {"a", "y"}}};
  const std::string written = page_with(page, table_of(rows, all));
  CHECK(written == "before\n<!-- table of tests/contract -->\n| promise | is broken by | in |\n|---|---|---|\n| `p` | what breaks it | a "
                   "|\n<!-- end -->\nafter");
  CHECK(rows_of(table_in(written), all).size() == 2);
}

} // namespace contract_tests
