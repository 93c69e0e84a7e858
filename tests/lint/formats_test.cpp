// The formats of reports: JSON, SARIF against its specification, GitHub's commands, the HTML page.
#include "isa_checks/cli/report/html_pages.h"
#include "isa_checks/error.h"
#include "tests/lint/files.h"
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

using namespace kiln::isa::testing;
using nlohmann::json;

namespace {

std::vector<std::string> arguments(const Folder& folder, const std::string& format) {
  return {folder.write("a b,%.s", plain_text("gfx942", "plain")),
          folder.write("bad.co", std::string("nothing")),
          "--rule",
          "all",
          "--severity",
          "info",
          "--format",
          format};
}

void check_uri(const std::string& uri) {
  CHECK_FALSE(uri.empty());
  for (const char c : uri)
    CHECK((std::isalnum(static_cast<unsigned char>(c)) || std::string_view("-._~/%:").find(c) != std::string_view::npos));
}

} // namespace

TEST_CASE("json: the page of the schema has every field, and a finding says how to mend it") {
  const Folder folder;
  const std::string body = "again:\n  global_load_dword v1, v0, s[2:3]\n  v_add_f32_e32 v2, v1, v1\n  s_cbranch_scc1 again\n";
  const Result r = isa_lint({folder.write("k.s", plain_text("gfx942", "k", body)), "--format", "json"});
  const json report = json::parse(r.out);
  const std::string page = contents(KILN_SOURCE_DIR "/docs/lint_json.md");
  const auto documented = [&](const json& object) {
    for (const auto& [key, value] : object.items()) CHECK_MESSAGE(page.find("`" + key + "`") != std::string::npos, key);
  };
  documented(report);
  documented(report["summary"]);
  REQUIRE(report["kernels"].size() == 1);
  documented(report["kernels"][0]);
  documented(report["kernels"][0]["loops"][0]);
  const json* early = nullptr;
  for (const json& finding : report["kernels"][0]["findings"]) {
    documented(finding);
    documented(finding["repair"]);
    CHECK(finding["share"] >= 0);
    CHECK(finding["share"] <= 1);
    CHECK_FALSE(finding["repair"]["change"].get<std::string>().empty());
    CHECK_FALSE(finding["repair"]["effect"].get<std::string>().empty());
    if (finding["rule"] == "DAT001") early = &finding;
  }
  REQUIRE(early);
  CHECK((*early)["repair"]["change"].get<std::string>().starts_with("insert s_waitcnt vmcnt(0)"));
  CHECK((*early)["repair"]["address"] == (*early)["address"]);
  CHECK((*early)["share"] > 0.5); // the loop is nearly all of the kernel
}

TEST_CASE("--group: what is alike over kernels is one, errors first") {
  const Folder folder;
  const std::string body = "  global_load_dword v1, v0, s[2:3]\n  v_add_f32_e32 v2, v1, v1\n";
  for (const char* name : {"one", "two", "three"}) folder.write(std::string(name) + ".co", plain_object("gfx942", name, body));
  folder.write("four.co", plain_object("gfx942", "four"));
  const Result r = isa_lint({folder.path.string(), "--group"});
  CHECK(r.exit_code == 1);
  CHECK(r.out.starts_with("error DAT001: 3 findings in 3 kernels, 6 places, "));
  CHECK(r.out.find("warning MEM001: 1 finding in 1 kernel") != std::string::npos);
  CHECK(r.out.find(" groups of ") != std::string::npos);
  CHECK(isa_lint({folder.path.string(), "--group", "--format", "json"}).exit_code == 2);
}

