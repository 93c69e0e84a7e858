// The code of the catalogue's attention: no findings of the rules but those stated here, and waits and LDS bank passes as the executor
// counts them.
#include "gen/catalog/catalog.h"
#include "isa_checks/verdict/lint.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/attention/attention_cases.h"
#include "tests/exec/agreement.h"
#include <doctest/doctest.h>
#include <set>

namespace attention_code_tests {
using namespace kiln;
using namespace kiln::testing;

namespace {

// Rules whose findings are right, and that the kernels have for a reason.
const std::set<std::string> expected = {
    "WAIT001", "WAIT002", "MEM001", // loops over the lengths of a batch, and over the parts of a head: a few repetitions
    "MTH002",                       // the head of a workgroup's first step, once
    "MFM003",                       // a product of 16 x 16 whose sum is needed at once
    "LDS002",                       // two-way, where the sums of waves meet
    "CVT001",                       // gfx942 has no instruction that rounds to bf16
    "OCC001",                       // two workgroups per CU are what the schedule deals out shares for; a third wave would have none
};

std::string text_of(const std::vector<isa::Finding>& findings) {
  std::string text;
  for (const isa::Finding& f : findings) text += isa::to_text(f).substr(0, isa::to_text(f).find("  why:"));
  return text;
}

void check_code(std::string_view arch, const char* entry, DType cache, std::int64_t d) {
  CAPTURE(arch);
  CAPTURE(entry);
  CAPTURE(d);
  const CatalogOptions options{
      .dtype = bf16, .fp8 = target(arch).fp8(), .heads = 8, .kv_heads = d > 256 ? 1 : 2, .d = d, .length = 96, .cache = cache};
  const KernelSpec spec = catalog_spec(entry, options);
  const BuiltKernel built = build_attention(spec, target(arch), {"workgroups=3"});
  const isa::CodeObject object = isa::load_code_object(built.object.bytes, entry);
  std::vector<isa::Finding> findings = isa::lint(isa::analyse(object, object.kernel(built.object.name)));
  std::erase_if(findings, [](const isa::Finding& f) { return expected.contains(f.rule); });
  CHECK_MESSAGE(findings.empty(), text_of(findings));

  const AttentionCase c{.d = d, .page = std::string_view(entry) == "attention_paged" ? options.page : 0, .keys = options.length};
  const EmulatedRun run = emulate(spec, built.source, built.object, attention_inputs(spec, c, {96, 33}, 1));
  REQUIRE(run.result.completed);
  const auto disagreement = first_disagreement(object, built.object.name, run.result);
  CHECK_MESSAGE(!disagreement, disagreement.value_or(""));
  const WaitAgreement waits = compare_waits(object, built.object.name, run.result);
  CHECK(waits.compared > 10);
  CHECK(waits.exact > 0);
}

} // namespace

// One kernel in the usual run, all on both architectures with KILN_LINT_ALL.
TEST_CASE("the catalogue's attention has no findings, and runs as its code says") {
  for (const std::string_view arch : known_archs())
    for (const char* entry : {"attention_decode", "attention_paged"})
      for (const DType cache : {bf16, target(arch).fp8()})
        for (const std::int64_t d : {128, 576})
          if (compares_all() || (arch == "gfx950" && std::string_view(entry) == "attention_paged" && cache == bf16 && d == 128))
            check_code(arch, entry, cache, d);
}

} // namespace attention_code_tests
