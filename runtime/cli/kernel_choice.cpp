// KernelChoice: NAME|FILE and the options of the catalogue, as the command line gives them.
#include "runtime/cli/kernel_choice.h"
#include "gen/error.h"
#include "gen/plan/target_text.h"
#include "gen/spec/characters.h"
#include "runtime/cli/output.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cli {
namespace {

bool in_catalog(const std::string& name) {
  return std::ranges::any_of(catalog(), [&](const CatalogEntry& entry) { return entry.name == name; });
}

CatalogOptions catalog_options(const KernelChoice& choice, const Target& target) {
  CatalogOptions options = default_options(choice.kernel);
  options.fp8 = target.fp8();
  for (const auto& [option, value] : choice.options) {
    require_option_of(choice.kernel, *option);
    set_catalog_option(options, *option, value, target, [&](const std::string& fact, const std::string& remedy) {
      throw UserError(flag_of(*option), "it is " + fact, remedy);
    });
  }
  return options;
}

KernelSpec spec_of_file(const KernelChoice& choice, const Target& target) {
  if (!choice.options.empty())
    throw UserError(choice.kernel, "options of the catalogue were given beside a file",
                    "change the text of the file, or name an entry of the catalogue (kiln list)");
  try {
    return parse_spec(read_file(choice.kernel), target);
  } catch (const UserError& error) {
    if (error.subject == choice.kernel) throw;
    throw UserError(fmt::format("{}: {}", choice.kernel, error.subject), error.fact, error.remedy);
  }
}

} // namespace

bool is_manifest(const std::string& file) { return std::filesystem::path(file).extension() == ".jsonl"; }

std::string flag_of(const CatalogOption& option) {
  std::string flag = fmt::format("--{}", option.name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

void add_kernel_options(CLI::App& app, KernelChoice& choice) {
  app.add_option("kernel", choice.kernel, "A name of the catalogue (kiln list), or a file with the text of a spec")->required();
  const std::string group = "OPTIONS OF CATALOGUE ENTRIES (`kiln list NAME`: those of one)";
  for (const CatalogOption& option : all_catalog_options()) {
    const auto set = [&choice, &option](const std::string& value) { choice.options.insert_or_assign(&option, value); };
    if (std::holds_alternative<bool CatalogOptions::*>(option.place))
      app.add_flag_callback(flag_of(option), [set] { set("true"); }, std::string(option.help))->group(group);
    else
      app.add_option_function<std::string>(flag_of(option), set, std::string(option.help))
          ->type_name(std::holds_alternative<DType CatalogOptions::*>(option.place) ? "TYPE" : "INT")
          ->group(group);
  }
}

KernelSpec chosen_spec(const KernelChoice& choice, const Target& target) {
  std::error_code error;
  if (!in_catalog(choice.kernel) && std::filesystem::exists(choice.kernel, error)) return spec_of_file(choice, target);
  if (choice.kernel.find_first_of("/.") != std::string::npos) // no name of the catalogue has these
    throw UserError(fmt::format("file '{}'", choice.kernel), "it does not exist",
                    "name a file with the text of a spec, or an entry of kiln list");
  return catalog_spec(choice.kernel, catalog_options(choice, target));
}

std::map<std::string, std::int64_t> named_sizes(const std::vector<std::string>& settings, const KernelSpec& spec) {
  std::map<std::string, std::int64_t> sizes;
  for (const std::string& setting : settings) {
    const auto subject = fmt::format("--size {}", setting);
    const std::size_t equals = setting.find('=');
    std::int64_t size = 0;
    if (equals == std::string::npos) throw UserError(subject, "it has no '='", "write NAME=SIZE, as in m=8");
    if (!read_whole(std::string_view(setting).substr(equals + 1), size))
      throw UserError(subject, fmt::format("'{}' is no whole number", setting.substr(equals + 1)), "write NAME=SIZE, as in m=8");
    std::vector<std::string> names;
    for (const Dim& dim : spec.dynamic_dims()) names.push_back(dim.name());
    if (std::ranges::find(names, setting.substr(0, equals)) == names.end())
      throw UserError(subject, fmt::format("'{}' has no such run-time size", spec.name()),
                      fmt::format("use one of {}", fmt::join(names, ", ")));
    sizes[setting.substr(0, equals)] = size;
  }
  return sizes;
}

} // namespace kiln::cli
