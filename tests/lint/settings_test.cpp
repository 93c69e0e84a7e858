// What is reported and what is accepted: rules that are chosen, settings, suppressions, baselines, expectations.
#include "tests/lint/cli_checks.h"
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace kiln::isa::testing;
using nlohmann::json;

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
  CHECK(expect("no_findings: [SPL001:info]\n").exit_code == 0);
  CHECK(expect("{\"kernels\": [{\"kernel\": \"other\", \"max_vgprs\": 1}]}").exit_code == 0); // about another kernel; JSON
  const auto refused = [&](const std::string& text, std::string_view says) {
    check_refused({file, "--expect", folder.write("e.yaml", text)}, says);
  };
  refused("max_vgpr: 4\n", "e.yaml:1: there is no setting 'max_vgpr'; use kernel, arch, no_scratch");
  refused("no_scratch: true\nmax_vgprs: -1\n", "e.yaml:2: 'max_vgprs' is '-1'");
  refused("kernels: []\nno_scratch: true\n", "stands beside 'kernels'");
  refused("- 1\n", "'the file' is a list");
  refused("no_findings: [SPL001:loud]\n", "'loud' is no severity; write error, warning or info");
  refused("lds: {min_byte: 4}\n", "there is no setting 'min_byte'; use min_bytes, exceptions, excepted or at_least");
  refused("kernel: k\n", "an entry expects nothing");
  refused("no_scratch: true\nno_scratch: true\n", "comes twice");
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
