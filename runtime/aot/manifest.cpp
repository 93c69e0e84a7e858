// Manifest: lines of JSON to kernels.
#include "runtime/aot/manifest.h"
#include "gen/catalog/options.h"
#include "gen/error.h"
#include "gen/plan/target_text.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace kiln {
namespace {

using Json = nlohmann::ordered_json;
using Setting = std::pair<std::string, std::string>; // a name and one of its values, as text
using Combination = std::vector<Setting>;

constexpr std::size_t max_values = 100000; // of one range, and of one line: more is a mistake

struct Line {
  std::string subject; // "kernels.jsonl line 3"
  Json json;
};

[[noreturn]] void fail(const Line& line, const std::string& fact, const std::string& remedy) {
  throw UserError(line.subject, fact, remedy);
}

std::string text_of(const Line& line, const std::string& name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer() || value.is_boolean()) return value.dump();
  fail(line, fmt::format("{} is {}", name, value.dump()), "give a string, a whole number, true or false, or a list of them");
}

std::vector<std::string> range_values(const Line& line, const std::string& name, const Json& range) {
  const auto number = [&](const char* field, std::int64_t fallback) {
    if (!range.contains(field)) return fallback;
    if (!range.at(field).is_number_integer())
      fail(line, fmt::format("{}.{} is {}", name, field, range.at(field).dump()), "give a whole number");
    return range.at(field).get<std::int64_t>();
  };
  for (const auto& [field, value] : range.items())
    if (field != "from" && field != "to" && field != "step" && field != "times")
      fail(line, fmt::format("the range {} has a field \"{}\"", name, field), "use from, to, and step or times");
  const std::int64_t from = number("from", 0), to = number("to", -1), step = number("step", 0), times = number("times", 0);
  const bool grows = (step >= 1 && times == 0) || (step == 0 && times >= 2 && from >= 1);
  if (!range.contains("from") || !range.contains("to") || !grows || to < from)
    fail(line, fmt::format("the range {} is {}", name, range.dump()),
         "give from, to >= from, and either step >= 1 or times >= 2 (with from >= 1)");
  std::vector<std::string> values;
  for (std::int64_t at = from; at <= to; at = times != 0 ? at * times : at + step) {
    values.push_back(std::to_string(at));
    if (values.size() > max_values) fail(line, fmt::format("the range {} has more than {} values", name, max_values), "make it smaller");
  }
  return values;
}

std::vector<std::string> values_of(const Line& line, const std::string& name, const Json& value) {
  if (value.is_object()) return range_values(line, name, value);
  if (!value.is_array()) return {text_of(line, name, value)};
  std::vector<std::string> values;
  for (const Json& one : value) values.push_back(text_of(line, name, one));
  if (values.empty()) fail(line, fmt::format("{} is an empty list", name), "give at least one value, or leave it out");
  return values;
}

// Every combination of the values of all names but `fixed`, the last name changing fastest.
std::vector<Combination> combinations(const Line& line, const std::set<std::string>& fixed) {
  std::vector<Combination> all{{}};
  for (const auto& [name, value] : line.json.items()) {
    if (fixed.contains(name)) continue;
    const std::vector<std::string> values = values_of(line, name, value);
    if (all.size() * values.size() > max_values)
      fail(line, fmt::format("it stands for more than {} kernels", max_values), "make its ranges smaller");
    std::vector<Combination> longer;
    for (const Combination& combination : all)
      for (const std::string& one : values) {
        longer.push_back(combination);
        longer.back().emplace_back(name, one);
      }
    all = std::move(longer);
  }
  return all;
}

std::string title_of(const std::string& kernel, const Combination& combination) {
  std::string title = kernel;
  for (const auto& [name, value] : combination) title += fmt::format(" {}={}", name, value);
  return title;
}

