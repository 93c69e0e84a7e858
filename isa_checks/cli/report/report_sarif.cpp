// SARIF 2.1.0 (OASIS), as code scanning services read it.
#include "isa_checks/cli/report/report.h"
#include <filesystem>
#include <fmt/format.h>
#include <kiln_version.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kiln::isa::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string sarif_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A path as a URI reference (RFC 3986): relative ones stay relative, for the reader to resolve.
std::string uri(const std::string& path) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string result = std::filesystem::path(path).is_absolute() ? "file://" : "";
  for (const char c : path)
    result += plain.find(c) != plain.npos ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return result;
}

std::string_view level(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

Json rule_json(const Rule& rule) {
  Json json{{"id", rule.id},
            {"name", rule.name},
            {"shortDescription", {{"text", rule.summary}}},
            {"fullDescription", {{"text", rule.why}}},
            {"help", {{"text", rule.advice}}},
            {"defaultConfiguration", {{"enabled", rule.on}, {"level", level(rule.severity)}}}};
  if (!rule.page.empty()) json["help"]["markdown"] = rule.page;
  return json;
}

Json driver() {
  Json rules = Json::array();
  for (const Rule& rule : all_rules()) rules.push_back(rule_json(rule));
  rules.push_back(rule_json({.id = contract_rule,
                             .name = "unmet-expectation",
                             .severity = Severity::error,
                             .on = true,
                             .summary = "an expectation of the kernel is not met",
                             .why = contract_why,
                             .advice = contract_advice,
                             .page = {}}));
  return {{"name", "isa_lint"}, {"semanticVersion", KILN_VERSION}, {"rules", rules}};
}

class SarifReport : public ReportWriter {
public:
  explicit SarifReport(std::ostream& out) : out_(out) {
    const Json tool = driver();
    for (std::size_t i = 0; i < tool["rules"].size(); ++i) rule_index_[tool["rules"][i]["id"].get<std::string>()] = i;
    out_ << R"({"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[{"tool":{"driver":)" << sarif_text(tool)
         << "},\n\"results\":[";
  }

  void kernel(const ScannedKernel& kernel) override {
    std::map<std::string, int> ordinals; // of a rule in this kernel
    for (const Finding& finding : kernel.findings) {
      out_ << separator_ << '\n' << sarif_text(result(kernel, finding, ordinals[finding.rule]++));
      separator_ = ",";
    }
  }

  void failed(const Error& error) override { notifications_.push_back({{"level", "error"}, {"message", {{"text", error.what()}}}}); }

  void end(const ScanTotals& totals) override {
    const Json invocation{{"executionSuccessful", notifications_.empty()}, {"toolExecutionNotifications", notifications_}};
    const Json properties{{"kernels", totals.kernels}, {"suppressed", totals.suppressed}, {"skipped", totals.skipped}};
    out_ << "\n],\n\"invocations\":[" << sarif_text(invocation)
         << "],\"columnKind\":\"utf16CodeUnits\",\"properties\":" << sarif_text(properties) << "}]}\n";
  }

private:
  Json result(const ScannedKernel& kernel, const Finding& f, int ordinal) const {
    Json text{{"text", fmt::format("{}. {}", f.message, f.advice)}};
    Json properties{{"object", kernel.object}, {"arch", f.arch}, {"loop", f.loop}, {"instruction", f.instruction}};
    for (const Evidence& e : f.evidence) properties["evidence"][e.name] = {{"value", e.value}, {"unit", e.unit}};
    return {{"ruleId", f.rule},
            {"ruleIndex", rule_index_.at(f.rule)},
            {"level", level(f.severity)},
            {"message", text},
            {"locations", Json::array({location(kernel, f)})},
            // Stable from build to build: the nth finding of a rule in a kernel.
            {"partialFingerprints", {{"kernelRule/v1", fmt::format("{}/{}/{}/{}", f.rule, f.arch, f.kernel, ordinal)}}},
            {"properties", properties}};
  }

  // The source line where there is one; else the file that was read, and the address in it.
  static Json location(const ScannedKernel& kernel, const Finding& f) {
    Json physical{{"artifactLocation", {{"uri", uri(f.file.empty() ? kernel.file : f.file)}}}};
    physical["region"] = {{"startLine", f.file.empty() ? 1 : f.line}}; // GitHub shows nothing without a line
    if (f.address) physical["address"] = {{"absoluteAddress", *f.address}, {"kind", "instruction"}};
    return {{"physicalLocation", physical}, {"logicalLocations", Json::array({{{"name", f.kernel}, {"kind", "function"}}})}};
  }

  std::ostream& out_;
  std::string_view separator_;
  std::map<std::string, std::size_t> rule_index_;
  Json notifications_ = Json::array();
};

} // namespace

std::unique_ptr<ReportWriter> make_sarif_report(std::ostream& out) { return std::make_unique<SarifReport>(out); }

} // namespace kiln::isa::cli
