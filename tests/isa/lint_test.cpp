// lint: the choice of rules, the order and the text of findings.
#include "isa_checks/error.h"
#include "isa_checks/verdict/lint.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <set>

namespace lint_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

KernelAnalysis scratchy() {
  const CodeObject object = assemble_kernel(
      "again:\n  scratch_load_dword v0, off, s0\n  s_waitcnt vmcnt(0)\n  scratch_store_dword off, v0, s0\n  s_cbranch_scc1 again", "gfx942",
      {.scratch_bytes = 64, .spills = 3});
  return analyse(object, object.kernel("k"));
}

} // namespace

TEST_CASE("rules: each has an id of its own, words and a page that begins with its id") {
  std::set<std::string_view> ids;
  for (const Rule& rule : all_rules()) {
    CAPTURE(rule.id);
    CHECK(ids.insert(rule.id).second);
    CHECK(rule.check != nullptr);
    for (const std::string_view words : {rule.name, rule.summary, rule.why, rule.advice}) CHECK_FALSE(words.empty());
    CHECK(rule.page.starts_with("# " + std::string(rule.id) + " "));
    CHECK(find_rule(rule.id) == &rule);
  }
  CHECK(find_rule("SPL999") == nullptr);
}

TEST_CASE("findings carry place, numbers and words") {
  const auto findings = lint(scratchy());
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].rule == "SPL001");
  CHECK(findings[0].severity == Severity::error);
  CHECK(findings[0].address == 0);
  CHECK(findings[0].instruction == "scratch_load_dword v0, off, s0");
  CHECK(findings[0].others == std::vector<std::uint64_t>{12});
  CHECK(findings[0].evidence ==
        std::vector<Evidence>{
            {"scratch_bytes", 64, "B"}, {"spilled_bytes", 12, "B"}, {"accesses", 2, "instructions"}, {"in_loops", 2, "instructions"}});
  CHECK(to_text(findings[0])
            .starts_with("SPL001 error k (gfx942) at 0x0: 64 B of scratch memory a lane for spilled registers and stack "
                         "objects, 2 instructions that access it, 2 in loops\n    scratch_load_dword v0, off, s0    (and 1 more)\n"));
  const auto json = nlohmann::json::parse(to_json(findings));
  CHECK(json[1]["rule"] == "SPL002");
  CHECK(json[1]["evidence"]["vgpr_spills"]["value"] == 3);
}

TEST_CASE("the choice of rules") {
  const KernelAnalysis kernel = scratchy();
  const auto ids = [&](const LintOptions& options) {
    std::string text;
    for (const Finding& f : lint(kernel, options)) text += f.rule + " ";
    return text;
  };
  CHECK(ids({.only = {"SPL002"}}) == "SPL002 ");
  CHECK(ids({.without = {"SPL001"}}) == "SPL002 ");
  CHECK(ids({.only = {"SPL005"}}).empty());
  CHECK_THROWS_AS(ids({.only = {"SPL9"}}), Error);
}

TEST_CASE("linting what is no code finds nothing and does not end the program") {
  const CodeObject object = assemble_kernel("", "gfx942");
  const std::vector<std::uint8_t> noise(4096, 0xff);
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, noise.size()}) {
    Kernel damaged = object.kernel("k");
    damaged.code = std::span(noise).first(size);
    CHECK(lint(analyse(object, damaged), {.all = true, .least = Severity::error}).empty());
  }
}

} // namespace lint_test
