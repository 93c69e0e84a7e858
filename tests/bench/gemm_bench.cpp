// Skinny GEMMs at the shapes that public kernels were measured at: executed instructions, bytes in flight, balance over CUs,
// beside those kernels' figures. These are facts about code, not times. Instructions are counted by executing the code object
// on the CPU model, the whole kernel; the peers' figures were counted the same way, by others, once. Exit code 1: a bound is
// missed. --check also compares the results with the reference, which takes minutes; --methods only compares the methods;
// --scales only reads the loops of products with scales of groups.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_inputs.h"
#include "isa_checks/analysis/waits/waits.h"
#include "runtime/build/build_kernel.h"
#include "runtime/build/inspect.h"
#include "runtime/launch/emulated/emulate.h"
#include "runtime/table.h"
#include "tests/bench/arguments.h"
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <set>
#include <span>

using namespace kiln;

namespace {

struct Shape2 {
  std::int64_t n, k;
  int hugging_face_m8[2], vllm_m1; // executed instructions per 16 KiB of weights: gfx942, gfx950; gfx942
  int hugging_face_busy;           // of 304 CUs
};
constexpr Shape2 shapes[] = {
    {2304, 16384, {940, 872}, 327, 288}, {13312, 16384, {549, 540}, 247, 278}, {16384, 6656, {530, 527}, 361, 256}};

// Loads of whole lines exchange half of what they bring between lanes: twice the instructions, and less time by prediction (docs/gemm.md).
constexpr double max_instructions = 420, max_in_loop = 310, min_kib = 48, min_peak_kib = 64;

struct Figures {
  double instructions = 0, in_loop = 0; // per 16 KiB of weights; 0: no loop, as all loads are issued at the start
  double min_kib = 0, peak_kib = 0;     // weights in flight per CU: in the loop, and when it is full
  double narrow = 0;                    // loads of less than 16 bytes in the loop, a load of weights
};

bool is_narrow_load(const isa::Instruction& i) {
  return i.mnemonic.starts_with("global_load") && !i.mnemonic.starts_with("global_load_dwordx4");
}

bool multiplies(const isa::Instruction& i) {
  return i.mnemonic.starts_with("v_mfma") || i.mnemonic.starts_with("v_smfmac") || i.mnemonic.starts_with("v_dot");
}

// The steady loop: innermost, loads and multiplies.
void read_loop(const BuiltKernel& built, int workgroups_a_cu, Figures& figures) {
  const GemmConfig& c = std::get<GemmConfig>(built.schedule.config);
  const isa::Program program = program_of(built.object);
  const isa::WaitAnalysis waits = isa::analyse_waits(program);
  const double waves = c.waves * workgroups_a_cu;
  figures.peak_kib = figures.min_kib = c.stages * c.b_loads() * waves;
  for (const isa::LoopFlight& flight : waits.loops) {
    if (flight.loads == 0) continue;
    if (std::ranges::any_of(program.loops, [&](const isa::Loop& l) { return l.parent == flight.loop; })) continue;
    std::size_t instructions = 0;
    bool matrix = false;
    for (const std::size_t b : program.loops[flight.loop].blocks)
      for (std::size_t i = program.blocks[b].begin; i < program.blocks[b].end; ++i, ++instructions)
        matrix |= multiplies(program.instructions[i]);
    if (!matrix) continue;
    const double share = c.stages * c.b_loads() * 1024.0 / flight.bytes_a_trip; // of the loads' bytes that are weights: a trip is a turn
    figures.in_loop = static_cast<double>(instructions) / (flight.bytes_a_trip * share / 16384);
    figures.narrow = 0;
    for (const std::size_t b : program.loops[flight.loop].blocks)
      for (std::size_t i = program.blocks[b].begin; i < program.blocks[b].end; ++i)
        figures.narrow += is_narrow_load(program.instructions[i]);
    figures.narrow /= c.stages * c.b_loads();
    figures.min_kib = flight.min_bytes * share / 1024 * waves;
    figures.peak_kib = flight.max_bytes * share / 1024 * waves;
  }
}

Figures measure(const KernelSpec& spec, const BuiltKernel& built, std::int64_t m, const Target& to, bool check) {
  const Inputs inputs = random_inputs(spec, 1, {.dynamic_size = m});
  const EmulatedRun run = emulate(spec, built.source, built.object, inputs, {.threads = 0, .measure = false});
  if (!run.result.completed || !run.result.defects.empty())
    throw Error(
        fmt::format("{}: {}", to_text(spec), run.result.defects.empty() ? "did not complete" : exec::to_text(run.result.defects.front())));
  if (check)
    if (const auto wrong = find_mismatch(run.outputs, evaluate_bounds(spec, inputs, bounds_options(built.schedule))))
      throw Error(to_text(*wrong));
  const GemmConfig& c = std::get<GemmConfig>(built.schedule.config);
  Figures figures;
  figures.instructions = static_cast<double>(run.result.waves.executed()) / (static_cast<double>(c.n) * c.row_bytes() / 16384);
  read_loop(built, (c.workgroups + to.compute_units() - 1) / to.compute_units(), figures);
  return figures;
}

// What each method is built with, beside the schedule that is chosen for method matrix: as much in flight.
struct Method {
  GemmMethod method;
  std::vector<std::string> settings;
  std::int64_t max_rows;
};

// Executed instructions by class, without polls of a flag after the first one: those depend on time.
std::map<exec::InstClass, double> without_polls(const BuiltKernel& built, const EmulatedRun& run) {
  const isa::Program program = program_of(built.object);
  std::set<std::size_t> polling; // loops
  const auto instructions = [&](const isa::Block& block) {
    return std::span(program.instructions).subspan(block.begin, block.end - block.begin);
  };
  for (const isa::Block& block : program.blocks)
    for (const isa::Instruction& i : instructions(block))
      if (i.mnemonic == "s_sleep") polling.insert(block.loop);
  std::set<std::uint64_t> polls; // addresses
  for (const isa::Block& block : program.blocks)
    if (block.loop != isa::nothing && polling.contains(block.loop))
      for (const isa::Instruction& i : instructions(block)) polls.insert(i.address);
  std::map<exec::InstClass, double> counts;
  for (const exec::InstructionProfile& p : run.result.instructions)
    if (!polls.contains(p.address)) counts[p.cls] += static_cast<double>(p.counters.executed);
  return counts;
}

// The methods beside one another at one of the shapes. No bounds: which is best is for hardware to say.
void compare_methods(const CompileOptions& options) {
  const Shape2& shape = shapes[0];
  const Method methods[] = {{GemmMethod::matrix, {}, 64},
                            {GemmMethod::sparse, {"method=sparse"}, 8},
                            {GemmMethod::dot, {"method=dot", "tile_n=16", "loads=1", "stages=5"}, 4},
                            {GemmMethod::producers, {"method=producers"}, 64}};
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    fmt::print("\nmethods on {}: weights {} x {} fp8, executed instructions per 16 KiB of them, polling not counted\n", arch, shape.n,
               shape.k);
    Table table{.header = {"m", "method", "all", "matrix", "VALU", "LDS", "KiB of weights in flight", "VGPRs", "LDS B", "schedule"},
                .rows = {},
                .right = {true, false, true, true, true, true, true, true, true, false}};
    for (const std::int64_t m : {1, 8})
      for (const Method& method : methods) {
        if (m > method.max_rows) continue;
        const KernelSpec spec = catalog_spec("gemm", {.dtype = to.fp8(), .fp8 = to.fp8(), .m = m, .n = shape.n, .k = shape.k});
        const BuiltKernel built = build_kernel(spec, to, options, method.settings);
        const EmulatedRun run = emulate(spec, built.source, built.object, random_inputs(spec, 1, {.dynamic_size = m}), {.threads = 0});
        if (!run.result.completed || !run.result.defects.empty())
          throw Error(fmt::format("{}: it did not run cleanly", to_text(built.schedule)));
        const GemmConfig& c = std::get<GemmConfig>(built.schedule.config);
        const double units = static_cast<double>(c.n) * c.row_bytes() / 16384;
        std::map<exec::InstClass, double> counts = without_polls(built, run);
        double all = 0;
        for (const auto& [cls, executed] : counts) all += executed;
        const auto count = [&](exec::InstClass cls) { return fmt::format("{:.0f}", counts[cls] / units); };
        const int loading = c.has_producers() ? c.b_producers : c.waves;
        table.rows.push_back(
            {std::to_string(m), std::string(to_string(c.method)), fmt::format("{:.0f}", all / units), count(exec::InstClass::matrix),
             count(exec::InstClass::valu), count(exec::InstClass::lds), std::to_string(c.stages * c.b_loads() * loading),
             std::to_string(built.facts.resources.vgprs), std::to_string(built.facts.resources.lds_bytes),
             fmt::format("tile_n={} waves={} loads={} stages={} workgroups={}", c.tile_n, c.waves, c.loads, c.stages, c.workgroups)});
      }
    fmt::print("{}", to_text(table));
  }
}

