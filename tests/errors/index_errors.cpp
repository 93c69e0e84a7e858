// Indices, views and partners: what is ill-formed is refused with subject, fact and remedy.
#include "gen/catalog/catalog.h"
#include "gen/families/make_plan.h"
#include "gen/families/schedule.h"
#include "gen/reference/index_check.h"
#include "gen/spec/math.h"
#include "tests/errors/expect.h"

using namespace kiln;

namespace {

const Dim tokens = dynamic("tokens"), slots = dynamic("slots");
Expr x() { return input("x", f16, {tokens, 64}); }
Expr table() { return input("table", f16, {slots, 64}); }
Expr ids(DType type = i32) { return input("ids", type, {tokens, 1}); }
void check(const Expr& value) { validate(KernelSpec("k").output("y", f32, value)); }
void plan(const KernelSpec& spec) { make_plan(spec, target("gfx942"), registered_families()); }
void plan(const Expr& value) { plan(KernelSpec("k").output("y", f32, value)); }

} // namespace

TEST_CASE("what an index must be") {
  expect_user_error([] { gather(table(), input("f", f32, {tokens, 1})); }, "operation 'gather', operand index", "it is f32", "i32 or i64");
  expect_user_error([] { gather(table(), ids() + 1); }, "operation 'gather', operand index", "it is a 'add_i32', not an input",
                    "addresses are not computed");
  expect_user_error([] { gather(table(), input("i", i32, {tokens})); }, "operation 'gather', operand index", "[tokens] does not end with 1",
                    "[tokens, 1]");
  expect_user_error([] { gather(input("t", f16, {slots, 8, 64}), ids()); }, "operation 'gather', operand index",
                    "[tokens, 1] has fewer dimensions than t [slots, 8, 64]", "[tokens, 1, 1]");
  expect_user_error([] { gather(table() + 1, ids()); }, "operation 'gather', operand table", "it is a 'add'", "in memory");
  expect_user_error([] { gather(input("t", f16, {64}), ids()); }, "operation 'gather', operand table", "[64] has no rows",
                    "two dimensions");
  expect_user_error([] { check(x() + ids(i64)); }, "input 'ids'", "operation 'add' computes with its i64", "use i32");
  expect_user_error([] { cast(i64, x()); }, "operation 'cast'", "rounds to i64", "use i32");
}

TEST_CASE("tables and targets are used for nothing else") {
  const Expr both_ways = input("table", f16, {tokens, 64});
  expect_user_error([&] { check(gather(both_ways, ids()) + row_sum(both_ways)); }, "input 'table'", "another operation uses it",
                    "an input of its own name");
  const Expr target = table(), value = scatter(target, ids(), x());
  expect_user_error([&] { validate(KernelSpec("k").output("y", f16, value)); }, "operation 'scatter' to 'table'",
                    "output 'y' is not in place of 'table'", "in_place_of");
  expect_user_error([&] { check(value + 1); }, "operation 'scatter' to 'table'", "used by an operation", "make it an output");
  const Expr all = input("all", f16, {tokens, 64}), written = scatter(all, ids(), x());
  const KernelSpec both = KernelSpec("k").output("y", f16, written, {.in_place_of = "all"}).output("z", f32, all + x());
  expect_user_error([&] { validate(both); }, "operation 'scatter' to 'all'", "'all' is used by another operation too", "same index");
  expect_user_error([&] { scatter(target, ids(), input("w", f16, {tokens, 32})); }, "operation 'scatter', operand value",
                    "its shape is [tokens, 32], and rows of table [slots, 64] at an index of [tokens, 1] make [tokens, 64]",
                    "one row of the target for each index");
  expect_user_error([] { check(gather(input("t", f16, {slots, 32}), ids()) + x()); }, "operation 'add'",
                    "[tokens, 32] and [tokens, 64] do not broadcast", "equal, or one of them 1");
  const Expr a = input("a", f16, {dynamic("tokens", 1, 16), 64}), b = input("b", f16, {64, 64});
  expect_user_error([&] { check(matmul_nt(a, b) + iota({64})); }, "operation 'iota'", "beside a matrix product", "a kernel of its own");
}

