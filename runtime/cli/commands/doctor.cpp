// kiln doctor: what was found on this machine, what is advised, and why.
#include "runtime/launch/doctor/doctor.h"
#include "runtime/cli/command.h"
#include "runtime/cli/output.h"
#include "runtime/tune/tuning_table.h"
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <pwd.h>
#include <regex>
#include <sys/utsname.h>
#include <unistd.h>

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

// Without what says whose machine this is: of paths outside the system's own folders the file's name stays, of the user and the machine
// nothing.
std::string anonymous(std::string text) {
  static const std::regex path("/(?!dev/|sys/|proc/|opt/rocm|usr/lib)(?:[^/ ,;:\"'()]+/)+");
  text = std::regex_replace(text, path, ".../");
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = 0;
  const passwd* const user = getpwuid(getuid());
  for (const std::string& name : {std::string(host), std::string(user == nullptr ? "" : user->pw_name)})
    if (name.size() > 2 && name != "root")
      for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;) text.replace(at, name.size(), "...");
  return text;
}

// What a report of a fault needs: versions, devices, errors.
std::string report(const std::vector<DoctorLine>& lines) {
  nlohmann::ordered_json json{{"kiln", kiln_version()}};
  if (utsname system{}; uname(&system) == 0) json["system"] = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  json["lines"] = nlohmann::ordered_json::array();
  for (const DoctorLine& line : lines)
    json["lines"].push_back({{"subject", line.subject}, {"verdict", to_string(line.verdict)}, {"found", anonymous(line.found)}});
  return json.dump(2) + "\n";
}

} // namespace

Command make_doctor(CLI::App& root) {
  CLI::App* app = root.add_subcommand("doctor", "Find what on this machine keeps kernels from running, or from running fast");
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "Print one JSON document");
  const auto file = std::make_shared<std::string>();
  app->add_option("--report", *file, "Also write a file to send with a report: versions, devices and errors, no names and no paths");
  return {app, [json, file] {
            const std::vector<DoctorLine> lines =
                examine({.root = "/", .variables = process_lookup(), .environment = process_environment()});
            if (!file->empty()) write_file(*file, report(lines));
            *json ? print_json(lines) : print_text(lines);
            const bool problem = std::ranges::any_of(lines, [](const DoctorLine& line) { return line.verdict == Verdict::problem; });
            return problem ? kernel_failed : ok;
          }};
}

} // namespace kiln::cli
