// A program that builds a wrong spec, or evaluates it with wrong inputs, is told subject, fact and remedy.
#include "expect.h"
#include "gen/catalog/catalog.h"
#include "gen/families/make_plan.h"
#include "gen/plan/plan.h"
#include "gen/plan/validate.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/spec/math.h"

using namespace kiln;

namespace {

const Dim rows = dynamic("rows");
Expr tensor(std::string name, Shape shape = {rows, 64}, DType type = f16) { return input(std::move(name), type, std::move(shape)); }

} // namespace

TEST_CASE("shapes") {
  expect_user_error([] { tensor("a", {rows, 64}) + tensor("b", {rows, 65}); }, "operation 'add'",
                    "shapes [rows, 64] and [rows, 65] do not broadcast: 64 against 65 in dimension 1 from the right", "one of them 1");
  expect_user_error([] { tensor("a", {64}) * tensor("b", {rows, 65}); }, "operation 'mul'", "64 against 65", "make the sizes equal");
  expect_user_error([] { tensor("a", {rows, 64}) + tensor("b", {dynamic("other"), 64}); }, "operation 'add'",
                    "rows against other in dimension 2", "equal");
  expect_user_error([] { tensor("x", {rows, 0}); }, "input 'x'", "the shape [rows, 0] has a dimension of 0", "sizes from 1");
  expect_user_error([] { tensor("x", {rows, -4}); }, "input 'x'", "a dimension of -4", "sizes from 1");
  expect_user_error([] { tensor("x", {1, 1, 1, 1, 1, 1, 1, 1, 1}); }, "input 'x'", "has 9 dimensions", "at most 8");
  expect_user_error([] { input("x", f16, {64}, Layout::strided); }, "input 'x'", "its shape [64] has no dimension to step over",
                    "contiguous");
}

TEST_CASE("names") {
  expect_user_error([] { tensor(""); }, "input ''", "the name is empty", "such as 'x'");
  expect_user_error([] { tensor("2x"); }, "input '2x'", "begins with '2'", "begin it with a letter");
  expect_user_error([] { tensor("a b"); }, "input 'a b'", "contains ' '", "letters, digits and underscores");
  expect_user_error([] { tensor("a__b"); }, "input 'a__b'", "two underscores", "one underscore");
  expect_user_error([] { tensor("float"); }, "input 'float'", "a word of the spec text, of C++ or of the emitted kernels", "another name");
  expect_user_error([] { tensor("exp"); }, "input 'exp'", "a word of", "another name");
  expect_user_error([] { tensor(std::string(65, 'x')); }, "input '" + std::string(65, 'x') + "'", "has 65 characters", "at most 64");
  expect_user_error([] { KernelSpec("my-kernel"); }, "kernel 'my-kernel'", "contains '-'", "letters");
  expect_user_error([] { scalar("_s"); }, "scalar '_s'", "begins with '_'", "letter");
  expect_user_error([] { dynamic("dim"); }, "dimension 'dim'", "a word of", "another name");
  expect_user_error([] { KernelSpec("k").output("out put", f16, tensor("x")); }, "output 'out put'", "contains ' '", "letters");
}

TEST_CASE("dimensions") {
  expect_user_error([] { dynamic("m", 9, 4); }, "dimension 'm'", "its minimum 9 exceeds its maximum 4", "swap them");
  expect_user_error([] { dynamic("m", -1); }, "dimension 'm'", "-1 to", "minimum of 0 or more");
  const Expr a = tensor("a", {dynamic("m", 1, 16), 64}), b = tensor("b", {dynamic("m"), 64});
  expect_user_error([&] { validate(KernelSpec("k").output("y", f16, a + b)); }, "dimension 'm'", "as m[1..16] and as m", "the same bounds");
  expect_user_error([] { validate(KernelSpec("k").output("y", f16, tensor("rows"))); }, "dimension 'rows'",
                    "an input, scalar or output has the same name", "rename");
}

