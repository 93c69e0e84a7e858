// Fields: the members of a config by name, for printing, --set and the emitted text. A config names them once, in a function
// for_each_field(config, visit) that calls visit(Field, member) in the order of their declaration.
#pragma once
#include "gen/error.h"
#include <concepts>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct Field {
  std::string_view name;
  bool settable = true;     // by --set; the others follow from the plan
  bool shown = true;        // printed and emitted
  bool begins_line = false; // in the emitted text
};

// The words of an enum that is a member of a config: specialised with `type`, its C++ name, and `words`, pairs of a value and
// its word, which is the enumerator's C++ name too.
template <typename E> struct EnumText;
template <typename E>
concept WordedEnum = requires { EnumText<E>::words; };

// `C` is `Config`, const or not: for the declaration of for_each_field.
template <typename C, typename Config>
concept MaybeConst = std::same_as<std::remove_const_t<C>, Config>;

template <WordedEnum E> std::string_view to_string(E value) {
  for (const auto& [known, word] : EnumText<E>::words)
    if (known == value) return word;
  throw InternalError(fmt::format("unknown {}", EnumText<E>::type));
}

// Members of an aggregate, and how many of them for_each_field names.
struct AnyMember {
  template <typename M> operator M() const;
};
template <typename C, typename... Members> consteval int member_count() {
  if constexpr (requires { C{Members{}..., AnyMember{}}; }) return member_count<C, Members..., AnyMember>();
  else return sizeof...(Members);
}
template <typename C> consteval int named_fields() {
  constexpr C config{};
  int count = 0;
  for_each_field(config, [&](const Field&, const auto&) { ++count; });
  return count;
}

// "vec=8". Throws UserError when there is no '='.
struct Setting {
  std::string text, field, value;
};
Setting parse_setting(const std::string& text);
int whole_number(const Setting& setting); // throws UserError
[[noreturn]] void reject_field(const Setting& setting, std::string_view family, const std::string& fields);
[[noreturn]] void reject_word(const Setting& setting, const std::vector<std::string_view>& words);

// As --set takes it. A flag that follows from the plan reads as true or false.
template <typename M> std::string member_text(const Field& field, const M& member) {
  if constexpr (std::same_as<M, bool>) return field.settable ? (member ? "1" : "0") : (member ? "true" : "false");
  else if constexpr (WordedEnum<M>) return std::string(to_string(member));
  else return fmt::format("{}", member);
}

// "vec=8 threads=256 chunks=4"
template <typename C> std::string fields_text(const C& config) {
  std::string text;
  for_each_field(config, [&](const Field& field, const auto& member) {
    if (!field.shown) return;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.name, member_text(field, member));
  });
  return text;
}
// By name, of the fields that can be set or of those that follow from the plan alone.
template <typename C> std::vector<std::pair<std::string, long long>> field_values(const C& config, bool settable) {
  std::vector<std::pair<std::string, long long>> values;
  for_each_field(config, [&](const Field& field, const auto& member) {
    if (field.shown && field.settable == settable) values.emplace_back(field.name, static_cast<long long>(member));
  });
  return values;
}

// {"vec=8", "threads=256"}: what sets a config like this one.
template <typename C> std::vector<std::string> settings_of(const C& config) {
  std::vector<std::string> settings;
  for_each_field(config, [&](const Field& field, const auto& member) {
    if (field.shown && field.settable) settings.push_back(fmt::format("{}={}", field.name, member_text(field, member)));
  });
  return settings;
}

// "constexpr RowwiseConfig config{.cols = 4096, .vec = 8};\n", lines aligned below the first field.
template <typename C> std::string config_text(const C& config, std::string_view type) {
  const std::string head = fmt::format("constexpr {} config{{", type);
  std::string text;
  for_each_field(config, [&]<typename M>(const Field& field, const M& member) {
    if (!field.shown) return;
    if (!text.empty()) text += field.begins_line ? ",\n" + std::string(head.size(), ' ') : ", ";
    text += fmt::format(".{} = ", field.name);
    if constexpr (WordedEnum<M>) text += fmt::format("{}::{}", EnumText<M>::type, to_string(member));
    else text += fmt::format("{}", member);
  });
  return head + text + "};\n";
}

// Throws UserError on a field that the config has not, or that follows from the plan, and on a bad value.
template <typename C> void set_field(C& config, std::string_view family, const Setting& setting) {
  bool found = false;
  std::string names;
  for_each_field(config, [&]<typename M>(const Field& field, M& member) {
    if (!field.settable) return;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", field.name);
    if (field.name != setting.field) return;
    found = true;
    if constexpr (WordedEnum<M>) {
      std::vector<std::string_view> words;
      for (const auto& [value, word] : EnumText<M>::words) {
        words.push_back(word);
        if (word == setting.value) {
          member = value;
          return;
        }
      }
      reject_word(setting, words);
    } else if constexpr (std::same_as<M, bool>) {
      if (setting.value != "0" && setting.value != "1") reject_word(setting, {"0", "1"});
      member = setting.value == "1";
    } else {
      member = whole_number(setting);
    }
  });
  if (!found) reject_field(setting, family, names);
}

} // namespace kiln
