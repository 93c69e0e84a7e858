// Table: rows of text in aligned columns.
#include "runtime/table.h"
#include "gen/error.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

std::string line(const Table& table, const std::vector<std::size_t>& widths, const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool right = i < table.right.size() && table.right[i];
    const std::string cell = right ? fmt::format("{:>{}}", cells[i], widths[i]) : fmt::format("{:<{}}", cells[i], widths[i]);
    text += (i == 0 ? "" : "  ") + cell;
  }
  text.erase(text.find_last_not_of(' ') + 1); // npos + 1 is 0: an empty line
  return text + "\n";
}

} // namespace

std::string to_text(const Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& title : table.header) widths.push_back(title.size());
  for (const auto& row : table.rows) {
    if (row.size() != widths.size()) throw InternalError(fmt::format("a table of {} columns has a row of {}", widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = line(table, widths, table.header);
  for (const auto& row : table.rows) text += line(table, widths, row);
  return text;
}

} // namespace kiln
