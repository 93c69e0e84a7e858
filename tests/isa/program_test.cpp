// Control flow: blocks, dominators and loops of assembled code.
#include "isa_checks/decode/program.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>

namespace program_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

Program program_of(std::string_view body, const Snippet& snippet = {}) {
  const CodeObject object = assemble_kernel(body, "gfx942", snippet);
  Disassembler disassembler(object.target());
  return build_program(object.kernel("k"), disassembler);
}

// Two nested loops: 1 before, outer of 2 + inner + 3, inner of 4; 1 s_endpgm after.
constexpr std::string_view nested = R"(
  s_mov_b32 s0, 0
outer:
  s_nop 0
  s_nop 0
inner:
  v_add_f32_e32 v0, v0, v1
  global_load_dwordx4 v[0:3], v4, s[2:3]
  s_cmp_lg_u32 s1, 0
  s_cbranch_scc1 inner
  s_add_u32 s0, s0, 1
  s_cmp_lg_u32 s0, 8
  s_cbranch_scc1 outer
)";

} // namespace

TEST_CASE("straight-line code is one block") {
  const Program program = program_of("  s_nop 0\n  s_nop 1");
  REQUIRE(program.blocks.size() == 1);
  CHECK(program.blocks[0].end == 3);
  CHECK(program.loops.empty());
  CHECK(program.block_of(2) == 0);
}

TEST_CASE("nested loops") {
  const Program program = program_of(nested);
  REQUIRE(program.blocks.size() == 5);
  REQUIRE(program.loops.size() == 2);
  CHECK(program.loops[0].header == 1);
  CHECK(program.loops[0].blocks == std::vector<std::size_t>{1, 2, 3});
  CHECK(program.loops[0].latches == std::vector<std::size_t>{3});
  CHECK(program.loops[0].exits == std::vector<std::size_t>{3});
  CHECK(program.loops[0].depth == 1);
  CHECK(program.loops[0].parent == nothing);
  CHECK(program.loops[1].blocks == std::vector<std::size_t>{2});
  CHECK(program.loops[1].parent == 0);
  CHECK(program.loops[1].depth == 2);
  CHECK(program.blocks[2].loop == 1);
  CHECK(program.blocks[3].loop == 0);
  CHECK(program.blocks[4].loop == nothing);
  CHECK(program.dominates(1, 4));
  CHECK_FALSE(program.dominates(4, 1));
  CHECK(program.loop_name(1) == "loop 1 (0xc to 0x1c)");
}

TEST_CASE("a branch around code: two blocks that meet") {
  const Program program = program_of(R"(
  s_cbranch_scc0 other
  s_nop 0
  s_nop 0
  s_nop 0
  s_branch join
other:
  s_nop 0
join:
  s_nop 0
)");
  REQUIRE(program.blocks.size() == 4);
  CHECK(program.blocks[3].dominator == 0);
  CHECK(program.blocks[3].predecessors.size() == 2);
}

TEST_CASE("a loop that tests at its head, with a break, and two latches") {
  const Program program = program_of(R"(
head:
  s_cmp_lg_u32 s0, 0
  s_cbranch_scc0 done
  s_nop 0
  s_cbranch_vccz head
  s_nop 0
  s_nop 0
  s_cbranch_execz done
  s_branch head
done:
)");
  REQUIRE(program.loops.size() == 1);
  CHECK(program.loops[0].latches.size() == 2);
  CHECK(program.loops[0].exits.size() == 2);
}

TEST_CASE("an inner loop may leave both loops at once") {
  const Program program = program_of(R"(
outer:
  s_nop 0
inner:
  s_nop 0
  s_cbranch_scc1 done
  s_cbranch_vccnz inner
  s_cbranch_vccz outer
done:
)");
  REQUIRE(program.loops.size() == 2);
  CHECK(program.loops[0].exits.size() == 2);
}

TEST_CASE("an endless loop, and code that nothing reaches") {
  const Program program = program_of(R"(
again:
  s_nop 0
  s_branch again
  s_nop 0
)");
  REQUIRE(program.loops.size() == 1);
  CHECK(program.loops[0].exits.empty());
  CHECK_FALSE(program.blocks[1].reachable);
}

TEST_CASE("irreducible flow has no loop and is said") {
  const Program program = program_of(R"(
  s_cbranch_scc1 second
first:
  s_nop 0
second:
  s_nop 0
  s_cbranch_vccz first
)");
  CHECK(program.loops.empty());
  CHECK(program.irreducible_edges.size() == 1);
}

TEST_CASE("branches out of the kernel, indirect branches and calls are counted") {
  const Program program = program_of("  s_branch 1000\n  s_setpc_b64 s[0:1]\n  s_swappc_b64 s[0:1], s[2:3]");
  CHECK(program.wild_branches == 1);
  CHECK(program.indirect_branches == 1);
  CHECK(program.calls == 1);
}

TEST_CASE("with preloaded arguments, execution begins at byte 256") {
  const std::string body = "  s_load_dwordx2 s[8:9], s[0:1], 0x0\n  s_waitcnt lgkmcnt(0)\n  s_branch body\n.p2align "
                           "8\nbody:\n  v_mov_b32_e32 v0, 0\n";
  const std::string preload = ".amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_user_sgpr_kernarg_preload_length 2\n";
  const Program with = program_of(body, {.descriptor = preload});
  CHECK(with.instructions[with.blocks[with.entry].begin].mnemonic == "v_mov_b32_e32");
}

TEST_CASE("no instructions make no blocks") { CHECK(build_program(std::vector<Instruction>{}).blocks.empty()); }

} // namespace program_test