TEST_CASE("the workflow of examples/github runs as it is") {
  const Folder folder;
  folder.write("build/kernels/k.s", plain_text("gfx942", "k"));
  std::istringstream workflow(contents(KILN_SOURCE_DIR "/examples/github/isa_lint.yml"));
  int steps = 0;
  for (std::string line; std::getline(workflow, line);) {
    const std::size_t at = line.find("run: isa_lint ");
    if (at == std::string::npos) continue;
    std::istringstream words(line.substr(at + 14));
    std::vector<std::string> command;
    for (std::string word; words >> word && word != "||";) {
      const bool path = word == "build/kernels" || word == "isa_lint.sarif";
      command.push_back(path ? folder.at(word) : word);
    }
    CAPTURE(line);
    const Result r = isa_lint(command);
    CHECK(r.err == "");
    CHECK(r.exit_code == (line.find("--severity error") != std::string::npos ? 0 : 1)); // it has warnings, no errors
    ++steps;
  }
  CHECK(steps == 3);
  CHECK(json::parse(contents(folder.at("isa_lint.sarif")))["runs"][0]["results"].size() > 0);
}

TEST_CASE("json: facts, loops, findings, failures and summary") {
  const Folder folder;
  const Result r = isa_lint(arguments(folder, "json"));
  CHECK(r.exit_code == 2); // bad.co
  const json report = json::parse(r.out);
  CHECK(report["version"] == 1);
  REQUIRE(report["kernels"].size() == 1);
  const json& kernel = report["kernels"][0];
  CHECK(kernel["facts"]["arch"] == "gfx942");
  CHECK(kernel["loops"][0]["loads"] == 1);
  CHECK(kernel["loops"][0]["bytes_a_trip"] == 256);
  CHECK(kernel["findings"].size() == report["summary"]["findings"].get<std::size_t>());
  CHECK(report["failures"].size() == 1);
  CHECK(report["summary"]["kernels"] == 1);
}

// What the 2.1.0 schema and specification demand of the properties that are written (sections 3.13 to 3.58). The whole schema is
// checked too where KILN_SARIF_SCHEMA names a copy of it and python3-jsonschema is installed: below.
TEST_CASE("sarif: the properties that are written are as the specification demands") {
  const Folder folder;
  const Result r = isa_lint(arguments(folder, "sarif"));
  const json log = json::parse(r.out);
  CHECK(log["version"] == "2.1.0");
  REQUIRE(log["runs"].size() == 1);
  const json& run = log["runs"][0];
  const json& driver = run["tool"]["driver"];
  CHECK(driver["name"] == "isa_lint");
  std::set<std::string> ids;
  for (const json& rule : driver["rules"]) {
    CHECK(ids.insert(rule["id"].get<std::string>()).second);
    CHECK_FALSE(rule["shortDescription"]["text"].get<std::string>().empty());
    CHECK_FALSE(rule["help"]["text"].get<std::string>().empty());
    CHECK(std::set<std::string>{"error", "warning", "note"}.contains(rule["defaultConfiguration"]["level"].get<std::string>()));
  }
  REQUIRE(run["results"].size() > 0);
  std::set<std::string> fingerprints;
  for (const json& result : run["results"]) {
    CHECK(driver["rules"][result["ruleIndex"].get<std::size_t>()]["id"] == result["ruleId"]);
    CHECK_FALSE(result["message"]["text"].get<std::string>().empty());
    const json& physical = result["locations"][0]["physicalLocation"];
    check_uri(physical["artifactLocation"]["uri"].get<std::string>());
    CHECK(physical["region"]["startLine"].get<int>() >= 1);
    CHECK(fingerprints.insert(result["partialFingerprints"].dump()).second);
  }
  const json& invocation = run["invocations"][0];
  CHECK(invocation["executionSuccessful"] == false);
  REQUIRE(invocation["toolExecutionNotifications"].size() == 1);
  CHECK(invocation["toolExecutionNotifications"][0]["message"]["text"].get<std::string>().find("bad.co") != std::string::npos);
}

