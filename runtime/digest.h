// SHA-256 of bytes, as 64 hexadecimal digits.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

namespace kiln {

// The digest of the pieces, one after the other.
std::string sha256(std::initializer_list<std::string_view> pieces);
inline std::string sha256(std::string_view bytes) { return sha256({bytes}); }

bool is_sha256(std::string_view text); // 64 digits, lower case

} // namespace kiln
