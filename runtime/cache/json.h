// parse_json: JSON that somebody else may have written, in memory that its length bounds.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace kiln {

// Throws nlohmann::json::exception for text that is no JSON, or nests deeper than 32 levels (Kiln's nests 6). Without the bound a
// document of brackets alone takes a hundred times its length.
nlohmann::ordered_json parse_json(std::string_view text);

} // namespace kiln