// Products with scales of groups of k, without execution. No bounds: what they cost beside plain ones.
void print_scaled(const CompileOptions& options) {
  struct Entry {
    std::string_view name;
    DType type;
    std::int64_t group;
  };
  const Entry entries[] = {{"gemm_w4a16", f16, 128},  {"gemm_w4a16", f16, 64},    {"gemm_w4a16", f16, 32},        {"gemm_w4a16", bf16, 128},
                           {"gemm_w_mxfp4", f16, 32}, {"gemm_w_mxfp4", bf16, 32}, {"gemm_block_scaled", f16, 128}};
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    fmt::print("\nscales of groups on {}, k = 4096: instructions in the loop per 16 KiB of weights; loads of less than 16 bytes a "
               "load of weights\n",
               arch);
    Table table{.header = {"entry", "group", "n", "m", "in the loop", "KiB in flight a CU", "narrow", "busy CUs", "VGPRs", "schedule"},
                .rows = {},
                .right = {false, true, true, true, true, true, true, true, true, false}};
    for (const Entry& entry : entries)
      for (const std::int64_t n : {4096, 14336})
        for (const std::int64_t m : {1, 8, 16, 64}) {
          const KernelSpec spec =
              catalog_spec(entry.name, {.dtype = entry.type, .fp8 = to.fp8(), .group = entry.group, .m = m, .n = n, .k = 4096});
          const BuiltKernel built = build_kernel(spec, to, options);
          const GemmConfig& c = std::get<GemmConfig>(built.schedule.config);
          Figures f;
          read_loop(built, 1, f);
          table.rows.push_back({fmt::format("{} {}", entry.name, to_string(entry.type)), std::to_string(entry.group), std::to_string(n),
                                std::to_string(m), fmt::format("{:.0f}", f.in_loop), fmt::format("{:.0f} to {:.0f}", f.min_kib, f.peak_kib),
                                fmt::format("{:.2f}", f.narrow), fmt::format("{:.1f} %", 100 * gemm_balance(c, to)),
                                std::to_string(built.facts.resources.vgprs),
                                fmt::format("tile_n={} waves={} loads={} stages={}", c.tile_n, c.waves, c.loads, c.stages)});
        }
    fmt::print("{}", to_text(table));
    std::fflush(stdout);
  }
}

} // namespace