TEST_CASE("a state that one row of a launch reads, and another one writes") {
  const auto refuse = [](const Expr& read, const Expr& written, std::string_view fact, std::string_view remedy) {
    const KernelSpec spec = KernelSpec("k").output("y", f16, written, {.in_place_of = "table"}).output("z", f32, read + x());
    expect_user_error([&] { validate(spec); }, "input 'table'", fact, remedy);
  };
  const Expr by_token = scatter(table(), ids(), x());
  refuse(gather(table(), ids()), scatter(table(), ids(), x(), {.duplicates = true}), "a scatter with duplicates writes them",
         "leave duplicates out");
  refuse(gather(table(), ids(), {.checked = true}), by_token, "a checked gather may read its last row", "leave checked out");
  refuse(gather(table(), input("one", i32, {1, 1})), by_token, "by an index [1, 1], and a scatter writes them by another one, [tokens, 1]",
         "use one index for both");
  const Expr one_a_row = input("one_a_row", f32, {slots, 1});
  const KernelSpec narrow =
      KernelSpec("k").output("y", f32, scatter(one_a_row, ids(), row_sum(x() * gather(one_a_row, ids()))), {.in_place_of = "one_a_row"});
  expect_user_error([&] { validate(narrow); }, "output 'y' in place of 'one_a_row'", "elements are read by several threads",
                    "memory of its own");
}

TEST_CASE("stacks and shifted columns") {
  const Expr several = input("several", f16, {tokens, 3, 64});
  const auto refuse = [](const auto& build, std::string_view subject, std::string_view fact, std::string_view remedy) {
    expect_user_error(build, subject, fact, remedy);
  };
  refuse([&] { unstack(several, 3); }, "operation 'unstack'", "the index is 3, and the second dimension of [tokens, 3, 64] has 3",
         "0 to 2");
  refuse([&] { unstack(several * 2, 0); }, "operation 'unstack'", "its operand is a 'mul'", "apply it to an input");
  refuse([] { unstack(x(), 0); }, "operation 'unstack'", "its operand has shape [tokens, 64]", "three dimensions");
  refuse([] { unstack(input("w", f16, {tokens, dynamic("n"), 64}), 0); }, "operation 'unstack'", "known only at launch", "a number");
  refuse([] { stack({x()}); }, "operation 'stack'", "it has 1 operands", "2 to 16");
  refuse([] { stack({x() * 2, input("w", f16, {64}) * 2}); }, "operation 'stack'", "f32[tokens, 64] and f32[64]", "one type and shape");
  const Expr both = stack({x() * 2, x() + 1});
  refuse([&] { check(both + 1); }, "operation 'stack'", "operation 'add' takes its result", "let it be an output");
  refuse([&] { validate(KernelSpec("k").output("y", f32, both, {.in_place_of = "x"})); }, "output 'y' in place of 'x'", "it is a stack",
         "memory of its own");
  refuse([] { shift_columns(x(), 64); }, "operation 'shift_columns'", "it moves 64 columns by 64", "to either side");
  refuse([] { shift_columns(x() + 1, 1); }, "operation 'shift_columns'", "its operand is a 'add'", "apply it to an input");
  refuse([] { plan(partner(shift_columns(input("w", f16, {tokens, 96}), 1), 48)); }, "operation 'partner'",
         "the partner at 48 of what 'shift_columns' computes from other columns", "kernel of its own");
}

TEST_CASE("indices that name the state of another row") {
  const Expr state = input("state", f32, {slots, 64}), from = input("from", i32, {tokens, 1}), to = input("places", i32, {tokens, 2, 1});
  const Expr next = cast(f32, gather(state, from) * 2);
  const KernelSpec spec = KernelSpec("k").output("y", f32, scatter(state, to, stack({next, next * 2})), {.in_place_of = "state"});
  Inputs inputs;
  inputs.tensors.emplace("state", Tensor(f32, {6, 64}));
  Tensor& read = inputs.tensors.emplace("from", Tensor(i32, {2, 1})).first->second;
  Tensor& written = inputs.tensors.emplace("places", Tensor(i32, {2, 2, 1})).first->second;
  for (int i = 0; i < 4; ++i) written.set_bits(i, static_cast<std::uint64_t>(i));
  read.set_bits(0, 1), read.set_bits(1, 5);
  evaluate(spec, inputs); // its own, and one that nobody writes
  read.set_bits(1, 0);
  expect_user_error(
      [&] { evaluate(spec, inputs); }, "index 'from'",
      "element 1 of it and element 0 of places are both 0, a row of state that one part of the launch reads and another one writes",
      "read rows that no other one writes");
}

