// isa_lint as a user meets it: exit codes, what findings depend on, and what is said to wrong input.
#include "isa_checks/cli/run.h"
#include "tests/lint/cli_checks.h"
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/wait.h>

using namespace kiln::isa::testing;
using nlohmann::json;

TEST_CASE("exit codes: clean, findings, unreadable, bad usage") {
  const Folder folder;
  CHECK(isa_lint({folder.write("clean.s", clean_text())}).exit_code == 0);
  const Result found = isa_lint({folder.write("scratch.s", scratch_text())});
  CHECK(found.exit_code == 1);
  CHECK(has(found.out, "error SPL001"));
  CHECK(has(found.out, "in 1 kernel of 1 file"));
  CHECK(isa_lint({folder.write("x.co", std::string("nothing"))}).exit_code == 2);
  CHECK(isa_lint({}).exit_code == 2);
  CHECK(isa_lint({"--help"}).exit_code == 0);
  CHECK(isa_lint({"--version"}).out.starts_with("isa_lint "));
  // The program itself, and a pipe: no colour.
  const std::string command = std::string(ISA_LINT) + " " + folder.at("scratch.s") + " >" + folder.at("out") + " 2>&1";
  const int status = std::system(command.c_str());
  CHECK(WEXITSTATUS(status) == 1);
  CHECK_FALSE(has(contents(folder.at("out")), "\x1b["));
}

TEST_CASE("one unreadable file does not hide the others, and makes the exit code 2") {
  const Folder folder;
  const Result r = isa_lint({folder.write("bad.co", std::string("\177ELF nonsense")), folder.write("scratch.s", scratch_text())});
  CHECK(r.exit_code == 2);
  CHECK(has(r.err, "bad.co"));
  CHECK(has(r.out, "SPL001"));
}

TEST_CASE("a path that does not exist does not hide the others, in whatever order they are given") {
  const Folder folder;
  const Folder empty;
  const std::string missing = folder.at("missing.co"), scratch = folder.write("scratch.s", scratch_text());
  for (const std::vector<std::string>& files : {std::vector{missing, scratch}, std::vector{scratch, missing}}) {
    const Result r = isa_lint(files);
    CHECK(r.exit_code == 2);
    CHECK(r.err.starts_with("error: " + missing + ": there is no such file or folder; "));
    CHECK(std::ranges::count(r.err, '\n') == 1);
    CHECK(has(r.out, "error SPL001"));
    CHECK(has(r.out, "in 1 kernel of 1 file"));
  }
  const Result r = isa_lint({missing, empty.path.string(), folder.write("clean.s", clean_text()), "--format", "json"});
  CHECK(r.exit_code == 2); // although nothing was found
  CHECK(has(r.err, "holds no file with device code"));
  CHECK(json::parse(r.out)["failures"].size() == 2);
  CHECK(json::parse(r.out)["kernels"].size() == 1);
  const Result facts = isa_lint({"facts", missing, scratch});
  CHECK(facts.exit_code == 2);
  CHECK(has(facts.out, "gfx942"));
}

TEST_CASE("the threshold decides what is reported and what ends with 1") {
  const Folder folder;
  const std::string file = folder.write("k.s", plain_text("gfx942")); // a loop that drains: warnings, no errors
  CHECK(isa_lint({file, "--severity", "error"}).exit_code == 0);
  const Result all = isa_lint({file, "--severity", "info", "--rule", "all", "--format", "json"});
  CHECK(all.exit_code == 1);
  std::size_t infos = 0;
  const json findings = json::parse(all.out)["kernels"][0]["findings"];
  for (const json& f : findings) infos += f["severity"] == "info";
  CHECK(findings.size() > 1);
  const Result warnings = isa_lint({file, "--severity", "warning", "--rule", "all", "--format", "json"});
  CHECK(json::parse(warnings.out)["kernels"][0]["findings"].size() == findings.size() - infos);
}

TEST_CASE("colour where it is wanted, and no control characters of a file's") {
  const Folder folder;
  const std::string file = folder.write("k.s", scratch_text());
  std::ostringstream out, err;
  CHECK(kiln::isa::cli::run({file}, out, err, true) == 1);
  CHECK(has(out.str(), "\x1b[1;31merror\x1b[0m"));
  const std::string id = "hipv4-amdgcn-amd-amdhsa--\x1b[31mgfx";
  const Result r = isa_lint({folder.write("b.co", bundle({{id, kiln::isa::Bytes(10, 1)}}))});
  CHECK(r.exit_code == 2);
  CHECK_FALSE(has(r.err, "\x1b"));
  CHECK(has(r.err, "?[31mgfx"));
}

