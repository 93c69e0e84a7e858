// Preloaded arguments: both compilers do it for both targets, the fallback entry is there, and no other compile of the process changes.
#include "isa_checks/object/code_object.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/loaded_libraries.h"
#include "tests/compile/kernels.h"
#include <doctest/doctest.h>

namespace preload_tests {
using namespace kiln;

namespace {

std::vector<std::uint8_t> compiled(CompilerKind kind, std::string_view arch, bool preload) {
  CompileOptions options;
  options.environment = process_environment();
  options.environment.compiler = kind;
  options.preload_arguments = preload;
  return compile(test::scale_kernel("scale", std::string(arch)), target(arch), options).bytes;
}

int preloaded_dwords(const std::vector<std::uint8_t>& bytes) {
  return isa::load_code_object(bytes, "scale").kernel("scale").descriptor.preload_dwords;
}

} // namespace

TEST_CASE("arguments are preloaded where the options say so, and nowhere after") {
  for (const std::string_view arch : known_archs()) {
    const std::vector<std::uint8_t> hiprtc = compiled(CompilerKind::hiprtc, arch, false),
                                    comgr = compiled(CompilerKind::comgr, arch, false);
    CHECK(preloaded_dwords(hiprtc) == 0);
    CHECK(preloaded_dwords(comgr) == 0);
    for (const CompilerKind kind : {CompilerKind::hiprtc, CompilerKind::comgr}) {
      CAPTURE(to_string(kind));
      CAPTURE(arch);
      const std::vector<std::uint8_t> with = compiled(kind, arch, true);
      CHECK(preloaded_dwords(with) > 0);
      CHECK(isa::load_code_object(with, "scale").kernel("scale").code.size() > 256);
      CHECK((compiled(CompilerKind::hiprtc, arch, false) == hiprtc)); // not printed: kilobytes
      CHECK(preloaded_dwords(compiled(kind, arch, true)) > 0);
      CHECK((compiled(CompilerKind::comgr, arch, false) == comgr));
    }
  }
}

TEST_CASE("the compiler's files say which options its LLVM has") {
  const std::vector<std::string> files = compiler_parts(process_environment()).files;
  CHECK(any_holds(files, preload_option_name));
  CHECK_FALSE(any_holds(files, "amdgpu-kernarg-preload-nought"));
  CHECK_FALSE(any_holds({"/nowhere/libLLVM.so"}, preload_option_name));
  CHECK(std::string(preload_option).starts_with("-" + std::string(preload_option_name) + "="));
}

TEST_CASE("options for others' processes do not preload, and those for Kiln's own do as the variable says") {
  Environment environment;
  CHECK(own_process_options(environment).preload_arguments);
  environment.preload_arguments = false;
  CHECK_FALSE(own_process_options(environment).preload_arguments);
  CHECK_FALSE(CompileOptions{}.preload_arguments);
}

} // namespace preload_tests
