// Which device headers a kernel's text needs.
#pragma once
#include <set>
#include <string>
#include <string_view>

namespace kiln {

// The headers that `text` includes, and those that these include, by the names of template_headers().
std::set<std::string_view> included_headers(std::string_view text);

// Lines that include `header`.h, which has what most kernels of a family use, and what `code` uses beyond it. `shares_rows`: a row has
// several workgroups (KernelParts).
std::string includes_text(std::string_view header, std::string_view code, bool shares_rows);

} // namespace kiln
