// kiln list: the catalogue, or one entry with its options and the spec that it makes of their defaults.
#include "gen/catalog/options.h"
#include "gen/plan/target.h"
#include "runtime/cli/command.h"
#include "runtime/cli/kernel_choice.h"
#include "runtime/table.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>

namespace kiln::cli {
namespace {

// Some defaults follow from others; their values in CatalogOptions only say so.
std::string default_of(const CatalogOption& option, const CatalogOptions& options) {
  if (option.name == "max_rows" && options.max_rows == 0) return "any";
  if (option.name == "cache_dtype" && options.cache == f32) return "as --dtype";
  if (option.name == "weights" && options.weights == f32) return "as a";
  if (const auto* const number = std::get_if<std::int64_t CatalogOptions::*>(&option.place)) return std::to_string(options.**number);
  if (const auto* const flag = std::get_if<bool CatalogOptions::*>(&option.place)) return options.**flag ? "yes" : "no";
  return std::string(to_string(options.*std::get<DType CatalogOptions::*>(option.place)));
}

int run_entry(const std::string& name, bool json) {
  const Target target = kiln::target(known_archs().front());
  CatalogOptions options = default_options(name);
  options.fp8 = target.fp8();
  const std::string text = to_text(catalog_spec(name, options)); // says what is wrong with a name
  const CatalogEntry& entry = *std::ranges::find(catalog(), name, &CatalogEntry::name);
  Table table{.header = {"OPTION", "DEFAULT", "WHAT IT IS"}, .rows = {}};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CatalogOption* option : options_of(entry)) {
    table.rows.push_back({flag_of(*option), default_of(*option, options), std::string(option->help)});
    list.push_back({{"name", option->name}, {"default", default_of(*option, options)}, {"doc", option->help}});
  }
  if (json)
    fmt::print(
        "{}\n",
        nlohmann::ordered_json{{"name", entry.name}, {"doc", entry.doc}, {"options", list}, {"arch", target.arch()}, {"spec", text}}.dump(
            2));
  else fmt::print("{}: {}\n\n{}\nits spec for {}, with the defaults:\n\n{}", entry.name, entry.doc, to_text(table), target.arch(), text);
  return ok;
}

int run(bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const CatalogEntry& entry : catalog()) {
      nlohmann::ordered_json options = nlohmann::ordered_json::array();
      for (const CatalogOption* option : options_of(entry)) options.push_back(option->name);
      list.push_back({{"name", entry.name}, {"doc", entry.doc}, {"options", options}});
    }
    fmt::print("{}\n", list.dump(2));
    return ok;
  }
  Table table{.header = {"KERNEL", "WHAT IT COMPUTES"}, .rows = {}};
  for (const CatalogEntry& entry : catalog()) table.rows.push_back({std::string(entry.name), std::string(entry.doc)});
  fmt::print("{}\nfor {}; `kiln list NAME` shows an entry's options and spec\n", to_text(table), fmt::join(known_archs(), ", "));
  return ok;
}

} // namespace

Command make_list(CLI::App& root) {
  CLI::App* app = root.add_subcommand("list", "The kernels of the catalogue, or one of them with its options and its spec");
  const auto name = std::make_shared<std::string>();
  app->add_option("name", *name, "An entry: show its options with their defaults, and its spec");
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "Print one JSON document");
  return {app, [name, json] { return name->empty() ? run(*json) : run_entry(*name, *json); }};
}

} // namespace kiln::cli
