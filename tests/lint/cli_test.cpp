// isa_lint as a user meets it: exit codes, what findings depend on, and what is said to wrong input.
#include "isa_checks/cli/run.h"
#include "tests/lint/files.h"
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/wait.h>

using namespace kiln::isa::testing;
using nlohmann::json;

namespace {

// A kernel that uses scratch memory: SPL001, an error, and nothing else that is one.
std::string scratch_text(const std::string& name = "k", const std::string& comment = {}) {
  std::string text = plain_text("gfx942", name, "  scratch_store_dword off, v0, off " + comment + "\n  s_waitcnt vmcnt(0)\n");
  const std::string none = ".amdhsa_private_segment_fixed_size 0", some = ".amdhsa_private_segment_fixed_size 16";
  text.replace(text.find(none), none.size(), some);
  const std::string key = ".private_segment_fixed_size: 0", value = ".private_segment_fixed_size: 16"; // the metadata
  text.replace(text.find(key), key.size(), value);
  const std::string off = ".amdhsa_enable_private_segment 0", on = ".amdhsa_enable_private_segment 1";
  text.replace(text.find(off), off.size(), on);
  return text;
}

std::string clean_text() { return plain_text("gfx942", "k", "  v_add_f32_e32 v0, v0, v0\n"); }

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

void check_refused(const std::vector<std::string>& arguments, std::string_view says) {
  const Result r = isa_lint(arguments);
  CAPTURE(r.err);
  CHECK(r.exit_code == 2);
  CHECK(r.err.starts_with("error: "));
  CHECK(has(r.err, says));
  CHECK(std::ranges::count(r.err, '\n') == 1);
  CHECK(has(r.err, "; ")); // a remedy
}

} // namespace

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

TEST_CASE("rules on and off, kernels and architectures chosen") {
  const Folder folder;
  const std::string file = folder.write("scratch.s", scratch_text("first"));
  CHECK(isa_lint({file, "--no-rule", "SPL001", "--severity", "error"}).exit_code == 0);
  CHECK(isa_lint({file, "--only", "SPL002"}).exit_code == 0);
  CHECK(isa_lint({file, "--only", "SPL001"}).exit_code == 1);
  CHECK(isa_lint({file, "--kernel", "fi*"}).exit_code == 1);
  check_refused({file, "--kernel", "second"}, "none was found");
  check_refused({file, "--rule", "XYZ001"}, "'XYZ001' names none of the ");
  check_refused({file, "--arch", "gfx1100"}, "not in the target table");
  check_refused({file, "--severity", "fatal"}, "there is no severity 'fatal'");
  check_refused({file, "--format", "xml"}, "--format");
  check_refused({folder.at("missing.co")}, "there is no such file or folder");
  check_refused({file, "-o", folder.at("no/such/folder/report")}, "cannot be opened for writing");
  const Result other = isa_lint({file, "--arch", "gfx950"});
  CHECK(other.exit_code == 2); // nothing was reviewed
  CHECK(has(other.err, "1 gfx942"));
}

TEST_CASE("a comment in the source suppresses; on its line, on the line before, for the file; and only that rule") {
  const Folder folder;
  const auto code = [&](const std::string& text) {
    const Result r = isa_lint({folder.write("k.s", text), "--only", "SPL001"});
    CAPTURE(r.err);
    return r.exit_code;
  };
  REQUIRE(code(scratch_text()) == 1);
  CHECK(code("// isa_lint: allow-file SPL001 (a debug build)\n" + scratch_text()) == 0);
  CHECK(code("// isa_lint: allow-file SPL002\n" + scratch_text()) == 1);
  CHECK(code("// isa_lint: allow-file *\n" + scratch_text()) == 0);
  // WAIT and MEM rules have lines; a warning of the loop in the plain text goes by the comment on its line.
  const std::string line = "  global_load_dword v1, v0, s[0:1]";
  std::string text = plain_text("gfx942");
  const auto findings_on_line = [&](const std::string& source) {
    const Result r = isa_lint({folder.write("loop.s", source), "--rule", "all", "--severity", "info", "--format", "json"});
    std::size_t count = 0;
    const json report = json::parse(r.out);
    for (const json& f : report["kernels"][0]["findings"]) count += has(f["instruction"].get<std::string>(), "global_load_dword ");
    return count;
  };
  REQUIRE(findings_on_line(text) > 0);
  std::string same = text, before = text;
  same.replace(same.find(line), line.size(), line + " // isa_lint: allow *");
  before.replace(before.find(line), line.size(), "// isa_lint: allow *, because it is a test\n" + line);
  CHECK(findings_on_line(same) == 0);
  CHECK(findings_on_line(before) == 0);
}

