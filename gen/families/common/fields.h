// Fields: the members of a config by name, for printing, --set and the emitted text. A config names them once, in a function
// for_each_field(config, visit) that calls visit(Field, member) in the order of their declaration. A member that is such a struct itself is
// named by visit_nested.
#pragma once
#include "gen/error.h"
#include <algorithm>
#include <array>
#include <concepts>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct Field {
  std::string_view name;
  bool settable = true;                      // by --set; the others follow from the plan
  bool shown = true;                         // printed and emitted
  bool begins_line = false;                  // in the emitted text
  std::string_view prefix = {};              // of the name where it is printed or set: "a_" of bits, in a member a
  std::array<std::string_view, 2> path = {}; // the members that it lies in, outermost first

  std::string label() const { return fmt::format("{}{}", prefix, name); }
};

// The fields of `member`, which the config calls `name`. `adjust` changes how each is shown.
template <typename M, typename Visit, typename Adjust>
constexpr void visit_nested(std::string_view name, M& member, const Visit& visit, const Adjust& adjust) {
  for_each_field(member, [&](Field field, auto& of_member) {
    field.path = {name, field.path[0]};
    adjust(field);
    visit(field, of_member);
  });
}

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
  std::string_view nested;
  for_each_field(config, [&](const Field& field, const auto&) {
    if (field.path[0].empty() || field.path[0] != nested) ++count;
    nested = field.path[0];
  });
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
template <typename C> std::string fields_text(const C& config, bool settable_too = true) {
  std::string text;
  for_each_field(config, [&](const Field& field, const auto& member) {
    if (!field.shown || (field.settable && !settable_too)) return;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.label(), member_text(field, member));
  });
  return text;
}
// For the fields that follow from the plan alone.
template <typename C> std::string planned_fields_text(const C& config) { return fields_text(config, false); }

// {"vec=8", "threads=256"}: what sets a config like this one.
template <typename C> std::vector<std::string> settings_of(const C& config) {
  std::vector<std::string> settings;
  for_each_field(config, [&](const Field& field, const auto& member) {
    if (field.shown && field.settable) settings.push_back(fmt::format("{}={}", field.label(), member_text(field, member)));
  });
  return settings;
}

// "constexpr RowwiseConfig config{.cols = 4096, .vec = 8};\n", lines aligned below the first field.
template <typename C> std::string config_text(const C& config, std::string_view type) {
  const std::string head = fmt::format("constexpr {} config{{", type);
  std::string text;
  std::array<std::string_view, 2> path;
  for_each_field(config, [&]<typename M>(const Field& field, const M& member) {
    if (!field.shown) return;
    const std::size_t depth = std::ranges::count_if(path, [](auto p) { return !p.empty(); });
    std::size_t common = 0;
    while (common < depth && path[common] == field.path[common]) ++common;
    text += std::string(depth - common, '}');
    if (!text.empty()) text += field.begins_line ? ",\n" + std::string(head.size(), ' ') : ", ";
    for (std::size_t level = common; level < field.path.size() && !field.path[level].empty(); ++level)
      text += fmt::format(".{} = {{", field.path[level]);
    path = field.path;
    text += fmt::format(".{} = ", field.name);
    if constexpr (WordedEnum<M>) text += fmt::format("{}::{}", EnumText<M>::type, to_string(member));
    else text += fmt::format("{}", member);
  });
  text += std::string(std::ranges::count_if(path, [](auto p) { return !p.empty(); }), '}');
  return head + text + "};\n";
}

// Throws UserError on a field that the config has not, or that follows from the plan, and on a bad value.
template <typename C> void set_field(C& config, std::string_view family, const Setting& setting) {
  bool found = false;
  std::string names;
  for_each_field(config, [&]<typename M>(const Field& field, M& member) {
    if (!field.settable) return;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", field.label());
    if (field.label() != setting.field) return;
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
