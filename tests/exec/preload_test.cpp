// Preloaded arguments: both entries of a kernel, that of firmware that preloads and that of firmware that does not, do the same.
#include "tests/exec/lane_program.h"
#include <cstring>
#include <doctest/doctest.h>

namespace preload_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

// Stores argument 1 and the workgroup's id to where argument 0 says. `prologue` stands at the first entry.
KernelText stores_its_argument(const std::string& prologue) {
  KernelText text;
  text.body = prologue + R"(  s_branch body
.p2align 8
body:
  s_waitcnt lgkmcnt(0)
  v_mov_b32_e32 v2, s4
  v_mov_b32_e32 v3, s6
  v_mov_b32_e32 v4, 0
  global_store_dwordx2 v4, v[2:3], s[2:3]
)";
  text.descriptor = ".amdhsa_user_sgpr_kernarg_preload_length 4\n";
  return text;
}

std::array<std::uint32_t, 2> stored(const KernelText& text, bool preload) {
  Memory memory;
  const std::uint64_t out = memory.allocate("out", 8);
  const std::uint64_t arguments[3] = {out, 0x1234, 0};
  Grid grid;
  grid.first = {5, 0, 0};
  const ExecResult r = execute(assemble_kernel(text), "k", grid, std::as_bytes(std::span(arguments)), memory, {.preload = preload});
  CHECK(r.completed);
  std::array<std::uint32_t, 2> result{};
  std::memcpy(result.data(), memory.bytes(out).data(), sizeof result);
  return result;
}

} // namespace

TEST_CASE("both entries find the arguments and the workgroup's id") {
  const std::array<std::uint32_t, 2> wanted{0x1234, 5};
  const KernelText text =
      stores_its_argument("  s_load_dwordx2 s[2:3], s[0:1], 0x0\n  s_load_dword s4, s[0:1], 0x8\n  s_waitcnt lgkmcnt(0)\n");
  CHECK(stored(text, true) == wanted);
  CHECK(stored(text, false) == wanted);
}

TEST_CASE("firmware that preloads skips the first entry, and the other finds no arguments without it") {
  const KernelText text = stores_its_argument("  s_load_dwordx2 s[2:3], s[0:1], 0x0\n  s_waitcnt lgkmcnt(0)\n");
  CHECK(stored(text, true)[0] == 0x1234);
  CHECK(stored(text, false)[0] != 0x1234);
}

} // namespace preload_test
