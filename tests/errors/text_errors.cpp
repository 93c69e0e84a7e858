// Every mistake in the text of a spec is reported with its line and column, and no text crashes the parser.
#include "expect.h"
#include "gen/plan/validate.h"
#include "gen/reference/random.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/spec_generator.h"
#include <fmt/format.h>

using namespace kiln;

namespace {

// Checks the error of a text whose third line, after "kernel k" and "input x: f16[4, 8]", is `line`; at column `column`.
void expect_at(std::string_view line, int column, std::string_view fact, std::string_view remedy, std::string_view more_subject = "") {
  expect_user_error([&] { parse_spec(fmt::format("kernel k\ninput x: f16[4, 8]\n{}", line)); },
                    fmt::format("spec text, line 3, column {}{}", column, more_subject), fact, remedy);
}

} // namespace

TEST_CASE("the beginning") {
  expect_user_error([] { parse_spec(""); }, "spec text, line 1, column 1", "the end of the text stands where 'kernel' belongs", "grammar");
  expect_user_error([] { parse_spec("# only a comment\n  kernle k"); }, "spec text, line 2, column 3",
                    "'kernle' stands where 'kernel' belongs", "grammar");
  expect_user_error([] { parse_spec("kernel 7"); }, "spec text, line 1, column 8", "'7' stands where the kernel's name belongs",
                    "write a name");
  expect_user_error([] { parse_spec("kernel float"); }, "spec text, line 1, column 8: kernel 'float'", "a word of", "another name");
}

TEST_CASE("loops") {
  expect_at("for t 3 { }", 7, "'3' stands where ':' belongs", "grammar");
  expect_at("for t: 17 { }", 5, "'t' counts 17 turns", "use 1 to 16");
  expect_at("for x: 2 { }", 5, "'x' is declared twice", "rename one of them");
  expect_at("for t: 2 { output y: f16[4, 8] = x }", 12, "'output' begins no statement of a loop", "use let and stack");
  expect_at("for t: 2 { let y = x", 21, "the end of the text begins no statement of a loop", "end it with }");
  expect_at("for t: 2 { let x = x + t }", 24, "'t' is not declared", "");
  expect_at("for t: 2 { let x = x + 1 }", 16, "'x' is declared twice", "rename one of them");
  expect_at("for t: 2 { stack y = x + 1 }\noutput z: f32[4, 8] = x", 18, "'y' is used by no output", "use it or remove it");
}

TEST_CASE("statements") {
  expect_at("outptu y: f16[4, 8] = x", 1, "'outptu' begins no statement", "dim, input, scalar, let, for or output");
  expect_at("input y f16[4, 8]", 9, "'f16' stands where ':' belongs", "grammar");
  expect_at("input y: f17[4, 8]", 10, "there is no type 'f17'", "did you mean 'f16'?");
  expect_at("input y: quaternion[4, 8]", 10, "there is no type 'quaternion'", "use one of f32, f16, bf16, e4m3fn");
  expect_at("input y: f16[rows, 8]", 14, "dimension 'rows' is not declared", "write 'dim rows' above");
  expect_at("input y: f16[4 8]", 16, "'8' stands where ',' belongs", "grammar");
  expect_at("input y: f16[4, 8", 18, "the end of the text stands where ',' belongs", "grammar");
  expect_at("output y: f16[4, 9] = x", 14, "output 'y' is declared as [4, 9], but its value has shape [4, 8]", "write f16[4, 8]");
  expect_at("output y: f16[4, 8] = x in_place_of", 36, "the end of the text stands where the input's name belongs", "write a name");
  expect_at("output y: f16[4, 8] = x @ x", 25, "the character '@' has no meaning here", "names, numbers, the symbols");
  expect_at("output y: f16[4, 8] = x \x01", 25, "the character '\\x01' has no meaning here", "comments after #");
}

TEST_CASE("declarations") {
  expect_at("input y: f16[0, 8]", 7, "the shape [0, 8] has a dimension of 0", "sizes from 1", ": input 'y'");
  expect_at("input x: f16[4, 8]", 7, "'x' is declared twice, first in line 2", "rename one of them");
  expect_at("dim m[9..2]", 5, "its minimum 9 exceeds its maximum 2", "swap", ": dimension 'm'");
  expect_at("dim m dim m", 11, "dimension 'm' is declared twice", "remove one");
  expect_at("dim m[x..2]", 7, "'x' stands where a whole number belongs", "write digits");
  expect_at("dim m[1..99999999999999999999]", 10, "'99999999999999999999' stands where a whole number belongs",
            "at most 9223372036854775807");
  expect_at("scalar s: f16", 8, "its type is f16", "f32 or i32", ": scalar 's'");
  expect_at("let exp = x", 5, "the name is a word", "another name", ": value 'exp'");
  expect_at("let unused = x + 1 output y: f16[4, 8] = x", 5, "'unused' is used by no output", "use it or remove it");
  expect_at("input unused: f16[4, 8] output y: f16[4, 8] = x", 7, "'unused' is used by no output", "use it or remove it");
}