TEST_CASE("explain: a rule, all of them, none") {
  const Result list = isa_lint({"explain"});
  CHECK(list.exit_code == 0);
  CHECK(has(list.out, "SPL001   error    on"));
  CHECK(has(isa_lint({"explain", "SPL001"}).out, "SPL001"));
  CHECK(has(isa_lint({"explain", "EXPECT"}).out, "expectation"));
  check_refused({"explain", "SPL999"}, "'SPL999' names none of the ");
}

TEST_CASE("facts: a table, every fact, JSON lines") {
  const Folder folder;
  const std::string file = folder.write("k.s", plain_text("gfx942"));
  const Result table = isa_lint({"facts", file});
  CHECK(table.exit_code == 0);
  CHECK(table.out.starts_with("KERNEL"));
  CHECK(has(table.out, "4B x1"));
  CHECK(has(isa_lint({"facts", file, "--long"}).out, "occupancy"));
  CHECK(has(isa_lint({"facts", file, "--analyses"}).out, "issue and roofline"));
  CHECK(nlohmann::json::parse(isa_lint({"facts", file, "--analyses", "--json"}).out).contains("matrix"));
  const Result lines = isa_lint({"facts", file, "--json"});
  CHECK(std::ranges::count(lines.out, '\n') == 1);
  CHECK(json::parse(lines.out)["resources"]["vgprs"] == 8);
}

TEST_CASE("threads change neither findings nor their order") {
  const Folder folder;
  std::vector<Entry> entries;
  std::vector<kiln::isa::Bytes> row;
  for (int i = 0; i < 24; ++i)
    row.push_back(bundle({{"hipv4-amdgcn-amd-amdhsa--gfx942", plain_object("gfx942", "kernel_" + std::to_string(i))}}));
  const std::string file = folder.write("many.so", host_file({{".hip_fatbin", in_a_row(row)}}));
  const Result one = isa_lint({file, "-j", "1", "--rule", "all", "--severity", "info"}),
               eight = isa_lint({file, "-j", "8", "--rule", "all", "--severity", "info"});
  CHECK(one.out == eight.out);
  CHECK(has(one.out, "in 24 kernels of 1 file"));
  CHECK(one.out.find("kernel_2\n") < one.out.find("kernel_10\n"));
}

TEST_CASE("standard input, host programs and other architectures in folders") {
  const Folder folder;
  const std::string object = folder.write("k.co", plain_object("gfx942"));
  const auto piped = [&](const std::string& command) {
    return std::system((command + " > " + folder.at("out") + " 2> " + folder.at("err")).c_str());
  };
  CHECK(WEXITSTATUS(piped(std::string(ISA_LINT) + " - --no-settings < " + object)) == 1);
  CHECK(has(contents(folder.at("out")), "in 1 kernel of 1 file"));
  CHECK(has(contents(folder.at("out")), "gfx942, standard input"));
  CHECK(WEXITSTATUS(piped(std::string(ISA_LINT) + " - < /dev/null")) == 2);
  folder.write("program.so", host_file({{".text", kiln::isa::Bytes(16, 0)}}));
  auto other = plain_object("gfx942");
  other[48] = 0x41; // e_flags: gfx1100
  folder.write("other.co", other);
  const Result r = isa_lint({folder.path.string(), "--severity", "info"});
  CHECK(r.exit_code == 1);
  CHECK(has(r.err, "skipped code objects of other architectures: 1 gfx1100\n"));
  CHECK(has(r.err, "skipped 1 host file without device code\n"));
  CHECK_FALSE(has(r.err, "error"));
  CHECK(isa_lint({folder.at("program.so")}).exit_code == 2); // named by itself, it is an error
}

TEST_CASE("functions beside the kernels that nothing calls are counted: they are not reviewed") {
  const Folder folder;
  const std::string function = ".text\n.type helper,@function\nhelper:\n  s_setpc_b64 s[30:31]\n.Lend:\n.size helper, .Lend-helper\n";
  CHECK(has(isa_lint({folder.write("k.s", clean_text() + function)}).out, "; 0 of 1 function beside the kernels reviewed, "));
  CHECK_FALSE(has(isa_lint({folder.write("plain.s", clean_text())}).out, "beside the kernels"));
}
