// kiln doctor: what was found on this machine, what is advised, and why.
#include "runtime/launch/doctor.h"
#include "runtime/cli/command.h"
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

namespace kiln::cli {
namespace {

void print_json(const std::vector<DoctorLine>& lines) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const DoctorLine& line : lines)
    list.push_back({{"subject", line.subject},
                    {"verdict", to_string(line.verdict)},
                    {"found", line.found},
                    {"advised", line.advised},
                    {"why", line.why}});
  fmt::print("{}\n", list.dump(2));
}

void print_text(const std::vector<DoctorLine>& lines) {
  for (const DoctorLine& line : lines) {
    fmt::print("{:<8}{}: {}\n", to_string(line.verdict), line.subject, line.found);
    if (!line.advised.empty()) fmt::print("        advised: {}\n", line.advised);
    fmt::print("        why: {}\n", line.why);
  }
}

} // namespace

Command make_doctor(CLI::App& root) {
  CLI::App* app = root.add_subcommand("doctor", "Find what on this machine keeps kernels from running, or from running fast");
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "Print one JSON document");
  return {app, [json] {
            const std::vector<DoctorLine> lines =
                examine({.root = "/", .variables = process_lookup(), .environment = process_environment()});
            *json ? print_json(lines) : print_text(lines);
            const bool problem = std::ranges::any_of(lines, [](const DoctorLine& line) { return line.verdict == Verdict::problem; });
            return problem ? kernel_failed : ok;
          }};
}

} // namespace kiln::cli
