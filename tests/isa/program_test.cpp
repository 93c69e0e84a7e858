// Control flow: blocks, dominators, loops, and what a wave executes.
#include "isa_checks/error.h"
#include "isa_checks/analysis/executed.h"
#include "isa_checks/decode/program.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>

using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

Program program_of(std::string_view body, const Snippet& snippet = {}) {
  const CodeObject object = assemble_kernel(body, "gfx942", snippet);
  Disassembler disassembler(object.target());
  return build_program(object.kernel("k"), disassembler);
}

std::uint64_t executed(const Program& program, std::vector<std::uint64_t> trips,
                       PathChoice choice = PathChoice::longest) {
  return executed_estimate(program, trips, choice).instructions;
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
  CHECK(executed(program, {}) == 3);
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
  // 1 + outer * (2 + inner * 4 + 3) + 1
  CHECK(executed(program, {1, 1}) == 11);
  CHECK(executed(program, {8, 5}) == 1 + 8 * (2 + 5 * 4 + 3) + 1);
  CHECK(executed(program, {8, 0}) == 1 + 8 * (2 + 3) + 1);
  CHECK(executed(program, {0, 5}) == 2);
  const Executed result = executed_estimate(program, std::vector<std::uint64_t>{3, 7});
  CHECK(result.block_counts == std::vector<std::uint64_t>{1, 3, 21, 3, 1});
  CHECK(result.count(InstructionClass::valu) == 21);
  CHECK(result.count(InstructionClass::vmem_load) == 21);
  CHECK(result.memory.at({MemorySpace::global, MemoryDirection::load, 16, false}) == 21);
  CHECK_FALSE(result.approximate);
}

TEST_CASE("a branch around code: the longest and the shortest path") {
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
  CHECK(executed(program, {}) == 1 + 4 + 2);
  CHECK(executed(program, {}, PathChoice::shortest) == 1 + 1 + 2);
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
  // The way round is 8 instructions at most; the way out is through the break: 7, then s_endpgm.
  CHECK(executed(program, {3}) == 2 * 8 + 7 + 1);
  CHECK(executed(program, {3}, PathChoice::shortest) == 2 * 4 + 2 + 1);
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
  // Twice round the outer loop with 3 inner trips each (1 + 3 * 3 + 1), then once to its end: 11, and s_endpgm.
  CHECK(executed(program, {3, 3}) == 2 * 11 + 11 + 1);
  // The shortest way out leaves the last inner trip after 2 instructions.
  CHECK(executed(program, {3, 3}, PathChoice::shortest) == 2 * 11 + 1 + 6 + 2 + 1);
}

TEST_CASE("a way through a loop is weighed against a way around it by what is executed") {
  const Program program = program_of(R"(
  s_cbranch_scc0 around
loop:
  s_nop 0
  s_nop 0
  s_cbranch_scc1 loop
  s_branch join
around:
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
join:
)");
  REQUIRE(program.loops.size() == 1);
  CHECK(executed(program, {1}) == 1 + 5 + 1); // one trip is 3 + 1
  CHECK(executed(program, {1}, PathChoice::shortest) == 1 + 4 + 1);
  CHECK(executed(program, {2}) == 1 + 7 + 1);
  CHECK(executed(program, {2}, PathChoice::shortest) == 1 + 5 + 1);
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
  CHECK(executed(program, {5}) == 10);
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
  const Executed result = executed_estimate(program, {});
  CHECK(result.approximate);
  CHECK(result.instructions == 4); // the edge that closes the cycle, from first to second, is not followed
}

TEST_CASE("branches out of the kernel, indirect branches and calls are counted") {
  const Program program = program_of("  s_branch 1000\n  s_setpc_b64 s[0:1]\n  s_swappc_b64 s[0:1], s[2:3]");
  CHECK(program.wild_branches == 1);
  CHECK(program.indirect_branches == 1);
  CHECK(program.calls == 1);
  CHECK(executed_estimate(program, {}).approximate);
}

TEST_CASE("with preloaded arguments, execution begins at byte 256") {
  const std::string body = "  s_load_dwordx2 s[8:9], s[0:1], 0x0\n  s_waitcnt lgkmcnt(0)\n  s_branch body\n.p2align "
                           "8\nbody:\n  v_mov_b32_e32 v0, 0\n";
  const std::string preload = ".amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_user_sgpr_kernarg_preload_length 2\n";
  const Program with = program_of(body, {.descriptor = preload});
  CHECK(with.instructions[with.blocks[with.entry].begin].mnemonic == "v_mov_b32_e32");
  CHECK(executed(with, {}) == 2);
  CHECK(executed(program_of(body), {}) == 5);
}

TEST_CASE("trip counts that do not match, and counts beyond 64 bits") {
  const Program program = program_of(nested);
  CHECK_THROWS_WITH_AS(executed(program, {1}),
                       "kernel 'k': 1 trip counts were given for 2 loops; give one for each of loop 0 (0x4 to 0x28), "
                       "loop 1 (0xc to 0x1c)",
                       Error);
  CHECK(executed(program, {std::uint64_t{1} << 40, std::uint64_t{1} << 40}) == ~std::uint64_t{0});
  CHECK(build_program(std::vector<Instruction>{}).blocks.empty());
  CHECK(executed(build_program(std::vector<Instruction>{}), {}) == 0);
}
