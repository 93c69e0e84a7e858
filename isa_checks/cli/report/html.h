// The files of cli/page, of which the HTML report is made, embedded at build time.
#pragma once
#include <string_view>

namespace kiln::isa::cli {

// "page.html", "page.css", "page.js"; "" for a name that is none.
std::string_view page_part(std::string_view name);

} // namespace kiln::isa::cli
