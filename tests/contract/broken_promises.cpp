// Proves that each promise of each family can fail, by name: kernels are built with a device header altered in one place. The table of
// promises, families and alterations stands in docs/contracts.md; KILN_UPDATE_GOLDEN=1 writes it. The usual run takes every other kind of
// kernels and looks for its lines in the table; with KILN_LINT_ALL all of them make the table anew.
#include "gen/error.h"
#include "tests/contract/altered.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace contract_tests {
using namespace kiln;
using namespace kiln::testing;

namespace {

const std::string threads = "KILN_DEVICE u32 thread_id() { return __builtin_amdgcn_workitem_id_x(); }";
const std::string lanes = "KILN_DEVICE u32 lane_id() { return __builtin_amdgcn_mbcnt_hi(";

struct Row {
  std::string promise, family, broken_by;
};

// A row for each promise that the case's report has.
std::vector<Row> break_promises(const ContractCase& c) {
  const Target to = target(c.arch);
  CompileOptions options = own_process_options(process_environment());
  const BuiltKernel kernel = build_kernel(c.spec, to, options, c.settings);
  const Alterations common = alterations_of_all(c.name == "expert_sort" ? lanes : threads, c.few_registers);
  std::vector<Row> rows;
  for (const isa::ExpectationResult& promise : kernel.report.results) {
    INFO(c.name, ": ", promise.name, ", expected ", promise.expected, ", found ", promise.found);
    const auto own = c.own.find(promise.name), of_all = common.find(promise.name);
    const bool known = own != c.own.end() || of_all != common.end();
    CHECK_MESSAGE(known, "nothing breaks this promise: find what does, or promise it no more");
    if (!known) continue;
    const Alteration& alteration = own != c.own.end() ? own->second : of_all->second;
    INFO(alteration.title);
    try {
      const bool broken = broken_by(alteration, kernel, to).contains(promise.name);
      CHECK(broken);
      if (broken) rows.push_back({promise.name, c.name, alteration.title});
    } catch (const std::exception& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
  return rows;
}

// A line a promise and alteration: which families it breaks.
std::string table_of(const std::vector<Row>& rows) {
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, std::string> families;
  for (const Row& row : rows) {
    std::string& list = families[{row.promise, row.broken_by}];
    if (list.empty()) order.emplace_back(row.promise, row.broken_by);
    list += (list.empty() ? "" : ", ") + row.family;
  }
  std::ranges::stable_sort(order, {}, &std::pair<std::string, std::string>::first);
  std::string text = "| promise | is broken by | in |\n|---|---|---|\n";
  for (const auto& line : order) text += fmt::format("| `{}` | {} | {} |\n", line.first, line.second, families[line]);
  return text;
}

// What is broken here and the table of the page does not have.
std::vector<std::string> lines_without(const std::vector<Row>& rows, const std::string& page) {
  std::vector<std::string> missing;
  for (const Row& row : rows) {
    const std::string begin = fmt::format("| `{}` | {} | ", row.promise, row.broken_by);
    const std::size_t at = page.find(begin);
    if (at == std::string::npos || page.substr(at, page.find('\n', at) - at).find(row.family) == std::string::npos)
      missing.push_back(begin + row.family);
  }
  return missing;
}

// The page, with the table between its marks replaced.
std::string page_with(const std::string& page, const std::string& table) {
  const std::string begin = "<!-- table of tests/contract -->\n", end = "<!-- end -->";
  const std::size_t from = page.find(begin), to = page.find(end);
  REQUIRE((from != std::string::npos && to != std::string::npos));
  return page.substr(0, from + begin.size()) + table + page.substr(to);
}

} // namespace

TEST_CASE("each promise of each family is broken by an alteration, and named") {
  const bool all = std::getenv("KILN_LINT_ALL") != nullptr || std::getenv("KILN_UPDATE_GOLDEN") != nullptr;
  const std::vector<ContractCase> cases = contract_cases();
  std::vector<Row> rows;
  for (std::size_t i = 0; i < cases.size(); i += all ? 1 : 2)
    for (Row& row : break_promises(cases[i])) rows.push_back(std::move(row));
  const std::string table = table_of(rows), file = KILN_SOURCE_DIR "/docs/contracts.md";
  MESSAGE(rows.size(), " promises broken\n", table);
  std::stringstream page;
  page << std::ifstream(file).rdbuf();
  if (!all) {
    for (const std::string& line : lines_without(rows, page.str())) CHECK_MESSAGE(false, "docs/contracts.md does not say: ", line);
    return;
  }
  const std::string wanted = page_with(page.str(), table);
  if (std::getenv("KILN_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << wanted;
  else CHECK_MESSAGE(wanted == page.str(), "docs/contracts.md has another table: KILN_UPDATE_GOLDEN=1 writes it");
}

} // namespace contract_tests