KernelSpec catalog_kernel(const Line& line, const std::string& entry, const Combination& combination, const Target& target) {
  CatalogOptions options = default_options(entry);
  options.fp8 = target.fp8();
  for (const auto& [name, value] : combination) {
    const CatalogOption* const option = find_catalog_option(name);
    if (option == nullptr) {
      std::vector<std::string_view> names;
      for (const CatalogOption& each : all_catalog_options()) names.push_back(each.name);
      fail(line, fmt::format("the catalogue has no option \"{}\"", name),
           fmt::format("use {}, set, arch, batch_invariant", fmt::join(names, ", ")));
    }
    require_option_of(entry, *option);
    set_catalog_option(options, *option, value, target, [&](const std::string& fact, const std::string& remedy) {
      fail(line, fmt::format("{} is {}", name, fact), remedy);
    });
  }
  return catalog_spec(entry, options);
}

// `text` with every $NAME replaced, by a value of the line or a word of the target.
std::string filled_in(const Line& line, std::string_view text, const Combination& combination, const Target& target) {
  std::set<std::string> used;
  std::string filled = kiln::filled_in(text, [&](const std::string& name) {
    used.insert(name);
    const auto found = std::ranges::find(combination, name, &Setting::first);
    if (found != combination.end()) return found->second;
    if (auto word = target_word(name, target)) return *std::move(word);
    fail(line, fmt::format("the spec has ${}, and the line has no value for it", name), fmt::format("add \"{}\": ...", name));
  });
  for (const auto& [name, value] : combination)
    if (!used.contains(name))
      fail(line, fmt::format("\"{}\" stands nowhere in the spec as ${}", name, name), "use it there, or leave it out");
  return filled;
}

std::vector<std::string> strings_of(const Line& line, const char* name) {
  return line.json.contains(name) ? values_of(line, name, line.json.at(name)) : std::vector<std::string>();
}

std::string content_of(const Line& line, const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) fail(line, fmt::format("{} cannot be read", file.string()), "name a file relative to the manifest");
  return text.str();
}

bool is_known(const std::string& arch_or_chip) {
  return std::ranges::find(known_archs(), arch_or_chip) != known_archs().end() ||
         std::ranges::find(machine::chips, arch_or_chip, &machine::Chip::name) != machine::chips.end();
}

// What is asked for and what a line is for have in common. An architecture stands for all of its chips: the narrower of two is taken. A
// line may be for what Kiln does not know.
std::vector<std::string> common_targets(const std::vector<std::string>& asked, const std::vector<std::string>& of_line) {
  std::vector<std::string> common;
  for (const std::string& one : asked)
    for (const std::string& other : of_line) {
      if (!is_known(other)) continue;
      const std::string arch = target(one).arch();
      if (arch != target(other).arch() || (one != other && one != arch && other != arch)) continue;
      const std::string& narrower = one == arch ? other : one;
      if (std::ranges::find(common, narrower) == common.end()) common.push_back(narrower);
    }
  return common;
}

bool is_batch_invariant(const Line& line, bool otherwise) {
  if (!line.json.contains("batch_invariant")) return otherwise;
  const Json& value = line.json.at("batch_invariant");
  if (!value.is_boolean()) fail(line, fmt::format("batch_invariant is {}", value.dump()), "give true or false");
  return value.get<bool>();
}

void expand(const Line& line, const std::filesystem::path& folder, const std::vector<std::string>& archs, const CompileOptions& options,
            std::vector<AotKernel>& kernels) {
  const int kinds = line.json.contains("catalog") + line.json.contains("spec") + line.json.contains("spec_file");
  if (kinds != 1) fail(line, fmt::format("it has {} of catalog, spec and spec_file", kinds), "give exactly one");
  std::vector<std::string> for_archs = strings_of(line, "arch");
  if (for_archs.empty()) for_archs = archs;
  std::string text;
  if (line.json.contains("spec")) text = text_of(line, "spec", line.json.at("spec"));
  if (line.json.contains("spec_file")) text = content_of(line, folder / text_of(line, "spec_file", line.json.at("spec_file")));
  for (const Combination& combination : combinations(line, {"catalog", "spec", "spec_file", "set", "arch", "batch_invariant"}))
    for (const std::string& arch : common_targets(archs, for_archs)) {
      const Target gpu = target(arch).with_batch_invariance(is_batch_invariant(line, options.environment.batch_invariant));
      Combination values = combination;
      for (auto& [name, value] : values)
        if (value == "fp8") value = to_string(gpu.fp8());
      const KernelSpec spec = line.json.contains("catalog")
                                  ? catalog_kernel(line, text_of(line, "catalog", line.json.at("catalog")), values, gpu)
                                  : parse_spec(filled_in(line, text, values, gpu));
      kernels.push_back(aot_kernel(title_of(spec.name(), values), spec, gpu, strings_of(line, "set"), options));
    }
}

