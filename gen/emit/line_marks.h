// Marks in emitted text: which of its lines say a line of the spec.
#pragma once
#include "gen/emit/kernel_source.h"
#include <string>

namespace kiln {

// Goes in front of the end of a line that computes or stores what line `spec_line` says. Empty for 0.
std::string line_mark(int spec_line);

// Takes the marks out of `text` and gives the lines that had one.
std::vector<SpecLine> take_line_marks(std::string& text);

} // namespace kiln