TEST_CASE("operand types") {
  const Expr x = tensor("x"), mask = tensor("mask", {rows, 64}, boolean);
  expect_user_error([&] { mask + x; }, "operation 'add'", "operand 1 is bool", "cast(f32, ...)");
  expect_user_error([&] { select(x, x, x); }, "operation 'select'", "operand 1 is f16", "compare it first");
  expect_user_error([&] { logical_and(mask, x); }, "operation 'logical_and'", "operand 2 is f16", "compare it first");
  expect_user_error([&] { row_sum(x > 0); }, "reduction 'row_sum'", "its operand is bool", "cast(f32, ...)");
  expect_user_error([] { scalar("s", f16); }, "scalar 's'", "its type is f16", "f32 or i32");
  expect_user_error([&] { cast_nonsaturating(f16, x); }, "operation 'cast_nonsaturating'", "f16 never saturates", "use cast");
  const Expr one[] = {x};
  expect_user_error([&] { pointwise(Op::add, one); }, "operation 'add'", "it was given 1 operands", "give it 2");
}

TEST_CASE("reductions and groups") {
  expect_user_error([] { row_sum(scalar("s")); }, "reduction 'row_sum'", "its operand has shape []", "[rows, cols]");
  expect_user_error([] { row_max(tensor("x", {64, dynamic("cols")})); }, "reduction 'row_max'",
                    "the last dimension of [64, cols] is known only at launch", "give it a number");
  for (const std::int64_t group : {0, 1, 3, 100, 1024, -8})
    expect_user_error([&] { group_max(tensor("x"), group); }, "reduction 'group_max'", "the group size is " + std::to_string(group),
                      "a power of two from 2 to 512");
  expect_user_error([] { ungroup(tensor("s", {rows, 3}), 128, 256); }, "operation 'ungroup'",
                    "its operand has shape [rows, 3], but 256 columns make 2 groups of 128", "last dimension is 2");
  expect_user_error([] { ungroup(tensor("s", {rows, 3}), 100, 256); }, "operation 'ungroup'", "the group size is 100", "power of two");
  expect_user_error([] { ungroup(tensor("s", {rows, 3}), 128, dynamic("cols")); }, "operation 'ungroup'",
                    "the number of columns cols is known only at launch", "give it a number");
  expect_user_error([] { validate(KernelSpec("k").output("y", f32, tensor("x") * row_sum(row_sum(tensor("x"))))); }, "operation 'row_sum'",
                    "it works on [rows, 1], but a row of the kernel has 64 columns", "full row");
  expect_user_error([] { validate(KernelSpec("k").output("y", f32, row_sum(tensor("x", {64})))); }, "kernel 'k'",
                    "its iteration space [64] has 1 dimensions", "[rows, cols]");
}

TEST_CASE("what a kernel must have") {
  expect_user_error([] { validate(KernelSpec("k")); }, "kernel 'k'", "it has no outputs", "add one");
  expect_user_error([] { validate(KernelSpec("k").output("y", f16, Expr(1) + scalar("s"))); }, "kernel 'k'", "its outputs use no input",
                    "at least one input");
  expect_user_error(
      [] {
        const Expr x = tensor("x");
        KernelSpec spec("k");
        for (int chain = 0; chain < 12; ++chain) {
          Expr y = x * (chain + 2);
          for (int i = 0; i < 350; ++i) y = y + 1; // the ones are one value
          spec.output(fmt::format("y{}", chain), f16, y);
        }
        validate(spec);
      },
      "kernel 'k'", "operations and values", "at most 4096");
  expect_user_error(
      [] {
        Expr x = tensor("x");
        for (int i = 0; i < 4200; ++i) x = x + 1;
      },
      "operation 'add'", "more than 400 operations stand one upon another", "(a + b) + (c + d)");
}

