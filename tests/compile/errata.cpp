// A kernel whose code would have a form that gfx950 executes wrongly is compiled to something else; gfx942 keeps the packed form.
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include "runtime/build/build_kernel.h"
#include "runtime/build/inspect.h"
#include <algorithm>
#include <doctest/doctest.h>

namespace errata_compile {
using namespace kiln;

namespace {

// Each number of c multiplies two columns: the second pair takes the high half of a register pair twice.
constexpr const char* text = "kernel repeat_fma\ndim rows\ninput x: f32[rows, 512]\ninput z: f32[rows, 512]\ninput c: f32[rows, 256]\n"
                             "output y: f32[rows, 512] = x * repeat(c, 2) + z\n";

bool has(const BuiltKernel& kernel, const char* mnemonic) {
  return std::ranges::any_of(program_of(kernel.object).instructions,
                             [&](const isa::Instruction& i) { return i.mnemonic.starts_with(mnemonic); });
}

} // namespace

TEST_CASE("ERR001: no packed f32 where one would have the faulty form, and a note in the log") {
  const BuiltKernel faulty = build_kernel(parse_spec(text), target("gfx950"));
  CHECK(faulty.report.met());
  CHECK(faulty.rejected.empty());
  CHECK_FALSE(has(faulty, "v_pk_fma_f32"));
  CHECK(faulty.object.log.find("ERR001") != std::string::npos);
  const BuiltKernel other = build_kernel(parse_spec(text), target("gfx942"));
  CHECK(has(other, "v_pk_fma_f32"));
  CHECK(other.object.log.find("ERR001") == std::string::npos);
}

} // namespace errata_compile