TEST_CASE("pairs and columns") {
  expect_user_error([] { partner(input("x", f16, {tokens, 63}), 1); }, "operation 'partner'", "63 columns are not made of pairs 1 apart",
                    "their number is odd");
  expect_user_error([] { partner(x(), 24); }, "operation 'partner'", "64 columns are not made of pairs 24 apart", "double divides");
  expect_user_error([] { partner(x(), 0); }, "operation 'partner'", "pairs 0 apart", "double divides");
  expect_user_error([] { partner(input("x", f16, {tokens, dynamic("cols")}), 1); }, "operation 'partner'", "known only at launch",
                    "give it a number");
  expect_user_error([] { tile(x() + 1, 2); }, "operation 'tile'", "its operand is a 'add'", "to an input");
  expect_user_error([] { tile(x(), 1); }, "operation 'tile'", "1 times 64 columns", "2 or more");
  expect_user_error([] { repeat(x(), 3); }, "operation 'repeat'", "repeats each column 3 times", "power of two");
  expect_user_error([] { iota({tokens, 64}); }, "operation 'iota'", "2 dimensions of [tokens, 64] are not 1", "count along");
  expect_user_error([] { check(input("w", f16, {64}) + iota({dynamic("others"), 1})); }, "operation 'iota'",
                    "no input has the dimension 'others'", "dimension of an input");
}

TEST_CASE("partners that neither memory nor registers have") {
  const Expr wide = input("x", f16, {tokens, 96}), flag = cast(f32, input("flag", boolean, {tokens, 96}));
  const auto refuse = [](const Expr& value, std::string_view fact, std::string_view remedy) {
    expect_user_error([&] { plan(value); }, "operation 'partner'", fact, remedy);
  };
  refuse(partner(partner(wide, 12), 24), "the partner at 24 of partners at 12", "one distance for both");
  refuse(partner(partner(wide, 16), 24), "the partner at 24 of partners at 16", "powers of two up to 256 may be of anything");
  refuse(partner(flag, 48), "read from memory, which is bool", "give that input as i8");
  refuse(partner(wide * ungroup(group_max(wide, 2), 2, 96), 3), "columns 3 apart are of different groups of 2",
         "use groups of whole pairs");
  refuse(partner(ungroup(group_max(wide, 4), 4, 96) * wide, 24), "columns 24 apart are of different groups of 4", "groups of whole pairs");
  refuse(partner(row_cumsum(wide), 48), "the partner at 48 of what 'row_cumsum' computes from other columns", "kernel of its own");
  const Expr longer = input("x", f16, {tokens, 2048});
  refuse(partner(partner(longer, 512), 1024), "the partner at 1024 of partners at 512", "powers of two up to 256");
  refuse(longer + ungroup(partner(group_sum(longer, 32), 4), 32, 2048), "its last dimension is 64, the kernel's columns are 2048", "");
}

TEST_CASE("transforms and normalisations of blocks that are not there") {
  const auto columns = [](std::int64_t count) { return input("x", f16, {tokens, count}); };
  expect_user_error([&] { hadamard(columns(96), 64); }, "function 'hadamard'", "96 columns are not made of blocks of 64", "divides");
  expect_user_error([&] { hadamard(columns(96), 48); }, "function 'hadamard'", "block is 48 columns", "power of two from 2 to 512");
  expect_user_error([&] { hadamard(columns(4096), 1024); }, "function 'hadamard'", "block is 1024 columns", "from 2 to 512");
  expect_user_error([&] { hadamard(input("x", f16, {tokens, dynamic("cols")}), 64); }, "function 'hadamard'", "are no number",
                    "known width");
  expect_user_error([&] { sinkhorn(columns(24), 4, 20); }, "function 'sinkhorn'", "24 columns are not made of blocks of 16", "divides");
  expect_user_error([&] { sinkhorn(columns(9), 3, 20); }, "function 'sinkhorn'", "3 rows and columns", "2, 4, 8 or 16");
  expect_user_error([&] { sinkhorn(columns(1024), 32, 20); }, "function 'sinkhorn'", "32 rows and columns", "2, 4, 8 or 16");
  expect_user_error([&] { sinkhorn(columns(16), 4, 0); }, "function 'sinkhorn'", "normalises 0 times", "1 to 64");
  expect_user_error([&] { catalog_spec("hadamard", {.cols = 1000}); }, "catalogue entry 'hadamard'", "cols is 1000", "multiple of group");
  expect_user_error([&] { catalog_spec("hadamard", {.group = 96}); }, "catalogue entry 'hadamard'", "group is 96", "power of two");
  expect_user_error([&] { catalog_spec("sinkhorn", {.cols = 24}); }, "catalogue entry 'sinkhorn'", "cols is 24", "multiple");
  expect_user_error([&] { catalog_spec("sinkhorn", {.side = 3}); }, "catalogue entry 'sinkhorn'", "side is 3", "2, 4, 8 or 16");
  expect_user_error([&] { catalog_spec("sinkhorn", {.times = 65}); }, "catalogue entry 'sinkhorn'", "times is 65", "1 to 64");
}