TEST_CASE("one meaning a name") {
  const Expr x = tensor("x");
  expect_user_error([&] { validate(KernelSpec("k").output("y", f16, x).output("y", f32, x)); }, "output 'y'", "two outputs have this name",
                    "rename");
  expect_user_error([&] { validate(KernelSpec("k").output("x", f16, x)); }, "output 'x'", "input has the same name", "in_place_of");
  expect_user_error([&] { validate(KernelSpec("k").output("y", f16, x + tensor("x", {rows, 64}, f32))); }, "input 'x'",
                    "it is used as f16[rows, 64] and as f32[rows, 64]", "two names");
  expect_user_error([&] { validate(KernelSpec("k").output("y", f16, x + tensor("x", {64}))); }, "input 'x'",
                    "it is used as f16[rows, 64] and as f16[64]", "one declaration");
  expect_user_error([&] { validate(KernelSpec("k").output("y", f16, x + scalar("x"))); }, "input 'x'", "a scalar has the same name",
                    "rename");
  expect_user_error([&] { validate(KernelSpec("k").output("y", f16, x * scalar("s") + scalar("s", i32))); }, "scalar 's'",
                    "it is used as f32[] and as i32[]", "two names");
}

TEST_CASE("iteration spaces") {
  const Expr x = tensor("x"), wide = tensor("wide", {rows, 128}), weight = tensor("weight", {64});
  expect_user_error([&] { validate(KernelSpec("k").output("a", f16, x * row_sum(wide))); }, "kernel 'k'",
                    "values of shape [rows, 64] and of 128 columns do not belong to one iteration space", "two kernels");
  expect_user_error([&] { validate(KernelSpec("k").output("a", f16, x * row_sum(wide)).output("b", f16, weight * 2)); }, "kernel 'k'",
                    "values of shape [rows, 64] and of 128 columns do not belong to one iteration space", "two kernels");
  expect_user_error([&] { validate(KernelSpec("k").output("a", f16, weight, {.layout = Layout::strided})); }, "output 'a'",
                    "no dimension to step over", "contiguous");
}

TEST_CASE("outputs in place") {
  const Expr x = tensor("x"), other = tensor("other"), narrow = tensor("narrow", {rows, 1}, f32);
  const auto in_place = [&](DType type, const Expr& value, std::string of) {
    validate(KernelSpec("k").output("y", type, value + x, {.in_place_of = of}).output("z", f16, value));
  };
  expect_user_error([&] { in_place(f16, x, "nothing"); }, "output 'y' in place of 'nothing'", "'nothing' is no input of the kernel",
                    "name an input");
  expect_user_error([&] { in_place(f32, x, "x"); }, "output 'y' in place of 'x'", "the output is f32[rows, 64], the input f16[rows, 64]",
                    "make type, shape and layout equal");
  expect_user_error(
      [&] { validate(KernelSpec("k").output("y", f16, x, {.in_place_of = "x"}).output("z", f16, x + 1, {.in_place_of = "x"})); },
      "output 'z' in place of 'x'", "another output is in place of the same input", "memory of its own");
  expect_user_error([&] { validate(KernelSpec("k").output("y", f16, x, {.in_place_of = "x", .layout = Layout::strided})); },
                    "output 'y' in place of 'x'", "the output is f16[rows, 64] strided, the input f16[rows, 64]", "layout equal");
  expect_user_error([&] { validate(KernelSpec("k").output("y", f32, row_sum(x) + narrow, {.in_place_of = "narrow"})); },
                    "output 'y' in place of 'narrow'", "its shape [rows, 1] is smaller than the kernel's [rows, 64]", "memory of its own");
  CHECK_NOTHROW(validate(KernelSpec("k").output("y", f16, x + other, {.in_place_of = "other"})));
}

TEST_CASE("targets and native types") {
  expect_user_error([] { target("gfx90a"); }, "target 'gfx90a'", "is not an architecture that Kiln generates code for", "gfx942, gfx950");
  expect_user_error([] { target("gfx942:xnack-"); }, "target 'gfx942:xnack-'", "target features do not belong", "gfx942");
  const KernelSpec ocp = catalog_spec("cast", {.fp8 = e4m3fn}), fnuz = catalog_spec("dequant", {.fp8 = e5m2fnuz});
  expect_user_error([&] { require_native_types(ocp, target("gfx942")); }, "output 'q'",
                    "e4m3fn is not native to gfx942: it ends at 448, e4m3fnuz at 240", "use e4m3fnuz");
  expect_user_error([&] { require_native_types(fnuz, target("gfx950")); }, "input 'q'", "e5m2fnuz is not native to gfx950",
                    "target.fp8_e5m2()");
  const KernelSpec inner = KernelSpec("k").output("y", f16, cast(e4m3fnuz, tensor("x")) * 2);
  expect_user_error([&] { require_native_types(inner, target("gfx950")); }, "operation 'cast'", "e4m3fnuz is not native to gfx950",
                    "use e4m3fn");
  CHECK_NOTHROW(require_native_types(ocp, target("gfx950")));
}

