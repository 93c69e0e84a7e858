// The words of a target in a spec's text.
#include "gen/plan/target_text.h"
#include "gen/error.h"
#include <cctype>
#include <fmt/format.h>

namespace kiln {

std::string filled_in(std::string_view text, const std::function<std::string(const std::string& name)>& value_of) {
  std::string filled;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '$') {
      filled += text[at];
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
    filled += value_of(std::string(text.substr(at + 1, end - at - 1)));
    at = end - 1;
  }
  return filled;
}

std::optional<std::string> target_word(std::string_view name, const Target& target) {
  if (name == "fp8") return std::string(to_string(target.fp8()));
  if (name == "fp8_max") return fmt::format("{}", max_finite(target.fp8()));
  return std::nullopt;
}

KernelSpec parse_spec(std::string_view text, const Target& target) {
  return parse_spec(filled_in(text, [&](const std::string& name) {
    if (auto word = target_word(name, target)) return *std::move(word);
    throw UserError("spec", fmt::format("it has ${}, for which there is no value here", name),
                    "write the value, or give it in a line of a manifest for kiln aot; $fp8 and $fp8_max are the target's");
  }));
}

} // namespace kiln
