// ProofSheet as text, JSON, and a page.
#include "runtime/proof/proof.h"
#include "runtime/table.h"
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace kiln {
namespace {

using Json = nlohmann::ordered_json;

std::string verdict_of(const ProofSheet& sheet) {
  const ProofLine* const failing = sheet.failing();
  return failing == nullptr ? "holds" : fmt::format("fails: {}", failing->name);
}

// A cell of a Markdown table: bars and line breaks would end it.
std::string cell(std::string text) {
  std::string result;
  for (const char c : text) result += c == '|' ? "\\|" : c == '\n' ? "<br>" : std::string(1, c);
  return result;
}

Json json_of(const isa::IsaReport& report) { return Json::parse(isa::to_json(report))["results"]; }

Json json_of(const ProofLine& line) {
  Json json{{"name", line.name}, {"verdict", to_string(line.verdict)}, {"found", line.found}};
  for (const auto& [name, number] : line.numbers) json["numbers"][name] = number;
  if (!line.evidence.empty()) json["evidence"] = line.evidence;
  return json;
}

std::string contract_table(const isa::IsaReport& report) {
  std::string text = "\n## Contract\n\n| Promise | Expected | Found | Margin | |\n|---|---|---|---|---|\n";
  for (const isa::ExpectationResult& r : report.results)
    text += fmt::format("| {} | {} | {} | {} | {} |\n", cell(r.name), cell(r.expected), cell(r.found),
                        r.margin ? fmt::format("{:g}", *r.margin) : std::string(), r.met ? "kept" : "**broken**");
  return text;
}

} // namespace

std::string to_text(const ProofSheet& sheet) {
  std::string text = fmt::format("{} for {}: {}\n", sheet.title, sheet.arch, verdict_of(sheet));
  Table table{.header = {"LINE", "VERDICT", "FOUND"}, .rows = {}, .right = {false, false, false}};
  for (const ProofLine& line : sheet.lines) {
    table.rows.push_back({line.name, std::string(to_string(line.verdict)), line.found});
    for (const std::string& evidence : line.evidence) table.rows.push_back({"", "", "  " + evidence});
  }
  text += to_text(table);
  for (const std::string& sentence : sheet.unknown) text += fmt::format("not known: {}\n", sentence);
  return text;
}

std::string to_json(const ProofSheet& sheet) {
  Json json{{"title", sheet.title},
            {"kernel", sheet.kernel},
            {"arch", sheet.arch},
            {"chip", sheet.chip},
            {"holds", sheet.holds()},
            {"spec", sheet.spec},
            {"schedule", sheet.settings},
            {"why", sheet.why},
            {"compiler", sheet.compiler},
            {"llvm", sheet.llvm},
            {"key", sheet.key},
            {"source_sha256", sheet.source_sha256},
            {"object_sha256", sheet.object_sha256},
            {"lines", Json::array()},
            {"contract", json_of(sheet.contract)},
            {"unknown", sheet.unknown}};
  for (const ProofLine& line : sheet.lines) json["lines"].push_back(json_of(line));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_markdown(const ProofSheet& sheet) {
  std::string text =
      fmt::format("# {} for {}: {}\n\n| Line | Verdict | Found |\n|---|---|---|\n", sheet.title, sheet.arch, verdict_of(sheet));
  for (const ProofLine& line : sheet.lines)
    text += fmt::format("| {} | {} | {} |\n", cell(line.name), line.verdict == ProofVerdict::fails ? "**fails**" : to_string(line.verdict),
                        cell(line.found));
  for (const ProofLine& line : sheet.lines) {
    if (line.evidence.empty()) continue;
    text += fmt::format("\n## {}{}\n\n", static_cast<char>(std::toupper(line.name.front())), line.name.substr(1));
    text += fmt::format("```\n{}\n```\n", fmt::join(line.evidence, "\n"));
  }
  text += contract_table(sheet.contract);
  text += fmt::format("\n## Schedule\n\n`{}`\n\n{}\n", fmt::join(sheet.settings, " "), sheet.why);
  text += fmt::format("\n## Spec\n\n```\n{}```\n", sheet.spec);
  text += "\n## Not known\n\n";
  for (const std::string& sentence : sheet.unknown) text += fmt::format("* {}\n", sentence);
  text += fmt::format("\n## Made of\n\n* compiler: {}, {}\n* cache key: `{}`\n* SHA-256 of the HIP source: `{}`\n* SHA-256 of the code "
                      "object: `{}`\n",
                      sheet.compiler, sheet.llvm, sheet.key, sheet.source_sha256, sheet.object_sha256);
  return text;
}

std::string summary(const std::vector<ProofSheet>& sheets, const std::vector<std::string>& pages) {
  const auto failed = std::ranges::count_if(sheets, [](const ProofSheet& sheet) { return !sheet.holds(); });
  std::string text = fmt::format("# {} of {} kernels hold\n\n| Kernel | Target | Verdict | Predicted |\n|---|---|---|---|\n",
                                 std::ssize(sheets) - failed, sheets.size());
  for (std::size_t i = 0; i < sheets.size(); ++i) {
    const ProofSheet& sheet = sheets[i];
    const auto time = std::ranges::find(sheet.lines, "predicted time", &ProofLine::name);
    const std::string title = i < pages.size() ? fmt::format("[{}]({})", sheet.title, pages[i]) : sheet.title;
    text += fmt::format("| {} | {} | {} | {} |\n", cell(title), sheet.arch, cell(verdict_of(sheet)),
                        time == sheet.lines.end() ? "" : cell(time->found));
  }
  return text;
}

} // namespace kiln
