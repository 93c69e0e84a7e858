// Each device header compiles alone, warning-free, on each architecture; with hipRTC's own header before it as well.
#include "gen/emit/templates.h"
#include "runtime/compile/compile.h"
#include "tests/compile/kernels.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

using namespace kiln;

namespace {

KernelSource only_includes(const std::vector<std::string_view>& headers, std::string_view arch) {
  std::string text;
  for (const std::string_view header : headers) text += "#include \"" + std::string(header) + "\"\n";
  return test::with_text(test::scale_kernel("alone", std::string(arch)), text);
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
      CHECK_NOTHROW(compile(only_includes({header.name}, arch), target(arch), options));
    }
  }
}

} // namespace

TEST_CASE("device headers compile alone through hipRTC") { compile_each(CompilerKind::hiprtc, true, 0); }
TEST_CASE("device headers compile alone through comgr") { compile_each(CompilerKind::comgr, true, 1); }
TEST_CASE("device headers compile after hipRTC's built-in header") {
  if (std::getenv("KILN_LINT_ALL") != nullptr) return compile_each(CompilerKind::hiprtc, false, 1);
  // That header is 1 MB, so all of Kiln's come after one copy of it.
  CompileOptions options = own_process_options(process_environment());
  options.environment.compiler = CompilerKind::hiprtc;
  options.replace_builtin_header = false;
  options.warnings_as_errors = true;
  std::vector<std::string_view> all;
  for (const TemplateHeader& header : template_headers()) all.push_back(header.name);
  for (const std::string_view arch : known_archs()) {
    CAPTURE(arch);
    CHECK_NOTHROW(compile(only_includes(all, arch), target(arch), options));
  }
}