// JSON that ends too early, in a line as Recorder writes it, or in one that the file ends with.
bool is_cut_off(const std::string& row, bool last) {
  constexpr std::string_view recorded = R"({"spec":"kernel )";
  if (!last && !row.starts_with(recorded) && !recorded.starts_with(row)) return false;
  try {
    return Json::parse(row).is_discarded(); // false: it is whole
  } catch (const nlohmann::json::parse_error& error) {
    return error.byte > row.size();
  }
}

} // namespace

AotKernel aot_kernel(const std::string& title, const KernelSpec& spec, const Target& target, std::vector<std::string> overrides,
                     const CompileOptions& options) {
  KernelRequest request = kernel_request(spec, target, std::move(overrides), options);
  std::string id = cache_key(request, "").hex;
  return {title, std::move(request), std::nullopt, std::move(id)};
}

void tune_kernels(std::vector<AotKernel>& kernels, TunedSchedules& tuned) {
  for (AotKernel& kernel : kernels) {
    if (!kernel.request.overrides.empty()) continue;
    std::vector<std::string> settings = tuned.settings_for(parse_spec(kernel.request.spec), target_of(kernel.request));
    if (settings.empty()) continue;
    kernel.afresh = kernel.request;
    std::ranges::sort(settings);
    kernel.request.overrides = std::move(settings);
  }
}

void keep_first_of_equal(std::vector<AotKernel>& kernels) {
  std::set<std::string> seen;
  std::erase_if(kernels, [&](const AotKernel& kernel) { return !seen.insert(kernel.id).second; });
}

std::vector<AotKernel> parse_manifest(std::string_view text, const std::string& name, const std::filesystem::path& folder,
                                      const std::vector<std::string>& archs, const CompileOptions& options, const LogFunction& log) {
  std::vector<AotKernel> kernels;
  std::istringstream stream{std::string(text)};
  int number = 0;
  for (std::string row; std::getline(stream, row);) {
    Line line{.subject = fmt::format("{} line {}", name, ++number), .json = {}};
    const std::size_t first = row.find_first_not_of(" \t\r");
    if (first == std::string::npos || row[first] == '#') continue;
    if (is_cut_off(row, stream.eof())) {
      log(fmt::format("{}: it was cut off after {} bytes while it was written, and is skipped", line.subject, row.size()));
      continue;
    }
    try {
      line.json = Json::parse(row);
      if (!line.json.is_object()) fail(line, "it is no JSON object", "write {...} on one line");
      expand(line, folder, archs, options, kernels);
    } catch (const nlohmann::json::exception& error) {
      fail(line, fmt::format("it is no JSON object: {}", error.what()), "write one object a line");
    } catch (const UserError& error) {
      if (error.subject == line.subject) throw;
      throw UserError(fmt::format("{}: {}", line.subject, error.subject), error.fact, error.remedy);
    }
  }
  keep_first_of_equal(kernels);
  return kernels;
}

std::vector<AotKernel> read_manifest(const std::filesystem::path& file, const std::vector<std::string>& archs,
                                     const CompileOptions& options) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw UserError(fmt::format("manifest '{}'", file.string()), "it cannot be read",
                    "name a file of JSON lines; docs/aot.md has examples");
  return parse_manifest(text.str(), file.filename().string(), file.parent_path(), archs, options);
}

} // namespace kiln
