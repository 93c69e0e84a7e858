// Options of the catalogue: which entries take which, and values from text.
#include "gen/catalog/options.h"
#include "gen/error.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace catalog_options_tests {
using namespace kiln;

namespace {

using O = CatalogOptions;

// The text of the entry's spec; empty when the options make none.
std::string text_of(const CatalogEntry& entry, const O& options) {
  try {
    return to_text(catalog_spec(entry.name, options));
  } catch (const UserError&) {
    return "";
  }
}

// The options with other values at one place.
std::vector<O> varied(const O& base, const CatalogOption& option) {
  std::vector<O> all;
  const auto add = [&](auto place, auto value) {
    all.push_back(base);
    all.back().*place = value;
  };
  if (const auto* const number = std::get_if<std::int64_t O::*>(&option.place))
    for (const std::int64_t value : {base.**number / 2, base.**number * 2, base.**number + 16}) add(*number, value);
  if (const auto* const flag = std::get_if<bool O::*>(&option.place)) add(*flag, !(base.**flag));
  if (const auto* const type = std::get_if<DType O::*>(&option.place))
    for (const DType value : all_dtypes()) add(*type, value);
  return all;
}

// Options from which those of an entry are varied: some matter only beside a flag or a type. Ranks are of few columns.
std::vector<O> bases() {
  const O small{.cols = 256, .n = 256};
  std::vector<O> all = {small, small, small, small};
  all[1].dtype = e4m3fn;
  all[2].weights = e2m1;
  all[3].mx = e4m3fn;
  for (const CatalogOption& option : all_catalog_options())
    if (std::holds_alternative<bool O::*>(option.place)) all.push_back(varied(small, option).front());
  return all;
}

// Whether the spec changes with the option, whatever the others are.
bool depends_on(const CatalogEntry& entry, const CatalogOption& option) {
  return std::ranges::any_of(bases(), [&](const O& base) {
    const std::string text = text_of(entry, base);
    return !text.empty() && std::ranges::any_of(varied(base, option), [&](const O& other) {
      const std::string changed = text_of(entry, other);
      return !changed.empty() && changed != text;
    });
  });
}

std::string options_text(std::string_view name) {
  const auto entry = std::ranges::find(catalog(), name, &CatalogEntry::name);
  REQUIRE(entry != catalog().end());
  std::vector<std::string_view> names;
  for (const CatalogOption* option : options_of(*entry)) names.push_back(option->name);
  return fmt::format("{}", fmt::join(names, " "));
}

} // namespace

TEST_CASE("entries take the options that their specs depend on") {
  CHECK(options_text("rmsnorm") == "cols max_rows dtype");
  CHECK(options_text("add_rmsnorm_quant") == "cols max_rows dtype fp8 dynamic_scale in_place");
  CHECK(options_text("gemm_w4a16") == "m n k dtype group preshuffled packed_zeros");
  CHECK(options_text("gemm_mx") == "m n k dtype mx preshuffled transposed weights");
  CHECK(options_text("gemm_block_scaled") == "m n k dtype fp8 preshuffled transposed");
  CHECK(options_text("rope_kv_write") == "cols max_rows dtype fp8 heads index interleaved head_norm fp8_cache");
  CHECK(options_text("attention_paged") == "dtype heads kv_heads d length page cache_dtype");
  CHECK(options_text("moe_sort") == "top experts");
  std::set<const CatalogOption*> taken;
  for (const CatalogEntry& entry : catalog())
    for (const CatalogOption* option : options_of(entry)) taken.insert(option);
  CHECK(taken.size() == all_catalog_options().size());
}

TEST_CASE("an entry declares all options that its spec depends on, and no other") {
  for (const CatalogEntry& entry : catalog()) {
    std::vector<std::string_view> names;
    for (const CatalogOption& option : all_catalog_options())
      if (depends_on(entry, option)) names.push_back(option.name);
    CAPTURE(entry.name);
    CHECK(entry.options == fmt::format("{}", fmt::join(names, " ")));
  }
}

TEST_CASE("an option that an entry does not take says so") {
  try {
    require_option_of("rmsnorm", *find_catalog_option("transposed"));
    FAIL("no error");
  } catch (const UserError& error) {
    CHECK(error.subject == "catalogue entry 'rmsnorm'");
    CHECK(error.fact == "it has no option transposed");
    CHECK(error.remedy == "leave it out; it takes cols, max_rows, dtype");
  }
  CHECK(find_catalog_option("colls") == nullptr);
}

TEST_CASE("options from text") {
  const Target to = target("gfx942");
  CatalogOptions options;
  std::string refused;
  const auto set = [&](std::string_view name, const std::string& value) {
    refused.clear();
    const auto refuse = [&](const std::string& fact, const std::string&) { throw refused = fact; };
    try {
      set_catalog_option(options, *find_catalog_option(name), value, to, refuse);
    } catch (const std::string&) {}
  };
  set("cols", "96"), set("fp8", "fp8"), set("transposed", "true"), set("cache_dtype", "i8");
  CHECK(options.cols == 96);
  CHECK(options.fp8 == e4m3fnuz);
  CHECK(options.transposed);
  CHECK(options.cache == i8);
  set("cols", "96x");
  CHECK(refused == "\"96x\", which is no whole number");
  set("transposed", "yes");
  CHECK(refused == "\"yes\", which is neither true nor false");
  set("dtype", "f17");
  CHECK(refused == "\"f17\", which is no type");
}

} // namespace catalog_options_tests
