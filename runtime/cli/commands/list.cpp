// kiln list: the catalogue.
#include "gen/catalog/options.h"
#include "gen/plan/target.h"
#include "runtime/cli/command.h"
#include "runtime/table.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>

namespace kiln::cli {
namespace {

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
  fmt::print("{}\nfor {}\n", to_text(table), fmt::join(known_archs(), ", "));
  return ok;
}

} // namespace

Command make_list(CLI::App& root) {
  CLI::App* app = root.add_subcommand("list", "The kernels of the catalogue");
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "Print one JSON document");
  return {app, [json] { return run(*json); }};
}

} // namespace kiln::cli
