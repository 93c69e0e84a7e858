// Executed instructions of Kiln's kernels beside those of public kernels: row kernels of [16, 16384], what a decode step does by index,
// the choice of experts, and products with MXFP4 weights. These are facts about code, not times. Kiln's are counted by executing the code
// object on the CPU model (prologue, reductions and exit included), whose result is compared with the reference; the peers' figures were
// counted the same way, once: docs/measurements.md has their compilers and shapes. Exit code 1: a bound is missed.
#include "gen/catalog/catalog.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_inputs.h"
#include "runtime/build/build_kernel.h"
#include "runtime/build/inspect.h"
#include "runtime/launch/emulated/emulate.h"
#include "runtime/table.h"
#include "tests/bench/arguments.h"
#include "tests/bench/public_kernels.h"
#include <fmt/format.h>

using namespace kiln;

namespace {

enum class Unit : std::uint8_t { outputs, token, launch };

struct Case {
  const char* name; // of the kernel, and what is set apart from its default; public_kernels has it by that
  CatalogOptions options;
  std::int64_t rows;
  Unit unit;
  double bound[2];              // of Kiln: gfx942, gfx950
  std::int64_t row_outputs = 0; // Unit::outputs: elements that are written for each row
};

// 0.6 of the best public kernel, where a bound is held against one: docs/measurements.md says which. Else what was counted, rounded up.
// Schedules are chosen by predicted time, so norms and the router of 16 tokens execute more than the least that they could.
std::vector<Case> cases() {
  constexpr std::int64_t wide = 16384, head = 128, heads = 8 * head;
  const CatalogOptions row{.cols = wide}, by_head{.cols = head}, mxfp8{.cols = wide, .mx = e4m3fn};
  const CatalogOptions w_mxfp4{.m = 8, .n = 4096, .k = 4096};
  const CatalogOptions grouped{.top = 8, .m = 8, .n = 1024, .k = 2048, .experts = 64, .weights = e2m1};
  const CatalogOptions router{.top = 8, .m = 16, .n = 256, .k = 7168};
  return {{"add_rmsnorm_quant", row, 16, Unit::outputs, {80, 80}, wide},
          {"swiglu_quant", row, 16, Unit::outputs, {95, 95}, wide},
          {"rope", by_head, 64, Unit::outputs, {125, 125}, heads},
          {"rope_kv_write", by_head, 64, Unit::outputs, {80, 80}, 2 * heads},
          {"rope_kv_write, fp8 cache", {.cols = head, .fp8_cache = true}, 64, Unit::outputs, {110, 110}, 2 * heads},
          {"embedding", {.cols = 4096}, 64, Unit::outputs, {45, 45}, 4096},
          {"silu_mul_mx_quant", row, 16, Unit::outputs, {205, 0.6 * 216}, wide},
          {"silu_mul_mx_quant, MXFP8", mxfp8, 16, Unit::outputs, {0.6 * 228, 0.6 * 228}, wide},
          {"add_rmsnorm_mx_quant", row, 16, Unit::outputs, {185, 95}, wide},
          {"topk_softmax", {.cols = 256}, 16, Unit::token, {0.6 * 1119, 0.6 * 1119}},
          {"topk_softmax, sigmoid", {.cols = 256, .sigmoid = true}, 16, Unit::token, {0.6 * 604, 0.6 * 604}},
          {"router, m = 1", router, 1, Unit::launch, {0.6 * 364191, 0.6 * 324447}},
          {"router, m = 4", router, 4, Unit::launch, {0.6 * 771132, 0.6 * 683388}},
          {"router, m = 16", router, 16, Unit::launch, {125000, 125000}},
          {"gemm_w_mxfp4, m = 1", {.m = 1, .n = 4096, .k = 4096}, 1, Unit::launch, {0.6 * 2211840, 0.6 * 2220032}},
          {"gemm_w_mxfp4, m = 8", w_mxfp4, 8, Unit::launch, {0.6 * 3600384, 0.6 * 3594240}},
          {"grouped_gemm", grouped, 8, Unit::launch, {0.6 * 13500416, 0.6 * 13467648}}};
}

// What a count is divided by, and its name.
double share(const Case& one) {
  return one.unit == Unit::outputs ? static_cast<double>(one.rows * one.row_outputs) / 512
         : one.unit == Unit::token ? static_cast<double>(one.rows)
                                   : 1;
}
std::string shape_text(const Case& one) {
  const CatalogOptions& o = one.options;
  if (one.unit == Unit::outputs) return fmt::format("[{}, {}], executed wave instructions per 512 outputs", one.rows, o.cols);
  if (one.unit == Unit::token) return fmt::format("[{}, {}], {} chosen, executed wave instructions per row", one.rows, o.cols, o.top);
  const std::string chosen = o.weights == e2m1 ? fmt::format(", {} of {} experts", o.top, o.experts) : "";
  return fmt::format("m = {}, n = {}, k = {}{}, executed wave instructions of the launch", one.rows, o.n, o.k, chosen);
}

struct Counted {
  double all = 0, valu = 0, salu = 0, vmem = 0, lds = 0, waits = 0, nops = 0; // per unit
  BuiltKernel built;
};

std::uint64_t sum(const exec::ExecResult& r, std::initializer_list<exec::InstClass> classes) {
  std::uint64_t total = 0;
  for (const exec::InstClass c : classes) total += r.waves.executed(c);
  return total;
}

Counted count(const Case& one, const Target& to) {
  CompileOptions options = own_process_options(process_environment());
  const std::string_view name = one.name;
  CatalogOptions of_target = one.options;
  of_target.fp8 = to.fp8();
  const KernelSpec spec = catalog_spec(name.substr(0, name.find(',')), of_target);
  BuiltKernel built = build_kernel(spec, to, options);
  const Inputs inputs = random_inputs(spec, 1, {.dynamic_size = one.rows});
  const EmulatedRun run = emulate(spec, built.source, built.object, inputs, {.threads = 0});
  if (!run.result.completed || !run.result.defects.empty())
    throw Error(fmt::format("{} on {}: {}", one.name, to.arch(),
                            run.result.defects.empty() ? "did not complete" : exec::to_text(run.result.defects.front())));
  if (const auto wrong = find_mismatch(run.outputs, evaluate_bounds(spec, inputs, bounds_options(built.schedule))))
    throw Error(fmt::format("{} on {}: {}", one.name, to.arch(), to_text(*wrong)));
  const double units = share(one);
  using enum exec::InstClass;
  const auto per = [&](std::initializer_list<exec::InstClass> classes) { return static_cast<double>(sum(run.result, classes)) / units; };
  Counted counted{.built = std::move(built)};
  counted.all = static_cast<double>(run.result.waves.executed()) / units;
  counted.valu = per({valu, trans});
  counted.salu = per({salu, branch});
  counted.vmem = per({vmem});
  counted.lds = per({exec::InstClass::lds});
  counted.waits = per({wait});
  counted.nops = per({nop});
  return counted;
}

std::string mix(const Counted& c) {
  return fmt::format("VALU {:.1f}, SALU {:.1f}, VMEM {:.1f}, LDS {:.2f}, waits {:.1f}, s_nop {:.1f}", c.valu, c.salu, c.vmem, c.lds,
                     c.waits, c.nops);
}

// What a public kernel has, unless it has none for the target.
std::string or_none(int of_public, std::string text) { return of_public == 0 ? "none" : std::move(text); }

} // namespace

