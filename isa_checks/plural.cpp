// Numbers with their nouns.
#include "isa_checks/plural.h"
#include <fmt/format.h>

namespace kiln::isa {

std::string plural(std::size_t count, std::string_view noun) {
  const bool hisses = noun.ends_with("s") || noun.ends_with("ch") || noun.ends_with("x");
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : hisses ? "es" : "s");
}

std::string plural(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

} // namespace kiln::isa
