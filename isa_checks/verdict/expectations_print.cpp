// IsaReport as text and as JSON.
#include "isa_checks/verdict/expectations.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::isa {

std::string to_text(const IsaReport& report) {
  std::string text = fmt::format("{} ({}): {}\n", report.kernel, report.arch, report.met() ? "as expected" : "NOT as expected");
  for (const ExpectationResult& result : report.results) {
    text += fmt::format("  {} {:<28} expected {}, found {}\n", result.met ? "ok  " : "FAIL", result.name, result.expected, result.found);
    if (!result.met)
      for (const std::string& instruction : result.evidence) text += fmt::format("         {}\n", instruction);
  }
  return text;
}

std::string to_json(const IsaReport& report) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["kernel"] = report.kernel;
  json["arch"] = report.arch;
  json["met"] = report.met();
  json["results"] = Json::array();
  for (const ExpectationResult& result : report.results) {
    Json one{{"name", result.name}, {"expected", result.expected}, {"found", result.found}, {"met", result.met}};
    if (result.margin) one["margin"] = *result.margin;
    one["evidence"] = result.evidence;
    json["results"].push_back(std::move(one));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace kiln::isa
