// Kiln's own kernels under its own rules: nothing but what is stated here.
#include "gen/catalog/catalog.h"
#include "isa_checks/lint.h"
#include "runtime/build_kernel.h"
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <set>

using namespace kiln;

namespace {

// "entry RULE": findings that are right, and that the kernel has for a reason.
const std::set<std::string>& expected() {
  static const std::set<std::string> list{};
  return list;
}

std::string text_of(const std::vector<isa::Finding>& findings) {
  std::string text;
  for (const isa::Finding& f : findings) text += isa::to_text(f).substr(0, isa::to_text(f).find("  why:"));
  return text;
}

void check_catalogue(const CatalogOptions& base, bool gemm) {
  CompileOptions compile;
  compile.environment = process_environment();
  for (const std::string_view arch : known_archs())
    for (const CatalogEntry& entry : catalog()) {
      if (entry.is_gemm != gemm) continue;
      const Target to = target(arch);
      CatalogOptions options = base;
      options.fp8 = to.fp8();
      const BuiltKernel built = build_kernel(entry.build(options), to, compile);
      const isa::CodeObject object = isa::load_code_object(built.object.bytes, std::string(entry.name));
      for (const isa::Kernel& kernel : object.kernels()) {
        std::vector<isa::Finding> findings = isa::lint(isa::analyse(object, kernel));
        std::erase_if(findings, [&](const isa::Finding& f) { return expected().contains(fmt::format("{} {}", entry.name, f.rule)); });
        CHECK_MESSAGE(findings.empty(), entry.name, "\n", text_of(findings));
      }
    }
}

} // namespace

TEST_CASE("the catalogue has no findings: 4096 columns of f16") { check_catalogue({.cols = 4096, .dtype = f16}, false); }
TEST_CASE("the catalogue has no findings: 5003 columns of bf16") { check_catalogue({.cols = 5003, .dtype = bf16}, false); }
TEST_CASE("the catalogue has no findings: products") { check_catalogue({.dtype = bf16, .m = 8, .n = 4096, .k = 4096}, true); }
