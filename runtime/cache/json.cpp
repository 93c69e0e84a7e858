// parse_json, by nlohmann's parser with a bound on the depth.
#include "runtime/cache/json.h"
#include <string>

namespace kiln {

nlohmann::ordered_json parse_json(std::string_view text) {
  constexpr int max_levels = 32;
  // A pass over the brackets is much cheaper than the parser's own callback, which is asked for every value.
  int depth = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\') ++at;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_levels) throw nlohmann::json::parse_error::create(101, at, "nests deeper than 32 levels", nullptr);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return nlohmann::ordered_json::parse(text);
}

} // namespace kiln