int main(int argc, char** argv) try {
  const bool short_form = take_short_form(argc, argv);
  bool all_met = true;
  for (const Case& one : cases()) {
    if (short_form && one.unit != Unit::token) continue;
    fmt::print("\n{}: {}\n", one.name, shape_text(one));
    Table table{.header = {"kernel", "gfx942", "gfx950", "Kiln / it"}, .rows = {}, .right = {false, true, true, true}};
    const Counted a = count(one, target("gfx942")), b = count(one, target("gfx950"));
    for (const PublicKernel& p : public_kernels(one.name))
      table.rows.push_back({std::string(p.name), or_none(p.gfx942, fmt::format("{}", p.gfx942)),
                            or_none(p.gfx950, fmt::format("{}", p.gfx950)),
                            or_none(p.gfx942, fmt::format("{:.2f}", a.all / p.gfx942)) + " / " +
                                or_none(p.gfx950, fmt::format("{:.2f}", b.all / p.gfx950))});
    table.rows.push_back({"Kiln, default schedule", fmt::format("{:.1f}", a.all), fmt::format("{:.1f}", b.all), ""});
    fmt::print("{}", to_text(table));
    const bool met = a.all <= one.bound[0] && b.all <= one.bound[1];
    all_met &= met;
    fmt::print("bounds {:.1f} and {:.1f}: {}\n", one.bound[0], one.bound[1], met ? "met" : "MISSED");
    for (const Counted* c : {&a, &b}) {
      using enum isa::MemorySpace;
      using enum isa::MemoryDirection;
      const isa::KernelFacts& f = c->built.facts;
      fmt::print("  {}: {}; {} VGPRs, {} B LDS, {} B scratch, {:g} waves/SIMD; global loads {}, stores {}, LDS {}\n", f.arch, mix(*c),
                 f.resources.vgprs, f.resources.lds_bytes, f.resources.scratch_bytes, f.occupancy.waves_per_simd,
                 isa::widths_text(f.widths({global, flat, buffer}, {load})), isa::widths_text(f.widths({global, flat, buffer}, {store})),
                 isa::widths_text(f.widths({isa::MemorySpace::lds}, {load, store, atomic})));
    }
  }
  return all_met ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
