// Tuning table: entries to lines and back.
#include "runtime/tune/tuning_table.h"
#include "gen/error.h"
#include "runtime/append_line.h"
#include "runtime/cache/request.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace kiln {
namespace {

using Json = nlohmann::ordered_json;

TuningEntry parse_line(const std::string& row) {
  const Json json = Json::parse(row);
  TuningEntry e;
  json.at("kernel").get_to(e.kernel);
  json.at("shape").get_to(e.shape);
  json.at("types").get_to(e.types);
  json.at("arch").get_to(e.arch);
  json.at("chip").get_to(e.chip);
  json.at("bounds").get_to(e.bounds);
  json.at("schedule").get_to(e.schedule);
  json.at("us").get_to(e.microseconds);
  json.at("how").get_to(e.how);
  json.at("tried").get_to(e.tried);
  json.at("kiln").get_to(e.kiln);
  json.at("compiler").get_to(e.compiler);
  json.at("spec").get_to(e.spec);
  return e;
}

bool is_cut_off(const std::string& row) {
  try {
    return Json::parse(row).is_discarded(); // false: it is whole
  } catch (const nlohmann::json::parse_error& error) {
    return error.byte > row.size();
  }
}

} // namespace

std::string shape_key(const KernelSpec& spec) {
  std::istringstream text(to_text(spec));
  std::string key;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("dim ")) line.resize(std::min(line.find('['), line.size()));
    key += line + '\n';
  }
  return key;
}

std::vector<std::int64_t> bounds_of(const KernelSpec& spec) {
  std::vector<std::int64_t> bounds;
  for (const Dim& dim : spec.dynamic_dims()) bounds.push_back(dim.max().value_or(0));
  return bounds;
}

TuningEntry entry_of(const KernelSpec& spec, const Target& target, std::string_view chip) {
  TuningEntry e;
  e.kernel = spec.name();
  std::vector<std::string> from, to, types, result_types;
  const auto add = [](std::vector<std::string>& shapes, std::vector<std::string>& names, const std::string& name, const Expr& value,
                      DType type) {
    std::vector<std::string> dims; // without bounds
    for (const Dim& dim : value.shape()) dims.push_back(dim.is_dynamic() ? dim.name() : std::to_string(dim.size()));
    shapes.push_back(fmt::format("{}[{}]", name, fmt::join(dims, ", ")));
    names.emplace_back(to_string(type));
  };
  for (const Expr& input : spec.inputs()) add(from, types, input->name, input, input.dtype());
  for (const Output& output : spec.outputs()) add(to, result_types, output.name, output.value, output.dtype);
  e.shape = fmt::format("{} -> {}", fmt::join(from, " "), fmt::join(to, " "));
  e.types = fmt::format("{} -> {}", fmt::join(types, " "), fmt::join(result_types, " "));
  e.arch = target.arch();
  e.chip = chip;
  e.bounds = bounds_of(spec);
  e.kiln = kiln_version();
  e.spec = shape_key(spec);
  return e;
}

std::string kiln_version() { return std::string(generator_hash().substr(0, 16)); }

std::string to_line(const TuningEntry& e) {
  const Json json{{"kernel", e.kernel}, {"shape", e.shape},       {"types", e.types},     {"arch", e.arch}, {"chip", e.chip},
                  {"bounds", e.bounds}, {"schedule", e.schedule}, {"us", e.microseconds}, {"how", e.how},   {"tried", e.tried},
                  {"kiln", e.kiln},     {"compiler", e.compiler}, {"spec", e.spec}};
  return json.dump();
}

std::vector<TuningEntry> read_tuning_table(const std::filesystem::path& file, const LogFunction& log) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw UserError(fmt::format("tuning table '{}'", file.string()), "it cannot be read", "name a file that kiln tune wrote");
  std::vector<TuningEntry> entries;
  int number = 0;
  for (std::string row; std::getline(stream, row);) {
    const std::string subject = fmt::format("{} line {}", file.string(), ++number);
    if (row.empty() || row.front() == '#') continue;
    if (stream.eof() && is_cut_off(row)) {
      if (log) log(fmt::format("{}: it was cut off after {} bytes while it was written, and is skipped", subject, row.size()));
      continue;
    }
    try {
      entries.push_back(parse_line(row));
    } catch (const nlohmann::json::exception& error) {
      throw UserError(subject, fmt::format("it is no entry of a tuning table: {}", error.what()), "remove the line, or tune again");
    }
  }
  if (stream.bad())
    throw UserError(fmt::format("tuning table '{}'", file.string()), "it cannot be read", "name a file that kiln tune wrote");
  return entries;
}

void append_entry(const std::filesystem::path& file, const TuningEntry& entry) {
  append_line(file, to_line(entry), "tuning table", "name a file that you may write, on a disk with room");
}

} // namespace kiln
