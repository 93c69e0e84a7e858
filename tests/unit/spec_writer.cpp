// A spec that is written statement by statement is the spec of the whole text, and errors leave it as it was. Forms of calls are the
// parser's.
#include "gen/spec/text/spec_writer.h"
#include "gen/error.h"
#include "gen/spec/text/call_form.h"
#include <doctest/doctest.h>

using namespace kiln;

TEST_CASE("statements one by one are the spec of the whole text") {
  SpecWriter writer("norm");
  CHECK(!writer.add("dim rows [1..64]"));
  CHECK(to_text(writer.add("input x: f16[rows, 256]")->shape()) == "[rows[1..64], 256]");
  const Expr mean = *writer.add("let m = row_mean(x * x)");
  CHECK((to_text(mean.shape()) == "[rows[1..64], 1]" && mean.dtype() == f32));
  CHECK_THROWS_WITH_AS(writer.add("let y = x * z"), doctest::Contains("spec text, line 1, column 13: 'z' is not declared"), UserError);
  CHECK_THROWS_AS(writer.add("let y = add(x"), UserError);
  writer.add("let unused = exp(x)");
  CHECK(writer.add("let y = x * rsqrt(m) output y: bf16[rows, 256] = y")->dtype() == bf16);
  CHECK(writer.spec() ==
        parse_spec("kernel norm dim rows [1..64] input x: f16[rows, 256] output y: bf16[rows, 256] = x * rsqrt(row_mean(x * x))"));
}

TEST_CASE("what nests deeper than the parser takes is printed with names") {
  Expr x = input("x", f16, {dynamic("rows"), 64});
  for (int i = 0; i < 190; ++i) x = x * 0.5 + 1.0; // 380 of the 400 operations that may stand one upon another
  const KernelSpec spec = KernelSpec("deep").output("y", f32, x);
  CHECK(parse_spec(to_text(spec)) == spec);
}

TEST_CASE("every operation that is no leaf has a form, and every form is a call that the parser knows") {
  for (const Op op : all_ops()) CHECK((find_call(info(op).name) != nullptr) == (info(op).kind != OpKind::leaf));
  for (const CallForm& form : call_forms())
    CHECK_THROWS_WITH_AS(parse_spec("kernel f output y: f32[] = " + std::string(form.name) + "(!"), doctest::Contains("column"), UserError);
  CHECK(find_call("gather")->options.size() == 1);
  CHECK(find_call("matmul_nt_w4")->numbers == 1);
  CHECK(find_call("nothing") == nullptr);
}
