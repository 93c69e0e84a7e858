// Findings as text and as JSON.
#include "isa_checks/verdict/finding.h"
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::isa {
namespace {

constexpr std::array<std::string_view, 3> severity_names{"info", "warning", "error"};

} // namespace

std::string_view to_string(Severity severity) { return severity_names[static_cast<std::size_t>(severity)]; }

std::optional<Severity> severity_of(std::string_view name) {
  for (std::size_t i = 0; i < severity_names.size(); ++i)
    if (severity_names[i] == name) return static_cast<Severity>(i);
  return std::nullopt;
}

std::string to_text(const Finding& f) {
  std::string text = fmt::format("{} {} {} ({})", f.rule, to_string(f.severity), f.kernel, f.arch);
  if (f.address) text += fmt::format(" at {:#x}", *f.address);
  if (!f.file.empty()) text += fmt::format(", {}:{}", f.file, f.line);
  text += fmt::format(": {}\n", f.message);
  if (!f.instruction.empty())
    text += fmt::format("    {}{}\n", f.instruction, f.others.empty() ? "" : fmt::format("    (and {} more)", f.others.size()));
  if (!f.loop.empty()) text += fmt::format("  in:  {}\n", f.loop);
  for (const std::string& step : f.path) text += fmt::format("  path: {}\n", step);
  text += fmt::format("  why: {}\n  try: {}\n", f.why, f.advice);
  return text;
}

std::string to_json(const std::vector<Finding>& findings) {
  using Json = nlohmann::ordered_json;
  Json json = Json::array();
  for (const Finding& f : findings) {
    Json evidence = Json::object();
    for (const Evidence& e : f.evidence) evidence[e.name] = {{"value", e.value}, {"unit", e.unit}};
    json.push_back(
        {{"rule", f.rule},
         {"severity", to_string(f.severity)},
         {"kernel", f.kernel},
         {"arch", f.arch},
         {"address", f.address ? Json(*f.address) : Json()},
         {"instruction", f.instruction},
         {"others", f.others},
         {"file", f.file},
         {"line", f.line},
         {"loop", f.loop},
         {"message", f.message},
         {"evidence", evidence},
         {"path", f.path},
         {"share", f.share},
         {"repair",
          {{"change", f.repair.change}, {"address", f.repair.address ? Json(*f.repair.address) : Json()}, {"effect", f.repair.effect}}},
         {"why", f.why},
         {"advice", f.advice}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace kiln::isa