TEST_CASE("a baseline knows what was there, and nothing more") {
  const Folder folder;
  const std::string file = folder.write("k.s", scratch_text());
  CHECK(isa_lint({file, "--write-baseline", folder.at("base.json")}).exit_code == 0);
  const Result again = isa_lint({file, "--baseline", folder.at("base.json")});
  CHECK(again.exit_code == 0);
  CHECK(has(again.out, "suppressed"));
  // Another kernel with the same finding is new.
  folder.write("k.s", scratch_text("other"));
  CHECK(isa_lint({file, "--baseline", folder.at("base.json")}).exit_code == 1);
  check_refused({file, "--baseline", folder.write("bad.json", std::string("{\"findings\": [{\"rule\": 1}]}"))},
                "lacks rule, kernel or arch");
  check_refused({file, "--baseline", folder.write("list.json", std::string("[]"))}, "'the file' is a list");
}

TEST_CASE("settings are found upwards from the file; the command line overrules them") {
  const Folder folder;
  const std::string file = folder.write("deep/er/k.s", scratch_text());
  folder.write(".isa_lint.yaml", std::string("rules:\n  disable: [SPL001]\n"));
  CHECK(isa_lint({file}).exit_code == 0);
  CHECK(isa_lint({file, "--rule", "SPL001"}).exit_code == 1);
  CHECK(isa_lint({file, "--no-settings"}).exit_code == 1);
  // The nearest one counts.
  folder.write("deep/.isa_lint.yaml", std::string("suppress:\n  - {rule: \"SPL*\", kernel: other, reason: \"not this\"}\n"));
  CHECK(isa_lint({file}).exit_code == 1);
  folder.write("deep/.isa_lint.yaml", std::string("suppress:\n  - {rule: \"SPL*\", kernel: k, file: k.s, reason: \"known\"}\n"));
  CHECK(isa_lint({file}).exit_code == 0);
  const auto settings = [&](const std::string& text) { folder.write("deep/.isa_lint.yaml", text); };
  settings("suppress:\n  - {rule: SPL001}\n");
  check_refused({file}, ".isa_lint.yaml:2: an entry of suppress has no reason");
  settings("rules: {disable: [SPL9]}\n");
  check_refused({file}, ".isa_lint.yaml:1: 'SPL9' names none of the ");
  settings("sevrity: error\n");
  check_refused({file}, "there is no setting 'sevrity'");
  settings("severity: [\n");
  check_refused({file}, "it is no valid YAML: line");
}

