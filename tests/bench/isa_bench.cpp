// Executed instructions of Kiln's kernels beside those of public kernels: [16, 16384] f16 in, fp8 out; and what a decode step of 64
// tokens does by index, 8 heads of 128 f16 in a cache of f16 or fp8. These are facts
// about code, not times. Kiln's are counted by executing the code object on the CPU model (prologue, reductions and exit
// included), whose result is compared with the reference; the peers' figures were counted the same way, by others, once (compilers:
// clang 22 and Triton 3.6, on gfx942 and, in the second figure, on gfx950). Exit code 1: a bound is missed.
#include "gen/catalog/catalog.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_spec.h"
#include "runtime/build/build_kernel.h"
#include "runtime/build/inspect.h"
#include "runtime/cli/public_kernels.h"
#include "runtime/launch/emulated/emulate.h"
#include "runtime/table.h"
#include <fmt/format.h>

using namespace kiln;

namespace {

struct Case {
  const char* kernel;
  double bound; // of Kiln: gfx942, and gfx950 unless that has its own
  std::int64_t rows = 16, cols = 16384;
  std::int64_t row_outputs = cols; // elements that are written for each row
  bool fp8_cache = false;
  DType mx = e2m1; // of mx entries
  double on_gfx950 = bound;
};
constexpr Case cases[] = {{"add_rmsnorm_quant", 60},
                          {"swiglu_quant", 80},
                          {"rope", 125, 64, 128, 8 * 128},
                          {"rope_kv_write", 80, 64, 128, 2 * 8 * 128},
                          {"rope_kv_write", 110, 64, 128, 2 * 8 * 128, true},
                          {"embedding", 40, 64, 4096},
                          {.kernel = "silu_mul_mx_quant", .bound = 260, .on_gfx950 = 125},
                          {.kernel = "silu_mul_mx_quant", .bound = 235, .mx = e4m3fn, .on_gfx950 = 135},
                          {.kernel = "add_rmsnorm_mx_quant", .bound = 215, .on_gfx950 = 85}};

struct Counted {
  double all = 0, valu = 0, salu = 0, vmem = 0, lds = 0, waits = 0, nops = 0; // per 512 outputs
  BuiltKernel built;
};

std::uint64_t sum(const exec::ExecResult& r, std::initializer_list<exec::InstClass> classes) {
  std::uint64_t total = 0;
  for (const exec::InstClass c : classes) total += r.waves.executed(c);
  return total;
}

Counted count(const Case& one, const Target& to) {
  CompileOptions options;
  options.environment = process_environment();
  const KernelSpec spec =
      catalog_spec(one.kernel, {.cols = one.cols, .dtype = f16, .fp8 = to.fp8(), .mx = one.mx, .fp8_cache = one.fp8_cache});
  BuiltKernel built = build_kernel(spec, to, options);
  const Inputs inputs = random_inputs(spec, 1, {.dynamic_size = one.rows});
  const EmulatedRun run = emulate(spec, built.source, built.object, inputs, {.threads = 0});
  if (!run.result.completed || !run.result.defects.empty())
    throw Error(fmt::format("{} on {}: {}", one.kernel, to.arch(),
                            run.result.defects.empty() ? "did not complete" : exec::to_text(run.result.defects.front())));
  if (const auto wrong = find_mismatch(run.outputs, evaluate_bounds(spec, inputs, bounds_options(built.schedule))))
    throw Error(fmt::format("{} on {}: {}", one.kernel, to.arch(), to_text(*wrong)));
  const double share = static_cast<double>(one.rows * one.row_outputs) / 512;
  using enum exec::InstClass;
  const auto per = [&](std::initializer_list<exec::InstClass> classes) { return static_cast<double>(sum(run.result, classes)) / share; };
  Counted counted{.built = std::move(built)};
  counted.all = static_cast<double>(run.result.waves.executed()) / share;
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

int main() try {
  bool all_met = true;
  for (const Case& one : cases) {
    fmt::print("\n{} [{}, {}]{}, executed wave instructions per 512 outputs\n", one.kernel, one.rows, one.cols,
               one.fp8_cache    ? ", fp8 cache"
               : one.mx != e2m1 ? ", MXFP8"
                                : "");
    Table table{.header = {"kernel", "gfx942", "gfx950", "Kiln / it"}, .rows = {}, .right = {false, true, true, true}};
    const Counted a = count(one, target("gfx942")), b = count(one, target("gfx950"));
    const std::string what = one.kernel + std::string(one.fp8_cache ? ", fp8 cache" : one.mx != e2m1 ? ", MXFP8" : "");
    for (const cli::PublicKernel& p : cli::public_kernels(what))
      table.rows.push_back({std::string(p.name), or_none(p.gfx942, fmt::format("{}", p.gfx942)),
                            or_none(p.gfx950, fmt::format("{}", p.gfx950)),
                            or_none(p.gfx942, fmt::format("{:.2f}", a.all / p.gfx942)) + " / " +
                                or_none(p.gfx950, fmt::format("{:.2f}", b.all / p.gfx950))});
    table.rows.push_back({"Kiln, default schedule", fmt::format("{:.1f}", a.all), fmt::format("{:.1f}", b.all), ""});
    fmt::print("{}", to_text(table));
    const bool met = a.all <= one.bound && b.all <= one.on_gfx950;
    all_met &= met;
    fmt::print("bounds {} and {}: {}\n", one.bound, one.on_gfx950, met ? "met" : "MISSED");
    for (const Counted* c : {&a, &b}) {
      const isa::KernelFacts& f = c->built.facts;
      fmt::print("  {}: {}; {} VGPRs, {} B LDS, {} B scratch, {:g} waves/SIMD; global loads {}, stores {}, LDS {}\n", f.arch, mix(*c),
                 f.resources.vgprs, f.resources.lds_bytes, f.resources.scratch_bytes, f.occupancy.waves_per_simd,
                 isa::widths_text(global_widths(f, isa::MemoryDirection::load)),
                 isa::widths_text(global_widths(f, isa::MemoryDirection::store)), isa::widths_text(lds_widths(f)));
    }
  }
  return all_met ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
