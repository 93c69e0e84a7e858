// Each device header compiles alone, warning-free, on each architecture; with hipRTC's own header before it as well.
#include "gen/emit/templates.h"
#include "runtime/compile/compile.h"
#include "tests/compile/kernels.h"
#include <cstdlib>
#include <doctest/doctest.h>

using namespace kiln;

namespace {

KernelSource only_includes(std::string_view header, std::string_view arch) {
  return test::with_text(test::scale_kernel("alone", std::string(arch)), "#include \"" + std::string(header) + "\"\n");
}

// Each header on one architecture, in turn from `turn` on; with KILN_LINT_ALL on all.
void compile_each(CompilerKind kind, bool replace_builtin_header, unsigned turn) {
  CompileOptions options = own_process_options(process_environment());
  options.environment.compiler = kind;
  options.replace_builtin_header = replace_builtin_header;
  options.warnings_as_errors = true;
  for (const TemplateHeader& header : template_headers()) {
    ++turn;
    for (unsigned place = 0; const std::string_view arch : known_archs()) {
      if (place++ != turn % known_archs().size() && std::getenv("KILN_LINT_ALL") == nullptr) continue;
      CAPTURE(header.name);
      CAPTURE(arch);
      CHECK_NOTHROW(compile(only_includes(header.name, arch), target(arch), options));
    }
  }
}

} // namespace

TEST_CASE("device headers compile alone through hipRTC") { compile_each(CompilerKind::hiprtc, true, 0); }
TEST_CASE("device headers compile alone through comgr") { compile_each(CompilerKind::comgr, true, 1); }
TEST_CASE("device headers compile after hipRTC's built-in header") { compile_each(CompilerKind::hiprtc, false, 1); }
