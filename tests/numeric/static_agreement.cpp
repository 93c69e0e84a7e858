// What is said of a kernel without running it, against the executor: LDS bank passes wherever the static side knows the
// addresses, and before every s_waitcnt the operations outstanding and the bytes of loads in flight.
#include "gen/catalog/catalog.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "isa_checks/analysis/kernel_analysis.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/exec/agreement.h"
#include "tests/numeric/check_kernel.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace static_agreement_tests {
using namespace kiln;

namespace {

struct Compared {
  int banks = 0, waits = 0, exact_waits = 0;
  testing::WaitAgreement outstanding;
};

void compare_waits(const isa::KernelAnalysis& k, const exec::InstructionProfile& ran, std::size_t index, bool full, Compared& compared) {
  for (const isa::WaitPoint& p : k.waits.points) {
    if (p.instruction != index || p.counter != isa::WaitCounter::vmcnt || ran.counters.executed == 0) continue;
    ++compared.waits;
    CHECK_MESSAGE(ran.counters.in_flight_peak <= p.max_bytes, fmt::format("{:#x} {}", ran.address, ran.text));
    if (!full) continue;
    CHECK_MESSAGE(ran.counters.in_flight >= p.min_bytes * ran.counters.executed, fmt::format("{:#x} {}", ran.address, ran.text));
    if (p.min_bytes != p.max_bytes) continue;
    ++compared.exact_waits;
    CHECK_MESSAGE(ran.counters.in_flight == p.max_bytes * ran.counters.executed, fmt::format("{:#x} {}", ran.address, ran.text));
  }
}

// `full`: all lanes are on wherever the kernel loads.
void compare(const KernelSpec& spec, const Target& to, std::int64_t rows, bool full, Compared& compared,
             const std::vector<std::string>& settings = {}) {
  CompileOptions compile = own_process_options(process_environment());
  const BuiltKernel built = build_kernel(spec, to, compile, settings);
  const EmulatedRun run = emulate(spec, built.source, built.object, random_inputs(spec, 1, {.dynamic_size = rows}));
  REQUIRE(run.result.completed);
  const isa::CodeObject object = isa::load_code_object(built.object.bytes, spec.name());
  const isa::KernelAnalysis k = isa::analyse(object, object.kernel(built.object.name));
  CHECK(k.waits.complete);
  CHECK(k.memory.addresses_complete);
  CHECK_FALSE(k.waits.approximate);
  const testing::WaitAgreement outstanding = testing::compare_waits(k.program, k.waits, run.result);
  for (const std::string& wrong : outstanding.wrong) FAIL_CHECK(wrong);
  CHECK(outstanding.exact > 0);
  compared.outstanding.add(outstanding);
  const testing::BankAgreement banks = testing::compare_banks(k, run.result);
  for (const std::string& wrong : banks.wrong) FAIL_CHECK(wrong);
  compared.banks += banks.compared;
  const auto& instructions = k.program.instructions;
  for (const exec::InstructionProfile& ran : run.result.instructions) {
    const auto at = std::lower_bound(instructions.begin(), instructions.end(), ran.address,
                                     [](const isa::Instruction& i, std::uint64_t address) { return i.address < address; });
    REQUIRE((at != instructions.end() && at->address == ran.address));
    const auto index = static_cast<std::size_t>(at - instructions.begin());
    compare_waits(k, ran, index, full, compared);
  }
}

KernelSpec product(DType a_type, DType b_type, std::int64_t most, std::int64_t n, std::int64_t k) {
  const Expr a = input("a", a_type, {dynamic("m", 1, most), k}), b = input("b", b_type, {n, k});
  return KernelSpec("gemm").output("c", f32, matmul_nt(a, b));
}

void report(const Compared& compared) {
  MESSAGE(fmt::format("compared {} LDS instructions; bytes at {} waits, of which {} exactly; operations at {} waits, of which {} exactly",
                      compared.banks, compared.waits, compared.exact_waits, compared.outstanding.compared, compared.outstanding.exact));
}

} // namespace

// A slice in the usual run: gfx942 with full lanes, gfx950 with ragged rows. Everything when KILN_LINT_ALL is set.
TEST_CASE("banks and waits of the catalogue are what the executor counts") {
  const bool all = testing::compares_everything();
  Compared compared;
  for (const std::string_view arch : known_archs())
    for (const CatalogEntry& entry : catalog()) {
      CAPTURE(entry.name);
      CAPTURE(arch);
      const Target to = target(arch);
      if (entry.is.attention || entry.is.experts) continue; // tests/attention/attention_code.cpp, tests/decode
      if (entry.is.gemm) {
        if (all || arch == "gfx950")
          compare(entry.build({.dtype = bf16, .fp8 = to.fp8(), .m = 8, .n = 192, .k = 512}), to, 8, false, compared);
        continue;
      }
      if (all || arch == "gfx942")
        compare(entry.build({.cols = entry.is.ranked ? 1024 : 8192, .dtype = f16, .fp8 = to.fp8()}), to, 1, true, compared);
      if (why_not(entry, {.cols = 2501})) continue;
      if (all || arch == "gfx950") compare(entry.build({.cols = 2501, .dtype = bf16, .fp8 = to.fp8()}), to, 1, false, compared);
    }
  report(compared);
  CHECK(compared.banks > 30);
  CHECK(compared.waits > 200);
  CHECK(compared.exact_waits > 40);
  CHECK(compared.outstanding.compared > 300);
  CHECK(compared.outstanding.exact > 200);
}

// The kernels of matrix products: every method, tiles that workgroups share, sums that meet in order or by atomics.
TEST_CASE("banks and waits of every method of a product are what the executor counts") {
  const bool all = testing::compares_everything();
  Compared compared;
  for (const std::string_view arch : known_archs()) {
    CAPTURE(arch);
    const Target to = target(arch);
    const DType fp8 = to.fp8();
    compare(product(fp8, fp8, 16, 96, 1024), to, 13, false, compared, {"workgroups=5", "tile_n=32"});
    compare(product(fp8, fp8, 8, 100, 400), to, 5, false, compared, {"method=sparse", "loads=1"});
    compare(product(f16, f16, 4, 80, 1040), to, 3, false, compared, {"method=dot", "tile_n=16", "stages=2", "loads=1"});
    compare(product(fp8, fp8, 16, 80, 1040), to, 13, false, compared, {"method=producers"});
    compare(product(fp8, fp8, 8, 96, 1552), to, 8, false, compared, {"workgroups=5", "tile_n=16", "stages=3", "atomics=1"});
    if (!all) continue;
    const bool direct = to.has_wide_lds_dma(); // slots hold more then
    compare(product(bf16, fp8, 16, 96, 1040), to, 9, false, compared);
    compare(product(i8, i8, 64, 77, 272), to, 50, false, compared);
    compare(product(fp8, fp8, 8, 96, 1552), to, 8, false, compared,
            {"method=producers", "workgroups=5", "tile_n=16", "stages=2", direct ? "loads=2" : "loads=4", "atomics=1"});
    compare(product(fp8, fp8, 8, 96, 1552), to, 8, false, compared,
            {"method=producers", "workgroups=1", "tile_n=16", "loads=2", "stages=1", "direct=0", "slots=4"});
  }
  report(compared);
  CHECK(compared.outstanding.compared > 100);
  CHECK(compared.outstanding.exact > 40);
}

} // namespace static_agreement_tests
