// Fields: settings by name, and what is wrong with them.
#include "gen/families/common/fields.h"
#include "gen/spec/characters.h"
#include <fmt/format.h>

namespace kiln {
namespace {

std::string subject(const Setting& setting) { return fmt::format("setting '{}'", setting.text); }

} // namespace

Setting parse_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) throw UserError(fmt::format("setting '{}'", text), "it has no '='", "write name=value, as in vec=8");
  return {.text = text, .field = text.substr(0, equals), .value = text.substr(equals + 1)};
}

int whole_number(const Setting& setting) {
  int number = 0;
  if (!read_whole(setting.value, number))
    throw UserError(subject(setting), fmt::format("'{}' is no whole number", setting.value), "write a number, as in vec=8");
  return number;
}

void reject_field(const Setting& setting, std::string_view family, const std::string& fields) {
  const bool vowel = std::string_view("aeiou").find(family.front()) != std::string_view::npos;
  throw UserError(subject(setting), fmt::format("a{} {} schedule has no '{}' to set", vowel ? "n" : "", family, setting.field),
                  "use one of " + fields);
}

void reject_word(const Setting& setting, const std::vector<std::string_view>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) list += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
  throw UserError(subject(setting), fmt::format("'{}' is no {}", setting.value, setting.field), "use " + list);
}

} // namespace kiln
