// Both compilers, through the real libraries: what comes out is a code object of the architecture, and the same code.
#include "gen/error.h"
#include "isa_checks/object/code_object.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/hiprtc.h"
#include "tests/compile/kernels.h"
#include <algorithm>
#include <doctest/doctest.h>

using namespace kiln;

namespace {

CompileOptions with(CompilerKind kind) {
  CompileOptions options = own_process_options(process_environment());
  options.environment.compiler = kind;
  return options;
}

isa::CodeObject parsed(const CodeObject& object) { return isa::load_code_object(object.bytes, object.name); }

bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("each compiler makes a code object of each architecture") {
  for (const CompilerKind kind : {CompilerKind::hiprtc, CompilerKind::comgr}) {
    for (const std::string_view arch : known_archs()) {
      CAPTURE(to_string(kind));
      CAPTURE(arch);
      const CodeObject object = compile(test::scale_kernel("scale", std::string(arch)), target(arch), with(kind));
      const isa::CodeObject code = parsed(object);
      CHECK(code.target().name == arch);
      CHECK_FALSE(code.relocatable());
      REQUIRE(code.find("scale") != nullptr);
      CHECK(code.kernel("scale").code.size() >= 16);
      CHECK(object.compiler.starts_with(to_string(kind)));
      CHECK(mentions(object.compiler, "libamd_comgr")); // hipRTC makes code with it too
      CHECK(mentions(object.compiler, "libhiprtc") == (kind == CompilerKind::hiprtc));
      CHECK_FALSE(mentions(object.compiler, "no-build-id"));
      CHECK(object.llvm.starts_with("clang version "));
      CHECK(object.milliseconds > 0);
      CHECK(object.log.empty());
    }
  }
}

TEST_CASE("both compilers make the same instructions") {
  for (const std::string_view arch : known_archs()) {
    const KernelSource source = test::scale_kernel("scale", std::string(arch));
    const isa::CodeObject one = parsed(compile(source, target(arch), with(CompilerKind::hiprtc)));
    const isa::CodeObject two = parsed(compile(source, target(arch), with(CompilerKind::comgr)));
    CHECK(std::ranges::equal(one.kernel("scale").code, two.kernel("scale").code));
  }
}

TEST_CASE("hipRTC takes Kiln's replacement of its built-in header") {
  // When this fails, a new hipRTC no longer does: everything still compiles, only slower (see hiprtc.h).
  CHECK(honours_replaced_header(Hiprtc(process_environment().hiprtc_path), std::string(known_archs().front())));
}

TEST_CASE("the same text compiles with hipRTC's own built-in header, to the same instructions") {
  CompileOptions stock = with(CompilerKind::hiprtc);
  stock.replace_builtin_header = false;
  for (const std::string_view arch : known_archs()) {
    const KernelSource source = test::scale_kernel("scale", std::string(arch));
    const CodeObject slow = compile(source, target(arch), stock);
    const CodeObject fast = compile(source, target(arch), with(CompilerKind::hiprtc));
    const isa::CodeObject one = parsed(slow), two = parsed(fast);
    CHECK(std::ranges::equal(one.kernel("scale").code, two.kernel("scale").code));
  }
}

TEST_CASE("comgr's stages are timed one by one") {
  const std::string arch(known_archs().front());
  const CodeObject object = compile(test::scale_kernel("scale", arch), target(arch), with(CompilerKind::comgr));
  REQUIRE(object.stages.size() == 3);
  double sum = 0;
  for (const CompilerStage& stage : object.stages) {
    CHECK(stage.milliseconds > 0);
    sum += stage.milliseconds;
  }
  CHECK(object.milliseconds == doctest::Approx(sum));
}

TEST_CASE("warnings are collected, and are errors when asked") {
  const std::string arch(known_archs().front());
  const KernelSource source = test::with_text(test::scale_kernel("unused", arch),
                                              "extern \"C\" __attribute__((global)) void unused(int* x) { int dead = 1; *x = 2; }\n");
  for (const CompilerKind kind : {CompilerKind::hiprtc, CompilerKind::comgr}) {
    CAPTURE(to_string(kind));
    CompileOptions options = with(kind);
    CHECK_NOTHROW(compile(source, target(arch), options));
    options.warnings_as_errors = true;
    CHECK_THROWS_AS(compile(source, target(arch), options), EnvironmentError);
    CHECK_NOTHROW(compile(test::scale_kernel("scale", arch), target(arch), options));
  }
}
