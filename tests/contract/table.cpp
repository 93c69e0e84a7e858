// The table of docs/contracts.md, to text and back.
#include "tests/contract/table.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>
#include <stdexcept>

namespace kiln::testing {
namespace {

const std::string mark_of_begin = "<!-- table of tests/contract -->\n", mark_of_end = "<!-- end -->",
                  head = "| promise | is broken by | in |\n|---|---|---|\n";

std::set<KindOn> on(const std::string& arch, const Kinds& all) {
  std::set<KindOn> members;
  for (const KindOn& each : all)
    if (arch.empty() || each.arch == arch) members.insert(each);
  return members;
}
std::set<KindOn> of_kind(const std::string& kind, const Kinds& all) {
  std::set<KindOn> members;
  for (const KindOn& each : all)
    if (each.kind == kind) members.insert(each);
  return members;
}
bool has_all(const std::set<KindOn>& set, const std::set<KindOn>& of) { return std::ranges::includes(set, of); }

// "gemm, rowwise (gfx950)"; kinds of `assumed` need no target.
std::string list_of(const std::set<KindOn>& members, const Kinds& all, const std::string& assumed = {}) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const KindOn& each : all) {
    if (!members.contains(each)) continue;
    const bool everywhere = has_all(members, of_kind(each.kind, all)) || each.arch == assumed;
    if (!everywhere) names.push_back(fmt::format("{} ({})", each.kind, each.arch));
    else if (seen.insert(each.kind).second) names.push_back(each.kind);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::set<KindOn> members_of_list(const std::string& list, const Kinds& all) {
  std::set<KindOn> members;
  std::size_t at = 0;
  while (at < list.size()) {
    const std::size_t end = std::min(list.find(", ", at), list.size());
    const std::string name = list.substr(at, end - at);
    at = end + 2;
    const std::size_t bracket = name.find(" (");
    if (bracket != std::string::npos) {
      members.insert({name.substr(0, bracket), name.substr(bracket + 2, name.size() - bracket - 3)});
      continue;
    }
    const std::set<KindOn> kind = of_kind(name, all);
    if (kind.empty()) members.insert({name, ""});
    members.insert(kind.begin(), kind.end());
  }
  return members;
}

std::string all_text(const std::string& arch) { return arch.empty() ? "all" : "all (" + arch + ")"; }

std::set<std::string> archs_of(const Kinds& all) {
  std::set<std::string> archs{""};
  for (const KindOn& each : all) archs.insert(each.arch);
  return archs;
}

} // namespace

std::string cell_of(const std::set<KindOn>& members, const Kinds& all) {
  std::string shortest = list_of(members, all);
  for (const std::string& arch : archs_of(all)) {
    const std::set<KindOn> base = on(arch, all);
    if (!has_all(base, members)) continue;
    std::set<KindOn> missing;
    std::ranges::set_difference(base, members, std::inserter(missing, missing.end()));
    std::string text = all_text(arch);
    if (!missing.empty()) text += " but " + list_of(missing, all, arch);
    if (text.size() < shortest.size()) shortest = std::move(text);
  }
  return shortest;
}

std::set<KindOn> members_of(const std::string& cell, const Kinds& all) {
  const std::size_t but = cell.find(" but ");
  const std::string first = cell.substr(0, but);
  for (const std::string& arch : archs_of(all)) {
    if (first != all_text(arch)) continue;
    std::set<KindOn> members = on(arch, all);
    if (but == std::string::npos) return members;
    for (const KindOn& each : members_of_list(cell.substr(but + 5), all))
      if (members.erase(each) == 0 && each.arch.empty()) members.insert(each); // no kind: to be noticed
    return members;
  }
  return members_of_list(cell, all);
}

std::string table_of(const std::vector<TableRow>& rows, const Kinds& all) {
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, std::set<KindOn>> members;
  for (const TableRow& row : rows) {
    std::set<KindOn>& line = members[{row.promise, row.broken_by}];
    if (line.empty()) order.emplace_back(row.promise, row.broken_by);
    line.insert(row.in);
  }
  std::ranges::stable_sort(order, {}, &std::pair<std::string, std::string>::first);
  std::string text = head;
  for (const auto& line : order) text += fmt::format("| `{}` | {} | {} |\n", line.first, line.second, cell_of(members[line], all));
  return text;
}

std::vector<TableRow> rows_of(const std::string& table, const Kinds& all) {
  std::vector<TableRow> rows;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::size_t second = line.find(" | "), third = line.find(" | ", second + 3);
    const std::string promise = line.substr(3, second - 4), alteration = line.substr(second + 3, third - second - 3);
    for (const KindOn& each : members_of(line.substr(third + 3, line.size() - third - 5), all)) rows.push_back({promise, alteration, each});
  }
  return rows;
}

std::string table_in(const std::string& page) {
  const std::size_t from = page.find(mark_of_begin), to = page.find(mark_of_end);
  if (from == std::string::npos || to == std::string::npos) throw std::runtime_error("the page has no marks of the table");
  return page.substr(from + mark_of_begin.size(), to - from - mark_of_begin.size());
}

std::string page_with(const std::string& page, const std::string& table) {
  const std::size_t from = page.find(mark_of_begin) + mark_of_begin.size();
  return page.substr(0, from) + table + page.substr(from + table_in(page).size());
}

} // namespace kiln::testing
