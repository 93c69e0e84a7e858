// Device functions that kernels call: those whose address the code states are found and reviewed, by rules that need no launch.
#include "isa_checks/object/called_functions.h"
#include "isa_checks/verdict/lint.h"
#include "tests/isa/linked.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace called_functions_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

std::string call(const std::string& name) {
  return fmt::format("  s_getpc_b64 s[4:5]\nfrom_{0}:\n  s_add_u32 s4, s4, {0}-from_{0}\n  s_addc_u32 s5, s5, 0\n  s_swappc_b64 s[30:31], "
                     "s[4:5]\n",
                     name);
}

std::string function(const std::string& name, const std::string& body) {
  return fmt::format(".text\n.type {0},@function\n{0}:\n{1}  s_setpc_b64 s[30:31]\n.Lend_{0}:\n.size {0}, .Lend_{0}-{0}\n", name, body);
}

CodeObject object_of(const std::string& functions) {
  const std::string text = kernel_text(call("outer"), "gfx942", {.vgprs = 40, .accum_offset = 40, .sgprs = 40, .lds_bytes = 512});
  return load_code_object(link(assemble(text + functions, target_facts("gfx942"))), "calls");
}

TEST_CASE("called functions: from kernel to function to function, and no others") {
  const CodeObject object =
      object_of(function("outer", call("inner")) + function("inner", "  s_nop 0\n") + function("alone", "  s_nop 0\n"));
  const std::vector<Kernel> found = called_functions(object);
  REQUIRE(found.size() == 2);
  CHECK(found[0].name == "outer");
  CHECK(found[1].name == "inner");
  CHECK(found[1].function);
  CHECK(found[1].code.size() == 8);
  CHECK(found[1].descriptor.group_segment_bytes == 512); // of the kernel that calls it
}

TEST_CASE("a function is reviewed for what does not depend on the launch") {
  // v9 is an argument, LDS is the caller's, registers beyond the descriptor are a kernel's matter; the load has no wait.
  const CodeObject object =
      object_of(function("outer", "  ds_write_b32 v9, v8\n  v_mov_b32_e32 v50, v9\n  global_load_dword v1, v0, s[2:3]\n"
                                  "  v_add_f32_e32 v2, v1, v1\n  global_store_dword v0, v2, s[2:3]\n"));
  const std::vector<Kernel> found = called_functions(object);
  REQUIRE(found.size() == 1);
  const auto errors = lint(analyse(object, found[0]), {.least = Severity::error});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].rule == "DAT001");
  CHECK(errors[0].kernel == "outer");
}

} // namespace called_functions_test
