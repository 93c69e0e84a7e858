// Numbers with their nouns, for messages.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace kiln::isa {

// "1 load", "3 loads", "2 accesses", "2 branches".
std::string plural(std::size_t count, std::string_view noun);
// For words that differ in more than an s or es: plural(n, "load brings", "loads bring").
std::string plural(std::size_t count, std::string_view one, std::string_view many);

} // namespace kiln::isa
