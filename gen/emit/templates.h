// The device headers of templates/, embedded at build time.
#pragma once
#include <span>
#include <string_view>

namespace kiln {

struct TemplateHeader {
  std::string_view name; // relative to templates/: "common/platform.h"; and "machine/arch.h"
  std::string_view text;
};
std::span<const TemplateHeader> template_headers();

} // namespace kiln