TEST_CASE("sarif: the whole schema, where a copy is given") {
  const char* const schema = std::getenv("KILN_SARIF_SCHEMA");
  if (!schema) return;
  const Folder folder;
  folder.write("report.sarif", isa_lint(arguments(folder, "sarif")).out);
  const std::string script = "import json,sys,jsonschema; jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))";
  const std::string command = "python3 -c '" + script + "' '" + folder.at("report.sarif") + "' '" + schema + "'";
  CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("github: one command a line, with everything special escaped") {
  const Folder folder;
  const Result r = isa_lint(arguments(folder, "github"));
  CHECK(r.out.find("::warning file=" + folder.path.string() + "/a b%2C%25.s,line=") != std::string::npos);
  CHECK(r.out.find("::error file=") != std::string::npos); // the unreadable file
  std::size_t commands = 0;
  for (std::size_t at = 0; at < r.out.size(); at = r.out.find('\n', at) + 1) {
    const std::string line = r.out.substr(at, r.out.find('\n', at) - at);
    const bool command = line.starts_with("::error ") || line.starts_with("::warning ") || line.starts_with("::notice ");
    commands += command;
    CHECK((command || line.find(" in 1 kernel of ") != std::string::npos));
  }
  CHECK(commands > 2);
}

TEST_CASE("html: one page without anything from elsewhere, whose data cannot end its script") {
  const Folder folder;
  const std::string file = folder.write("k.s", plain_text("gfx942", "plain"));
  const Result r = isa_lint({file, "--format", "html", "-o", folder.at("report.html"), "--rule", "all"});
  CHECK(r.out.empty());
  const std::string page = contents(folder.at("report.html"));
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.ends_with("</html>\n"));
  for (const char* outside : {"src=", "href=", "@import", "url("}) CHECK(page.find(outside) == std::string::npos);
  CHECK(page.find("/*KERNELS*/") == std::string::npos);
  const std::string open = "<script type=\"application/json\" id=\"kernels\">";
  const std::size_t begin = page.find(open) + open.size(), end = page.find("</script>", begin);
  const std::string data = page.substr(begin, end - begin);
  CHECK(data.find('<') == std::string::npos);
  const json kernels = json::parse(data);
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0]["name"] == "plain");
  CHECK(kernels[0]["code"].size() == kernels[0]["instructions"].get<std::size_t>());
  CHECK(kernels[0]["loops"][0]["blocks"][0] == json::array({2, 8}));
  CHECK(kernels[0]["findings"].size() > 0);
  CHECK(kernels[0]["waits"][1]["for"] == json::array({2}));
  CHECK(kernels[0]["code"][2][7] == ""); // nothing counts in expcnt
}

TEST_CASE("html: beyond 5 MB an index and a page a kernel, in bounded memory; not into a pipe") {
  const Folder folder;
  const std::string half = "{\"kernel\":\"" + std::string(2'000'000, 'x') + "\"}", row = "{\"kernel\":\"k\"}";
  std::ofstream index(folder.at("report.html"));
  kiln::isa::cli::HtmlPages pages(index, folder.at("report.html"));
  for (int i = 0; i < 5; ++i) pages.add(half, row, true);
  pages.end("{\"summary\":\"five\"}");
  index.close();
  const std::string report = contents(folder.at("report.html"));
  CHECK(report.size() < 100'000);
  for (int i = 1; i <= 5; ++i) {
    const std::string page = "report_kernels/" + std::to_string(i) + ".html";
    CHECK(report.find("{\"page\":\"" + page + "\",\"kernel\":\"k\"}") != std::string::npos);
    const std::string kernel = contents(folder.at(page));
    CHECK(kernel.find("{\"index\":\"../report.html\"}") != std::string::npos);
    CHECK(kernel.find(half) != std::string::npos);
  }
  std::ostringstream pipe;
  kiln::isa::cli::HtmlPages one(pipe, "");
  for (int i = 0; i < 2; ++i) one.add(half, row, true);
  CHECK_THROWS_WITH_AS(
      one.add(half, row, true),
      "HTML report: it takes more than 5 MB as one page; write it with -o FILE, and kernels go into pages of their own beside it",
      kiln::isa::Error);
}