TEST_CASE("schedules that part the pairs of a wave") {
  const Target to = target("gfx942");
  const Plan pairs = make_plan(KernelSpec("k").output("y", f32, hadamard(input("x", f16, {tokens, 512}), 512)), to);
  const auto refuse = [&](const std::vector<std::string>& settings, std::string_view fact) {
    expect_user_error([&] { with_overrides(choose_schedule(pairs, to), settings, pairs, to); }, "schedule of 'k'", fact, "so that they do");
  };
  refuse({"vec=4", "threads_per_row=64", "rows_per_block=1"}, "partners 256 apart do not lie in 64 lanes of 4 elements");
  refuse({"threads_per_row=32", "rows_per_block=2"}, "partners 256 apart do not lie in 32 lanes of 8 elements");
  const Expr x = input("x", f16, {tokens, 512});
  expect_user_error([&] { plan(hadamard(x * ungroup(group_max(x, 2), 2, 512), 512)); }, "kernel 'k'",
                    "groups of 512 columns, or pairs within as many, and a smaller group, or what it reads gives a lane 2 of 512",
                    "up to 128");
}

TEST_CASE("an output in place of what other lanes still read") {
  const Expr wide = input("x", f16, {tokens, 8192});
  const KernelSpec spec = KernelSpec("k").output("y", f16, wide + partner(wide, 4096), {.in_place_of = "x"});
  const Target to = target("gfx942");
  expect_user_error([&] { candidates(make_plan(spec, to, registered_families()), to); }, "schedule of 'k'",
                    "output 'y' is in place of 'x', of which 'partner' reads other columns", "memory of its own");
}

TEST_CASE("indices that name no row, or one twice") {
  Inputs inputs;
  inputs.tensors.emplace("table", Tensor(f16, {4, 64}));
  inputs.tensors.emplace("x", Tensor(f16, {3, 64}));
  Tensor& index = inputs.tensors.emplace("ids", Tensor(i32, {3, 1})).first->second;
  const KernelSpec gathers = KernelSpec("k").output("y", f16, gather(table(), ids()));
  index.set_bits(1, 4);
  expect_user_error([&] { evaluate(gathers, inputs); }, "index 'ids'", "element 1 is 4, and table has 4 rows", "rows that exist");
  const KernelSpec scatters = KernelSpec("k").output("y", f16, scatter(table(), ids(), x()), {.in_place_of = "table"});
  index.set_bits(1, 2);
  index.set_bits(2, 2);
  expect_user_error([&] { evaluate(scatters, inputs); }, "index 'ids'", "elements 1 and 2 are both 2", "duplicates");
  index.set_bits(2, 0);
  expect_user_error([&] { evaluate(scatters, inputs); }, "index 'ids'", "elements 0 and 2 are both 0, a row of table", "duplicates");
}

TEST_CASE("options behind the operands") {
  const auto parse = [](const char* options) {
    parse_spec(std::string("kernel k\ndim n\ninput t: f16[n, 8]\ninput i: i32[4, 1]\noutput y: f16[4, 8] = gather(t, i, ") + options +
               ")\n");
  };
  parse("checked");
  expect_user_error([&] { parse("duplicates"); }, "spec text, line 5, column 36", "'duplicates' is no option of gather", "write checked");
}

TEST_CASE("groups wider than a wave that reads single columns by index") {
  expect_user_error(
      [] { plan(gather(input("t", f16, {slots, 63}), ids()) * ungroup(group_absmax(input("x", f16, {tokens, 63}), 128), 128, 63)); },
      "kernel 'k'", "groups of 128, and what it reads by index or in pairs gives a lane 1 of 63 columns", "groups of up to 64");
}