TEST_CASE("outputs with the groups in front") {
  const Expr x = tensor("x", {rows, 512}), scale = group_absmax(x, 128);
  const auto planned = [](const KernelSpec& spec) { return [spec] { validate(spec), analyse(spec, target("gfx942")); }; };
  CHECK_NOTHROW(planned(KernelSpec("k").output("scale", f32, transpose(scale)))());
  CHECK_NOTHROW(planned(KernelSpec("k").output("scale", bf16, transpose(scale)))());
  expect_user_error([&] { transpose(tensor("x", {rows, 2, 512})); }, "operation 'transpose'", "its operand has the shape [rows, 2, 512]",
                    "give it [rows, groups]");
  expect_user_error(planned(KernelSpec("k").output("m", f32, transpose(row_max(x)))), "output 'm'", "it is transposed, and one value a row",
                    "transpose what is one a group");
  expect_user_error(planned(KernelSpec("k").output("scale", f32, transpose(scale) * 2)), "operation 'transpose'",
                    "take its result transposed", "let it be the last one");
  const Expr product = matmul_nt(tensor("a", {dynamic("m", 1, 16), 512}), tensor("b", {256, 512}));
  expect_user_error(planned(KernelSpec("k").output("c", f32, transpose(product))), "operation 'transpose'", "has a matrix product",
                    "transpose in the kernel of rows");
}

TEST_CASE("scales of a product with the groups in front") {
  const Dim m = dynamic("m", 1, 16);
  const Expr a = input("a", e4m3fnuz, {m, 512}), b = input("b", e4m3fnuz, {256, 512}), other = input("other", e4m3fnuz, {256, 512});
  const Expr a_scale = input("a_scale", f32, {4, m}), b_scale = input("b_scale", f32, {2, 4});
  const auto planned = [](const Expr& c) { return [c] { make_plan(KernelSpec("k").output("c", f32, c), target("gfx942")); }; };
  const Expr product = matmul_nt_scaled(a, b, transpose(a_scale), b_scale);
  CHECK_NOTHROW(planned(product)());
  expect_user_error([&] { matmul_nt_scaled(a, b, a_scale, b_scale); }, "operation 'matmul_nt_scaled', operand a_scale",
                    "known only at launch", "give k a number");
  expect_user_error([&] { matmul_nt_scaled(a, b, transpose(input("s", f32, {3, m})), b_scale); },
                    "operation 'matmul_nt_scaled', operand a_scale", "it is f32[m[1..16], 3]", "give it f32[m[1..16], 4]");
  expect_user_error([&] { matmul_nt_scaled(a, b, transpose(a_scale * 2.0), b_scale); }, "operation 'matmul_nt_scaled', operand a_scale",
                    "it is a 'mul'", "a kernel of its own");
  expect_user_error([&] { matmul_nt_scaled(a, b, transpose(a_scale), transpose(input("s", f32, {4, 2}))); },
                    "operation 'matmul_nt_scaled', operand b_scale", "it is a 'transpose'", "a kernel of its own");
  expect_user_error(planned(product * matmul_nt_scaled(a, other, input("s", f32, {m, 4}), b_scale)), "kernel 'k'", "its products scale 'a'",
                    "in one order");
  expect_user_error(planned(product + transpose(input("t", f32, {256, m}))), "operation 'transpose'", "has a matrix product",
                    "or the a_scale of a product");
}

