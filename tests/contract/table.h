// The table of docs/contracts.md: which alteration breaks a promise, and in which kinds of kernels on which targets.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kiln::testing {

// A kind of kernel on a target.
struct KindOn {
  std::string kind, arch;
  auto operator<=>(const KindOn&) const = default;
};
using Kinds = std::vector<KindOn>; // in the order in which a cell names them

struct TableRow {
  std::string promise, broken_by;
  KindOn in;
};

// A cell's text, the shortest of a list and of all but some: "gemm, rowwise (gfx950)", "all but gemm", "all (gfx950)". A kind without a
// target is meant on all targets that have it.
std::string cell_of(const std::set<KindOn>& members, const Kinds& all);
// What the text means; names that are no kind are left as they are, without a target.
std::set<KindOn> members_of(const std::string& cell, const Kinds& all);

// A line a promise and alteration, by promise.
std::string table_of(const std::vector<TableRow>& rows, const Kinds& all);
std::vector<TableRow> rows_of(const std::string& table, const Kinds& all);

// The table of the page stands between two marks. Throws std::runtime_error if it lacks them.
std::string table_in(const std::string& page);
std::string page_with(const std::string& page, const std::string& table);

} // namespace kiln::testing
