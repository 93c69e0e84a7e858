// Table: rows of text in aligned columns.
#pragma once
#include <string>
#include <vector>

namespace kiln {

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows; // each as long as the header
  std::vector<bool> right = {};               // per column: aligned to the right; shorter means left
};

// One line a row, columns two blanks apart, no blanks at the ends of lines. Widths are counted in bytes: ASCII text.
std::string to_text(const Table& table);

} // namespace kiln
