// The files of cli/page, of which the HTML report is made, embedded at build time.
#pragma once
#include <span>
#include <string_view>

namespace kiln::isa::cli {

struct PagePart {
  std::string_view name; // "page.html", "page.css", "page.js"
  std::string_view text;
};
std::span<const PagePart> page_parts();

} // namespace kiln::isa::cli