TEST_CASE("catalogue") {
  expect_user_error([] { catalog_spec("rmsnrom", {}); }, "catalogue entry 'rmsnrom'", "there is none", "did you mean 'rmsnorm'?");
  expect_user_error([] { catalog_spec("quicksort", {}); }, "catalogue entry 'quicksort'", "there is none",
                    "use one of add_rmsnorm_quant, ");
  expect_user_error([] { catalog_spec("rmsnorm", {.cols = 0}); }, "catalogue entry 'rmsnorm'", "cols is 0", "1 to");
  expect_user_error([] { catalog_spec("rmsnorm", {.dtype = i8}); }, "catalogue entry 'rmsnorm'", "dtype is i8", "f32, f16 or bf16");
  expect_user_error([] { catalog_spec("rmsnorm", {.fp8 = f16}); }, "catalogue entry 'rmsnorm'", "fp8 is f16", "e4m3fn");
  expect_user_error([] { catalog_spec("group_quant", {.group = 100}); }, "reduction 'group_absmax'", "the group size is 100",
                    "power of two");
}

TEST_CASE("inputs of evaluate") {
  const KernelSpec spec =
      KernelSpec("k").output("y", f16, tensor("x", {dynamic("m", 2, 4), 8}) * tensor("s", {dynamic("m", 2, 4), 1}) + scalar("a"));
  const auto run = [&](DType type, std::vector<std::int64_t> x, std::vector<std::int64_t> s) {
    evaluate(spec, {{{"x", Tensor(type, std::move(x))}, {"s", Tensor(f16, std::move(s))}}, {{"a", 1}}});
  };
  CHECK_NOTHROW(run(f16, {3, 8}, {3, 1}));
  expect_user_error([&] { run(f32, {3, 8}, {3, 1}); }, "input 'x'", "the tensor is f32, the spec says f16", "give a tensor of f16");
  expect_user_error([&] { run(f16, {3, 9}, {3, 1}); }, "input 'x'", "the tensor's shape [3, 9] does not fit [m[2..4], 8]: 9 is not 8",
                    "spec's shape");
  expect_user_error([&] { run(f16, {3, 8, 1}, {3, 1}); }, "input 'x'", "it has 3 dimensions", "spec's shape");
  expect_user_error([&] { run(f16, {3, 8}, {2, 1}); }, "input 's'", "'m' is 3 elsewhere", "spec's shape");
  expect_user_error([&] { run(f16, {5, 8}, {5, 1}); }, "input 'x'", "5 is outside m[2..4]", "spec's shape");
  expect_user_error([&] { evaluate(spec, {{{"x", Tensor(f16, {3, 8})}}, {{"a", 1}}}); }, "input 's'", "no tensor was given",
                    "give one of f16[m[2..4], 1]");
  expect_user_error([&] { evaluate(spec, {{{"x", Tensor(f16, {3, 8})}, {"s", Tensor(f16, {3, 1})}}, {}}); }, "scalar 'a'",
                    "no number was given", "give one");
  expect_user_error([] { Tensor(f16, {2, 8}, 4); }, "tensor", "the row stride 4 is below the 8 elements of a row", "larger stride");
  expect_user_error([] { Tensor(f16, {-2, 8}); }, "tensor", "dimension 0 has the size -2", "0 or more");
  const Inputs inputs{{{"x", Tensor(f16, {3, 8})}, {"s", Tensor(f16, {3, 1})}}, {{"a", 1}}};
  const auto bounds = evaluate_bounds(spec, inputs);
  expect_user_error([&] { find_mismatch({}, bounds); }, "output 'y'", "it is missing", "every output");
  expect_user_error([&] { find_mismatch({{"y", Tensor(f32, {3, 8})}}, bounds); }, "output 'y'", "it is f32[3, 8], the spec says f16[3, 8]",
                    "type and shape");
}

TEST_CASE("bugs say that they are bugs") {
  CHECK_THROWS_WITH_AS(dynamic("m").size(), "internal: the size of dimension 'm' was asked for before the launch; please report",
                       InternalError);
  const EnvironmentError error("hipRTC", "failed", "see the log", "error: x", "dump.hip");
  CHECK(std::string(error.what()) == "hipRTC: failed; see the log\nsee dump.hip\nerror: x");
}
