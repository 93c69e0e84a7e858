// What is said of a kernel without running it, against the executor: LDS bank passes wherever the static side knows the
// addresses, and the bytes of loads in flight before every s_waitcnt.
#include "gen/catalog/catalog.h"
#include "gen/random_spec.h"
#include "isa_checks/kernel_analysis.h"
#include "runtime/build_kernel.h"
#include "runtime/emulate.h"
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace kiln;

namespace {

struct Compared {
  int banks = 0, waits = 0, exact_waits = 0;
};

void compare_banks(const isa::KernelAnalysis& k, const exec::InstructionProfile& ran, std::size_t index, Compared& compared) {
  const isa::MemoryAccess* access = k.memory.find(index);
  if (!access || !access->banks || !access->lanes_known || ran.counters.executed == 0) return;
  ++compared.banks;
  CHECK_MESSAGE(ran.counters.lds_cycles == access->banks->needed * ran.counters.executed, ran.text);
  CHECK_MESSAGE(ran.counters.lds_ideal == access->banks->ideal * ran.counters.executed, ran.text);
}

void compare_waits(const isa::KernelAnalysis& k, const exec::InstructionProfile& ran, std::size_t index, bool full,
                   Compared& compared) {
  for (const isa::WaitPoint& p : k.waits.points) {
    if (p.instruction != index || p.counter != isa::WaitCounter::vmcnt || ran.counters.executed == 0) continue;
    ++compared.waits;
    CHECK_MESSAGE(ran.counters.in_flight_peak <= p.most_bytes, fmt::format("{:#x} {}", ran.address, ran.text));
    if (!full) continue;
    CHECK_MESSAGE(ran.counters.in_flight >= p.least_bytes * ran.counters.executed,
                  fmt::format("{:#x} {}", ran.address, ran.text));
    if (p.least_bytes != p.most_bytes) continue;
    ++compared.exact_waits;
    CHECK_MESSAGE(ran.counters.in_flight == p.most_bytes * ran.counters.executed, fmt::format("{:#x} {}", ran.address, ran.text));
  }
}

// `full`: all lanes are on wherever the kernel loads.
void compare(const KernelSpec& spec, const Target& to, std::int64_t rows, bool full, Compared& compared) {
  CompileOptions compile;
  compile.environment = process_environment();
  const BuiltKernel built = build_kernel(spec, to, compile);
  const EmulatedRun run = emulate(spec, built.source, built.object, random_inputs(spec, 1, {.dynamic_size = rows}));
  REQUIRE(run.result.completed);
  const isa::CodeObject object = isa::load_code_object(built.object.bytes, spec.name());
  const isa::KernelAnalysis k = isa::analyse(object, object.kernel(built.object.name));
  CHECK(k.waits.complete);
  CHECK(k.memory.addresses_complete);
  const auto& instructions = k.program.instructions;
  for (const exec::InstructionProfile& ran : run.result.instructions) {
    const auto at = std::lower_bound(instructions.begin(), instructions.end(), ran.address,
                                     [](const isa::Instruction& i, std::uint64_t address) { return i.address < address; });
    REQUIRE((at != instructions.end() && at->address == ran.address));
    const auto index = static_cast<std::size_t>(at - instructions.begin());
    compare_banks(k, ran, index, compared);
    compare_waits(k, ran, index, full, compared);
  }
}

} // namespace

// A slice in the usual run: gfx942 with full lanes, gfx950 with ragged rows. Everything when KILN_LINT_ALL is set.
TEST_CASE("banks and waits of the catalogue are what the executor counts") {
  const bool all = std::getenv("KILN_LINT_ALL") != nullptr;
  Compared compared;
  for (const std::string_view arch : known_archs())
    for (const CatalogEntry& entry : catalog()) {
      CAPTURE(entry.name);
      CAPTURE(arch);
      const Target to = target(arch);
      if (entry.is_gemm) {
        if (all || arch == "gfx950")
          compare(entry.build({.dtype = bf16, .fp8 = to.fp8(), .m = 8, .n = 192, .k = 512}), to, 8, false, compared);
        continue;
      }
      if (all || arch == "gfx942") compare(entry.build({.cols = 8192, .dtype = f16, .fp8 = to.fp8()}), to, 1, true, compared);
      if (all || arch == "gfx950") compare(entry.build({.cols = 2501, .dtype = bf16, .fp8 = to.fp8()}), to, 1, false, compared);
    }
  MESSAGE(fmt::format("compared {} LDS instructions and {} waits, of which {} exactly", compared.banks, compared.waits,
                      compared.exact_waits));
  CHECK(compared.banks > 40);
  CHECK(compared.waits > 200);
  CHECK(compared.exact_waits > 40);
}
