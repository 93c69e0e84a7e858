// docs/operations.md has every pointwise operation as gen/spec/ops.def has it. KILN_UPDATE_GOLDEN=1 writes the page.
#include "gen/spec/op.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <string>

namespace operations_page {
using namespace kiln;

namespace {

// A bar would end a cell of the table.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string bound(const Accuracy& a) {
  std::string text;
  const auto add = [&](double value, const char* unit) {
    if (value != 0) text += fmt::format("{}{:.3g}{}", text.empty() ? "" : " + ", value, unit);
  };
  add(a.ulp, " ulp");
  add(a.ulp_per_x, " \\|x\\| ulp");
  add(a.abs_error, "");
  add(a.abs_per_x, " \\|x\\|");
  return text.empty() ? "exact" : text;
}

std::string page() {
  std::string text =
      "# Pointwise operations\n\nGenerated from [gen/spec/ops.def](../gen/spec/ops.def), which has the source of each bound; a test "
      "compares. *bound* is that of the\ndevice's result against the exact one: ulp is the distance of f32 numbers there, x the first "
      "operand. *slots* are vector instruction\nslots an element.\n\n| operation | operands | bound | slots | why, and the edges "
      "|\n|---|---|---|---|---|\n";
  for (const Op op : pointwise_ops()) {
    const OpInfo& i = info(op);
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", i.name, i.arity, bound(i.accuracy), i.cost, cell(i.note));
  }
  text += "\nOn i32, and on whole numbers beside one; all are exact:\n\n| operation | operands | slots | result |\n|---|---|---|---|\n";
  for (const Op op : integer_ops())
    text += fmt::format("| `{}` | {} | {} | {} |\n", info(op).name, info(op).arity, info(op).cost, cell(info(op).note));
  return text;
}

} // namespace

TEST_CASE("the page of operations says what ops.def says") {
  const std::string path = KILN_SOURCE_DIR "/docs/operations.md";
  if (std::getenv("KILN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << page();
  std::ostringstream found;
  found << std::ifstream(path).rdbuf();
  CHECK(found.str() == page());
}

} // namespace operations_page
