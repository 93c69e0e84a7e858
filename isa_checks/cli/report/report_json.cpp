// The report for programs.
#include "isa_checks/cli/report/report.h"
#include <nlohmann/json.hpp>

namespace kiln::isa::cli {
namespace {

using Json = nlohmann::ordered_json;

// Names come from the file's bytes: what is not UTF-8 is replaced, never thrown over.
std::string json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

class JsonReport : public ReportWriter {
public:
  explicit JsonReport(std::ostream& out) : out_(out) { out_ << "{\"version\":1,\"kernels\":["; }

  void kernel(const ScannedKernel& kernel) override {
    Json json{
        {"file", kernel.file}, {"object", kernel.object}, {"name", readable_name(kernel.facts.kernel)}, {"function", kernel.function}};
    json["facts"] = Json::parse(to_json(kernel.facts));
    json["loops"] = Json::array();
    for (const LoopDigest& l : kernel.loops)
      json["loops"].push_back({{"name", l.name},
                               {"depth", l.depth},
                               {"innermost", l.innermost},
                               {"instructions", l.instructions},
                               {"loads", l.loads},
                               {"bytes_a_trip", l.bytes_a_trip},
                               {"least_bytes_in_flight", l.min_bytes_in_flight},
                               {"drains", l.drains}});
    json["contracts"] = Json::array();
    for (const IsaReport& report : kernel.contracts) json["contracts"].push_back(Json::parse(to_json(report)));
    json["findings"] = Json::parse(to_json(kernel.findings));
    json["suppressed"] = kernel.suppressed;
    out_ << separator_ << '\n' << json_text(json);
    separator_ = ",";
    for (const Finding& finding : kernel.findings) counts_.add(finding);
  }

  void failed(const Error& error) override {
    errors_.push_back({{"subject", error.subject}, {"fact", error.fact}, {"remedy", error.remedy}});
  }

  void end(const ScanTotals& totals) override {
    const Json summary{{"files", totals.files},
                       {"objects", totals.objects},
                       {"kernels", totals.kernels},
                       {"findings", totals.findings},
                       {"errors", counts_.errors},
                       {"warnings", counts_.warnings},
                       {"infos", counts_.infos},
                       {"suppressed", totals.suppressed},
                       {"undecodable", totals.undecodable},
                       {"skipped", totals.skipped},
                       {"functions", totals.functions},
                       {"reviewed_functions", totals.reviewed_functions},
                       {"kernel_code_bytes", totals.kernel_bytes},
                       {"function_code_bytes", totals.function_bytes},
                       {"reviewed_function_code_bytes", totals.reviewed_function_bytes}};
    out_ << "\n],\"failures\":" << json_text(errors_) << ",\n\"summary\":" << json_text(summary) << "}\n";
  }

private:
  std::ostream& out_;
  std::string_view separator_;
  Json errors_ = Json::array();
  SeverityCounts counts_;
};

} // namespace

std::unique_ptr<ReportWriter> make_json_report(std::ostream& out) { return std::make_unique<JsonReport>(out); }

} // namespace kiln::isa::cli
