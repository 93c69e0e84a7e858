// The gallery is true: every spec text of docs/gallery.md is executed on both architectures, and what it says is refused is refused.
#include "gen/error.h"
#include "gen/families/make_plan.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <fstream>
#include <regex>
#include <sstream>

namespace gallery_numeric {
using namespace kiln;

namespace {

// Texts of the page, in the native fp8 of `target`.
std::vector<std::string> texts(const Target& target) {
  std::ostringstream page;
  page << std::ifstream(KILN_SOURCE_DIR "/docs/gallery.md").rdbuf();
  const std::string text = page.str();
  const std::string native = std::string(to_string(target.fp8()));
  std::vector<std::string> found;
  const std::regex fence("\n```\n(kernel [^`]*)```");
  for (std::sregex_iterator at(text.begin(), text.end(), fence), end; at != end; ++at)
    found.push_back(std::regex_replace(at->str(1), std::regex("e4m3fnuz"), native));
  return found;
}

std::string refusal(const std::string& text) {
  try {
    make_plan(parse_spec(text), target("gfx942"));
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

} // namespace

TEST_CASE("the gallery's specs are within their bounds") {
  for (const std::string_view arch : known_archs()) {
    const std::vector<std::string> all = texts(target(arch));
    CHECK(all.size() == 18);
    for (std::uint64_t point = 0; const std::string& text : all) {
      if (!testing::runs_in_slice(target(arch), ++point)) continue;
      const auto wrong = testing::check_kernel(parse_spec(text), target(arch), point, {.rows = 2});
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    }
  }
}

TEST_CASE("what the gallery calls refused is refused with these words") {
  const std::string product = "kernel k\ndim m[1..16]\ninput x: bf16[m, 4096]\ninput w: bf16[4096, 4096]\n";
  const auto has = [](const std::string& error, const std::string& words) { CHECK_MESSAGE(error.find(words) != std::string::npos, error); };
  has(refusal(product + "output y: bf16[m, 4096] = matmul_nt(cast(bf16, x * 2), w)"), "a product reads its operands from memory");
  has(refusal(product + "output y: i32[m, 4] = row_top(matmul_nt(x, w), 4)"), "a wave ranks the 1024 columns of a product at most");
  has(refusal("kernel k\ndim rows\ninput x: f32[rows, 4096]\noutput y: i32[rows, 8] = row_top(x * 2, 8)"), "give it an input");
  has(refusal("kernel k\ndim m[1..4096]\ninput x: bf16[m, 64]\ninput w: bf16[64, 64]\noutput y: bf16[m, 64] = matmul_nt(x, w)"),
      "larger ones are another kernel's work");
}

} // namespace gallery_numeric
