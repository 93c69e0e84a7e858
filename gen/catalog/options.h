// CatalogOption: an option of the catalogue by name, for the command line, manifests and lists.
#pragma once
#include "gen/catalog/catalog.h"
#include "gen/plan/target.h"
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace kiln {

struct CatalogOption {
  using Place = std::variant<std::int64_t CatalogOptions::*, bool CatalogOptions::*, DType CatalogOptions::*>;
  std::string_view name; // "max_rows"; --max-rows on the command line
  Place place;
  std::string_view help; // one line
};

std::span<const CatalogOption> all_catalog_options();
const CatalogOption* find_catalog_option(std::string_view name); // null for a name that is none

// Takes what is wrong with a value, as `"12x", which is no whole number`, and a remedy. Does not return.
using RefuseValue = std::function<void(const std::string& fact, const std::string& remedy)>;

// Sets the option from text: a whole number, true or false, or a type. "fp8" is the target's own type.
void set_catalog_option(CatalogOptions& options, const CatalogOption& option, const std::string& value, const Target& target,
                        const RefuseValue& refuse);

// Those of CatalogEntry::options.
std::vector<const CatalogOption*> options_of(const CatalogEntry& entry);

// Throws UserError when the entry `name` has no such option. A name that is no entry is left to catalog_spec.
void require_option_of(std::string_view name, const CatalogOption& option);

} // namespace kiln