int main(int argc, char** argv) try {
  const bool short_form = take_short_form(argc, argv);
  const std::string_view argument = argc > 1 ? argv[1] : "";
  const bool check = argument == "--check", only_methods = argument == "--methods", only_scales = argument == "--scales";
  if (argc > 2 || (argc > 1 && !check && !only_methods && !only_scales))
    throw Error("arguments: write --check, --methods, --scales, or nothing");
  bool all_met = true;
  CompileOptions options = own_process_options(process_environment());
  if (only_methods) return compare_methods(options), 0;
  if (only_scales) return print_scaled(options), 0;
  for (const Shape2& shape : std::span(shapes).first(short_form ? 1 : std::size(shapes)))
    for (const std::string_view arch : known_archs().first(short_form ? 1 : known_archs().size())) {
      const Target to = target(arch);
      const bool first = arch == known_archs().front();
      fmt::print("\n{}: weights {} x {} fp8. Executed instructions per 16 KiB of them: Hugging Face {} (m=8), vLLM {} (m=1, "
                 "gfx942); busy "
                 "CUs of Hugging Face: {} of 304\n",
                 arch, shape.n, shape.k, shape.hugging_face_m8[first ? 0 : 1], shape.vllm_m1, shape.hugging_face_busy);
      Table table{.header = {"m", "all", "in the loop", "KiB in flight a CU", "busy CUs", "VGPRs", "LDS B", "spills", "schedule"},
                  .rows = {},
                  .right = {true, true, true, true, true, true, true, true, false}};
      for (const std::int64_t m : {1, 8, 16, 32}) {
        if (short_form && m > 1) continue;
        const KernelSpec spec = catalog_spec("gemm", {.dtype = to.fp8(), .fp8 = to.fp8(), .m = m, .n = shape.n, .k = shape.k});
        const BuiltKernel built = build_kernel(spec, to, options);
        const Figures f = measure(spec, built, m, to, check);
        const GemmConfig& c = std::get<GemmConfig>(built.schedule.config);
        const double busy = gemm_balance(c, to);
        const bool counted = m <= 8; // the bounds on instructions are for these
        const bool met = (!counted || (f.instructions <= max_instructions && f.in_loop <= max_in_loop)) && f.min_kib >= min_kib &&
                         f.peak_kib >= min_peak_kib && built.facts.resources.vgpr_spills == 0;
        all_met &= met;
        table.rows.push_back({std::to_string(m), fmt::format("{:.0f}", f.instructions), fmt::format("{:.0f}", f.in_loop),
                              fmt::format("{:.0f} to {:.0f}", f.min_kib, f.peak_kib), fmt::format("{:.1f} %", 100 * busy),
                              std::to_string(built.facts.resources.vgprs), std::to_string(built.facts.resources.lds_bytes),
                              std::to_string(built.facts.resources.vgpr_spills),
                              fmt::format("{} tile_n={} waves={} loads={} stages={} workgroups={}{}", to_string(c.method), c.tile_n,
                                          c.waves, c.loads, c.stages, c.workgroups, met ? "" : "  MISSED")});
      }
      fmt::print("{}", to_text(table));
    }
  fmt::print("\nbounds: at most {} instructions per 16 KiB and {} in the loop for m up to 8, at least {} KiB in flight a CU and "
             "{} when full: {}\n",
             max_instructions, max_in_loop, min_kib, min_peak_kib, all_met ? "met" : "MISSED");
  if (!short_form) compare_methods(options);
  return all_met ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
