// Device headers by the words of emitted text.
#include "gen/emit/includes.h"
#include "gen/emit/templates.h"
#include "gen/spec/op.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

struct Provider {
  std::string_view header, words; // that it declares or defines, and that emitted text says
};
constexpr Provider providers[] = {
    {"common/microscaling.h", "scale_up scale_down to_scaled power_over"},
    {"common/mx_convert.h", "e2m1 e8m0"},
    {"gemm/by_expert.h", "SortedPairs"},
    {"handover.h", "Handover"},
    {"integers.h",
     "add_i32 sub_i32 mul_i32 umulhi bit_and bit_or bit_xor shift_left shift_right popcount lt_i32 le_i32 gt_i32 ge_i32 eq_i32 "
     "ne_i32 min_i32 max_i32 clamp_i32 select_i32"},
    {"common/partners.h", "swap_partners partners partners_of_group"},
    {"rowwise/groups.h", "of_group store_of_group store_of_group_transposed group_size"},
    {"rowwise/ranks.h", "ArgAccumulator rank ranking picks reduce_ranks find_rank sum_up_to_rank store_ranks RunningSum pieces"},
    {"rowwise/views.h", "NamedRow view scattered columns_at integer_columns_at signs_at"},
};

using Words = std::set<std::string_view>;

// The identifiers of a text.
Words words_of(std::string_view text) {
  const auto is_part = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  Words words;
  for (const auto* at = text.begin(); at != text.end();) {
    const auto* const begin = std::find_if(at, text.end(), is_part);
    at = std::find_if_not(begin, text.end(), is_part);
    if (begin != at) words.emplace(begin, at);
  }
  return words;
}

const TemplateHeader* find_header(std::string_view name) {
  const auto found = std::ranges::find(template_headers(), name, &TemplateHeader::name);
  return found == template_headers().end() ? nullptr : &*found;
}

void add_included(std::string_view text, std::set<std::string_view>& found) {
  constexpr std::string_view include = "#include \"";
  for (std::size_t at = text.find(include); at != text.npos; at = text.find(include, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const std::size_t begin = at + include.size();
    const TemplateHeader* const header = find_header(text.substr(begin, text.find('"', begin) - begin));
    if (header != nullptr && found.insert(header->name).second) add_included(header->text, found);
  }
}

// Whether a pointwise operation is said that most kernels do not have.
bool says_function(const Words& said) {
  const std::string_view usual = find_header("common/arithmetic.h")->text;
  return std::ranges::any_of(pointwise_ops(), [&](Op op) {
    return said.contains(info(op).name) && info(op).device.starts_with(info(op).name) &&
           usual.find(fmt::format(" {}(", info(op).name)) == usual.npos;
  });
}

} // namespace

std::set<std::string_view> included_headers(std::string_view text) {
  std::set<std::string_view> found;
  add_included(text, found);
  return found;
}

std::string includes_text(std::string_view header, std::string_view code, bool shares_rows) {
  const Words said = words_of(code);
  const auto says_any = [&](const Words& words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return said.contains(word); });
  };
  std::string text = fmt::format("#include \"{}.h\"\n", header);
  const auto add_if = [&](bool used, std::string_view other) {
    if (used && !included_headers(text).contains(other)) text += fmt::format("#include \"{}\"\n", other);
  };
  add_if(says_function(said), "common/functions.h");
  for (const auto& [provider, words] : providers) add_if(says_any(words_of(words)), provider);
  add_if(shares_rows, "rowwise/cluster.h");
  return text;
}

} // namespace kiln
