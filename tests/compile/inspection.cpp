// Facts and assembly of a code object that was compiled just now.
#include "gen/error.h"
#include "runtime/build/inspect.h"
#include "tests/compile/kernels.h"
#include <doctest/doctest.h>

using namespace kiln;

namespace {

CodeObject compiled(const std::string& name, std::string_view arch, const std::string& text) {
  CompileOptions options = own_process_options(process_environment());
  return compile(test::with_text(test::scale_kernel(name, std::string(arch)), text), target(arch), options);
}

// 128-bit loads and stores in a loop, through 4 KiB of LDS.
const char* const loop_text = R"(
typedef float f32x4 __attribute__((ext_vector_type(4)));
__attribute__((shared)) f32x4 row[256];
extern "C" __attribute__((global, amdgpu_flat_work_group_size(256, 256))) void loop(const f32x4* x, f32x4* y, int n) {
  const unsigned i = __builtin_amdgcn_workitem_id_x();
#pragma clang loop unroll(disable)
  for (int k = 0; k < n; ++k) {
    row[i] = x[k * 256 + i];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    y[k * 256 + i] = row[255 - i] * 2.0f;
  }
}
)";

} // namespace

TEST_CASE("facts of a kernel are what its text asks for") {
  for (const std::string_view arch : known_archs()) {
    const isa::KernelFacts facts = inspect(compiled("loop", arch, loop_text));
    CHECK(facts.arch == arch);
    CHECK(facts.resources.lds_bytes == 4096);
    CHECK(facts.resources.scratch_bytes == 0);
    CHECK(facts.resources.workgroup_size == 256);
    CHECK(facts.widths(isa::MemorySpace::global, isa::MemoryDirection::load) == std::map<int, std::uint32_t>{{16, 1}});
    CHECK(facts.widths(isa::MemorySpace::global, isa::MemoryDirection::store) == std::map<int, std::uint32_t>{{16, 1}});
    CHECK(facts.widths({isa::MemorySpace::lds}, {isa::MemoryDirection::load, isa::MemoryDirection::store}) ==
          std::map<int, std::uint32_t>{{16, 2}});
  }
}

TEST_CASE("assembly labels the target of every branch") {
  const std::string text = assembly(compiled("loop", known_archs().front(), loop_text));
  const std::size_t back = text.find(" -> L");
  REQUIRE(back != std::string::npos);
  const std::string label = text.substr(back + 4, text.find('\n', back) - back - 4);
  CHECK(text.find("\n" + label + ":\n") != std::string::npos);
  CHECK(text.find("s_endpgm") != std::string::npos);
  CHECK(text.find("\nloop:\n") != std::string::npos);
}

TEST_CASE("a code object without the kernel is a bug, not a user's error") {
  CodeObject object = compiled("loop", known_archs().front(), loop_text);
  object.name = "another";
  CHECK_THROWS_AS(inspect(object), InternalError);
}