TEST_CASE("settings: registers that nobody may write") {
  const Folder folder;
  const std::string file = folder.write("k.s", plain_text("gfx942"));
  const auto pinned = [&](const std::string& text) {
    folder.write(".isa_lint.yaml", "pinned: " + text + "\n");
    return isa_lint({file, "--severity", "error"});
  };
  CHECK(has(pinned("{first_vgpr: 1}").out, "error PIN001")); // the load into v1
  CHECK(pinned("{first_vgpr: 1, allowed: [global_load_]}").exit_code == 0);
  CHECK(pinned("{first_vgpr: 2}").exit_code == 0);
  CHECK(has(pinned("{allowed: v_mfma_}").err, "'pinned' lacks first_vgpr"));
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

TEST_CASE("expectations: met, unmet, malformed") {
  const Folder folder;
  const std::string file = folder.write("k.s", plain_text("gfx942"));
  const auto expect = [&](const std::string& text) {
    return isa_lint({file, "--only", "SPL001", "--expect", folder.write("e.yaml", text)});
  };
  CHECK(expect("no_scratch: true\nmax_vgprs: 64\nglobal_loads: {min_bytes: 4}\nrequired: [v_add_u32]\n").exit_code == 0);
  const Result unmet = expect("kernels:\n  - kernel: \"k*\"\n    arch: gfx942\n    global_loads: {min_bytes: 16}\n    forbidden: "
                              "[flat_, global_load_dword]\n");
  CHECK(unmet.exit_code == 1);
  CHECK(has(unmet.out, "error EXPECT: global_loads is expected to be"));
  CHECK(has(unmet.out, "forbidden global_load_dword"));
  CHECK_FALSE(has(unmet.out, "forbidden flat_"));
  CHECK(expect("no_findings: [SPL001]\nin_loops_with: v_mfma_\n").exit_code == 0);
  CHECK(expect("{\"kernels\": [{\"kernel\": \"other\", \"max_vgprs\": 1}]}").exit_code == 0); // about another kernel; JSON
  const auto refused = [&](const std::string& text, std::string_view says) {
    check_refused({file, "--expect", folder.write("e.yaml", text)}, says);
  };
  refused("max_vgpr: 4\n", "e.yaml:1: there is no setting 'max_vgpr'; use kernel, arch, no_scratch");
  refused("no_scratch: true\nmax_vgprs: -1\n", "e.yaml:2: 'max_vgprs' is '-1'");
  refused("kernels: []\nno_scratch: true\n", "stands beside 'kernels'");
  refused("- 1\n", "'the file' is a list");
  refused("lds: {min_byte: 4}\n", "there is no setting 'min_byte'; use min_bytes, exceptions or at_least");
  refused("kernel: k\n", "an entry expects nothing");
  refused("no_scratch: true\nno_scratch: true\n", "comes twice");
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
  const Result lines = isa_lint({"facts", file, "--json"});
  CHECK(std::ranges::count(lines.out, '\n') == 1);
  CHECK(json::parse(lines.out)["resources"]["vgprs"] == 8);
}

TEST_CASE("show: loops indented, waits explained, what is outstanding, findings in place") {
  const Folder folder;
  const Result r = isa_lint({"show", folder.write("k.s", plain_text("gfx942")), "--rule", "all", "--kernel", "k"});
  CHECK(r.exit_code == 0);
  CHECK(has(r.out, "loop 0 (0xc to "));
  CHECK(has(r.out, "^ vmcnt(0): of 1 outstanding waits for all: global_load_dword at 0xc; the youngest 0 instructions ago"));
  CHECK(has(r.out, "! WAIT"));
  CHECK(has(r.out, "; to block_1"));
  // Before the wait for the load, one vector memory operation is outstanding.
  const std::size_t at = r.out.find("s_waitcnt vmcnt(0)");
  REQUIRE(at != std::string::npos);
  const std::string margin = r.out.substr(r.out.rfind('\n', at) + 1, 14);
  CHECK(margin == "      14     1");
}

TEST_CASE("show: expcnt has a column where something counts in it") {
  const Folder folder;
  const std::string file = folder.write("k.s", plain_text("gfx942", "k", "  ds_gws_init v0 gds\n  s_waitcnt expcnt(0)\n"));
  const Result r = isa_lint({"show", file});
  CHECK(r.exit_code == 0);
  CHECK(has(r.out, " address    vm  lgkm   exp\n"));
  CHECK(has(r.out, "           1     1    s_waitcnt expcnt(0)\n"));
  CHECK(has(r.out, "^ expcnt(0): of 1 outstanding waits for all: ds_gws_init at 0x0"));
  CHECK_FALSE(has(isa_lint({"show", folder.write("plain.s", plain_text("gfx942"))}).out, "lgkm   exp"));
}

TEST_CASE("diff: nothing, worse, better, thresholds, kernels that came and went") {
  const Folder folder;
  const std::string before = folder.write("old/k.s", clean_text()), after = folder.write("new/k.s", scratch_text());
  const Result same = isa_lint({"diff", before, before});
  CHECK(same.exit_code == 0);
  CHECK(has(same.out, "0 of 1 kernel changed"));
  const Result worse = isa_lint({"diff", before, after});
  CHECK(worse.exit_code == 1);
  CHECK(has(worse.out, "! scratch_bytes      0 -> 16 B"));
  CHECK(has(worse.out, "! came: SPL001 error"));
  const Result better = isa_lint({"diff", after, before});
  CHECK(better.exit_code == 0);
  CHECK(has(better.out, "went: SPL001 error"));
  CHECK(isa_lint({"diff", before, after, "--only", "SPL002", "--threshold", "scratch_bytes=off,global_width=off"}).exit_code ==
        1); // other_hot_instructions
  CHECK(isa_lint({"diff", before, after, "--only", "SPL002", "--threshold", "scratch_bytes=off,other_hot_instructions=1000"}).exit_code ==
        0);
  const Result renamed =
      isa_lint({"diff", folder.at("old"), folder.write("other/k.s", plain_text("gfx942", "second", "  s_nop 0\n")), "--json"});
  CHECK(renamed.exit_code == 0);
  const json changes = json::parse(renamed.out)["kernels"];
  REQUIRE(changes.size() == 2);
  CHECK(changes[0]["kernel"] == "second");
  CHECK(changes[0]["added"] == true);
  CHECK(changes[1]["removed"] == true);
  check_refused({"diff", before, after, "--threshold", "speed=1"}, "there is no metric 'speed'");
  check_refused({"diff", before, after, "--threshold", "vgprs=few"}, "'few' is no percentage");
  check_refused({"diff", before}, "new");
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

TEST_CASE("rules by beginning, name and glob, in any case") {
  const Folder folder;
  const std::string file = folder.write("k.s", scratch_text());
  const std::string by_id = isa_lint({file, "--only", "SPL001"}).out;
  CHECK(has(by_id, "SPL001"));
  for (const char* word : {"spl001", "scratch-memory", "Scratch-*", "SPL00[1]"}) CHECK(isa_lint({file, "--only", word}).out == by_id);
  CHECK(isa_lint({file, "--only", "SPL"}).out == isa_lint({file, "--only", "SPL*"}).out);
  CHECK_FALSE(has(isa_lint({file, "--no-rule", "spl"}).out, "SPL"));
  const std::string pages = isa_lint({"explain", "dat"}).out;
  for (const char* id : {"# DAT001", "# DAT002", "# DAT003", "# DAT004"}) CHECK(has(pages, id));
}

TEST_CASE("--statistics counts, --write-baseline is short") {
  const Folder folder;
  const std::string file = folder.write("k.s", scratch_text());
  const Result counted = isa_lint({file, "--only", "SPL001", "--statistics"});
  CHECK(counted.exit_code == 1);
  CHECK(has(counted.out, "        1         1         1  error    SPL001   scratch memory is used"));
  const Result written = isa_lint({file, "--only", "SPL001", "--write-baseline", folder.at("base.json")});
  CHECK(written.exit_code == 0);
  CHECK(written.out == "1 finding (1 error) in 1 kernel of 1 file\n");
}

TEST_CASE("settings that match nothing are warned about, those that match are not") {
  const Folder folder;
  folder.write("k.s", scratch_text());
  folder.write("expect.yaml", "kernels:\n  - {kernel: 'k', max_vgprs: 512}\n  - {kernel: 'gone_*', max_vgprs: 512}\n");
  folder.write(".isa_lint.yaml",
               "expect: expect.yaml\nsuppress:\n  - {rule: spl001, reason: known}\n  - {rule: MEM, kernel: nobody, reason: old}\n");
  const Result r = isa_lint({folder.path.string()});
  CHECK(has(r.err, "warning: a suppression matched nothing: rule MEM, kernel nobody, arch *, file *\n"));
  CHECK(has(r.err, "warning: expectations for kernel 'gone_*', arch '*' matched none of 1 kernel\n"));
  CHECK_FALSE(has(r.err, "rule spl001"));
  CHECK_FALSE(has(r.err, "kernel 'k'"));
  CHECK_FALSE(has(isa_lint({folder.path.string(), "--kernel", "k"}).err, "warning")); // which cannot know
  check_refused(
      {folder.write("other/k.s", scratch_text()), "--settings", folder.write("bad.yaml", "suppress:\n  - {rule: XYZ, reason: r}\n")},
      "'XYZ' names none of the ");
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

TEST_CASE("diff compares what is done: float4 instead of float is no regression") {
  const Folder folder;
  const auto loop = [](const std::string& load, const std::string& more) {
    return plain_text("gfx942", "k",
                      "  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  s_waitcnt lgkmcnt(0)\nagain:\n  " + load +
                          " v[4:7], v0, s[4:5]\n  s_waitcnt vmcnt(0)\n" + more + "  s_sub_u32 s6, s6, 1\n  s_cbranch_scc0 again\n");
  };
  std::string adds;
  for (int i = 0; i < 4; ++i) adds += "  v_add_f32_e32 v8, v8, v" + std::to_string(4 + i) + "\n";
  std::string narrow = loop("global_load_dword", "  v_add_f32_e32 v8, v8, v4\n");
  narrow.replace(narrow.find("v[4:7]"), 6, "v4");
  const std::string before = folder.write("old/k.s", narrow), after = folder.write("new/k.s", loop("global_load_dwordx4", adds));
  const Result r = isa_lint({"diff", before, after, "--only", "SPL001"});
  CHECK(r.exit_code == 0); // more instructions, fewer for each byte
  CHECK(has(r.out, "hot_instructions"));
  CHECK(has(r.out, "  instructions_per_kib"));
  CHECK(isa_lint({"diff", after, before, "--only", "SPL001", "--threshold", "global_width=off,bytes_in_flight=off"}).exit_code == 1);
}