TEST_CASE("expressions") {
  const auto expect_in = [](std::string_view expression, int column, std::string_view fact, std::string_view remedy,
                            std::string_view more_subject = "") {
    constexpr int before = 22; // characters of "output y: f16[4, 8] = "
    expect_at(fmt::format("output y: f16[4, 8] = {}", expression), before + column, fact, remedy, more_subject);
  };
  expect_in("x +", 4, "the end of the text stands where a value belongs", "write a number, a name, a call or parentheses");
  expect_in("(x + 1", 7, "the end of the text stands where ')' belongs", "grammar");
  expect_in("x + z", 5, "'z' is not declared", "did you mean 'x'?");
  expect_in("x + zebra", 5, "'zebra' is not declared", "use one of x");
  expect_in("x * expp(x)", 5, "there is no operation 'expp'", "did you mean 'exp'?");
  expect_in("quantise(x)", 1, "there is no operation 'quantise'", "use one of cast, ");
  expect_in("input(x)", 1, "there is no operation 'input'", "use one of");
  expect_in("x + 1e99", 5, "'1e99' is no f32 number", "3.4028235e+38");
  expect_in("max(x)", 1, "it was given 1 operands", "give it 2", ": operation 'max'");
  expect_in("max(x, 1, 2)", 1, "it was given 3 operands", "give it 2", ": operation 'max'");
  expect_in("cast(f166, x)", 6, "there is no type 'f166'", "did you mean 'f16'?");
  expect_in("cast(x)", 6, "there is no type 'x'", "use one of");
  expect_in("cast_nonsaturating(f16, x)", 1, "f16 never saturates", "use cast", ": operation 'cast_nonsaturating'");
  expect_in("x + (x > 1)", 8, "the character '>' has no meaning here", "comparisons are functions");
  expect_in("x + gt(x, 1)", 3, "operand 2 is bool", "cast(f32, ...)", ": operation 'add'");
  expect_in("-gt(x, 1)", 1, "operand 1 is bool", "cast(f32, ...)", ": operation 'neg'");
  expect_in("group_max(x, 3)", 1, "the group size is 3", "power of two", ": reduction 'group_max'");
  expect_in("group_max(x)", 12, "')' stands where ',' belongs", "grammar");
  expect_in("group_max(x, 2.5)", 14, "'2.5' stands where a whole number belongs", "write digits");
  expect_in("ungroup(x, 2, 8)", 1, "8 columns make 4 groups of 2", "last dimension is 4", ": operation 'ungroup'");
  expect_in(std::string(300, '(') + "x" + std::string(300, ')'), 201, "expressions nest deeper than 200 levels",
            "name parts of it with let");
  expect_in(std::string(300, '-') + "x", 201, "expressions nest deeper than 200 levels", "name parts of it with let");
  expect_user_error([] { parse_spec("kernel k\ninput a: f16[4, 8]\ninput b: f16[4, 9]\noutput y: f16[4, 8] = a *\n  b"); },
                    "spec text, line 4, column 25: operation 'mul'", "8 against 9", "one of them 1");
}

// Long chains of one operation among them: they are as deep as they are long. KILN_TEXT_SEEDS=N garbles the texts of N seeds, 25 times
// each.
TEST_CASE("no text crashes the parser") {
  Random random(3);
  const std::uint64_t seeds = testing::number_from("KILN_TEXT_SEEDS", 400);
  const std::string_view pieces[] = {
      "(",         ")",        "-",          "x",  "in0", "1e999",  "..", "[",    "]",          "=",
      "let t1 = ", "row_sum(", "cast(f16, ", "\n", "#",   "kernel", "@",  "\xff", "9999999999", "output y: f16[4] = "};
  int parsed = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const std::string good = to_text(random_spec(seed, {.max_cols = 64}));
    for (int mutation = 0; mutation < 25; ++mutation) {
      std::string text = good;
      for (auto edits = random.between(1, 3); edits > 0; --edits) {
        const auto at = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(text.size()) - 1));
        const auto length = static_cast<std::size_t>(random.between(0, 6));
        const auto& piece = pieces[static_cast<std::size_t>(random.between(0, std::ssize(pieces) - 1))];
        text.replace(at, length, random.chance(50) ? piece : std::string_view());
      }
      if (const std::size_t last = text.rfind('='); random.chance(4) && last != std::string::npos) {
        std::string chain;
        for (auto links = random.between(1, 1000); links > 0; --links) chain += random.chance(90) ? " 2 *" : " 1 +";
        text.insert(last + 1, chain);
      }
      try {
        const KernelSpec spec = parse_spec(text);
        CHECK(parse_spec(to_text(spec)) == spec);
        ++parsed;
        validate(spec);
      } catch (const UserError& error) {
        CHECK(!error.subject.empty());
        CHECK(!error.fact.empty());
        CHECK(!error.remedy.empty());
        ++refused;
      }
    }
  }
  CHECK(parsed > 300);
  CHECK(refused > 3000);
}
