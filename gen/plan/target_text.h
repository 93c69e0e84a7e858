// The text of a spec for a target: $fp8 stands for its own e4m3, $fp8_max for the largest number of that.
#pragma once
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

// `text` with every $NAME replaced by what `value_of(NAME)` gives.
std::string filled_in(std::string_view text, const std::function<std::string(const std::string& name)>& value_of);

// "e4m3fnuz" for "fp8" and "240" for "fp8_max" on gfx942; nothing for other names.
std::optional<std::string> target_word(std::string_view name, const Target& target);

// parse_spec of the text with the target's words. Throws UserError for another $NAME too: only manifests have values for those.
KernelSpec parse_spec(std::string_view text, const Target& target);

} // namespace kiln
