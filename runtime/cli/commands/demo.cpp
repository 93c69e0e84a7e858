// kiln demo: two kernels for every architecture: compiled, judged, executed on the CPU model, compared with the reference and counted.
#include "gen/catalog/catalog.h"
#include "gen/reference/random_inputs.h"
#include "runtime/build/build_kernel.h"
#include "runtime/build/inspect.h"
#include "runtime/cli/command.h"
#include "runtime/cli/output.h"
#include "runtime/launch/emulated/emulate.h"
#include "runtime/table.h"
#include <cstdlib>
#include <fmt/format.h>
#include <memory>

namespace kiln::cli {
namespace {

constexpr std::int64_t demo_rows = 16, demo_cols = 16384;
constexpr std::string_view demo_kernels[] = {"add_rmsnorm_quant", "swiglu_quant"};

// One kernel for one architecture, executed.
struct Outcome {
  BuiltKernel built;
  std::string verdict;     // of the comparison with the reference
  double instructions = 0; // executed for each 512 outputs
  bool right = false;
};

Outcome execute(const KernelSpec& spec, BuiltKernel built) {
  const Inputs inputs = random_inputs(spec, 1, {.dynamic_size = demo_rows});
  const EmulatedRun run = emulate(spec, built.source, built.object, inputs, {.threads = 0});
  const auto mismatch = find_mismatch(run.outputs, evaluate_bounds(spec, inputs, bounds_options(built.schedule)));
  Outcome outcome{.built = std::move(built), .verdict = {}};
  outcome.right = run.result.completed && run.result.defects.empty() && !mismatch;
  outcome.verdict = mismatch                      ? to_text(*mismatch)
                    : !run.result.defects.empty() ? exec::to_text(run.result.defects.front())
                    : !run.result.completed       ? "did not complete"
                                                  : "as the reference";
  outcome.instructions = static_cast<double>(run.result.waves.executed()) * 512 / static_cast<double>(demo_rows * demo_cols);
  return outcome;
}

std::vector<std::string> table_row(const Outcome& outcome) {
  const BuiltKernel& built = outcome.built;
  const isa::KernelFacts& facts = built.facts;
  return {built.object.name,
          built.object.arch,
          fmt::format("{:.0f}", built.object.milliseconds),
          fmt::format("{}", facts.resources.vgprs),
          fmt::format("{}", facts.resources.scratch_bytes),
          fmt::format("{:g}", facts.occupancy.waves_per_simd),
          isa::widths_text(global_widths(facts, isa::MemoryDirection::load)),
          isa::widths_text(global_widths(facts, isa::MemoryDirection::store)),
          fmt::format("{:.0f}", outcome.instructions),
          outcome.verdict};
}

void leave_files(const std::filesystem::path& folder, const BuiltKernel& built) {
  const std::string stem = (folder / fmt::format("{}.{}", built.object.name, built.object.arch)).string();
  write_file(stem + ".hip", self_contained(built.source));
  write_file(stem + ".co", {reinterpret_cast<const char*>(built.object.bytes.data()), built.object.bytes.size()});
  write_file(stem + ".s", assembly(built.object));
}

void print_next(const std::string& folder) {
  fmt::print("\nSource, code objects and assembly are in {0}. Next:\n"
             "  kiln list                                                    what else there is\n"
             "  kiln compile softmax --cols 5000 --arch gfx942 --emit source the HIP source of a kernel for one shape\n"
             "  kiln run rmsnorm --arch gfx950 --cols 5000 --rows 4          compile, execute here, compare\n"
             "  isa_lint show {0}/swiglu_quant.gfx942.co            annotated machine code\n"
             "(in the tree: ./dev exec kiln ...). The first kernel of your own: examples/first_kernel.cpp.\n",
             folder);
}

int run(const std::string& folder) {
  // comgr keeps compiled code between runs; the table's times are those of compiling. To be set before comgr loads.
  setenv("AMD_COMGR_CACHE", "0", 1);
  make_folder(folder);
  CompileOptions options = own_process_options(process_environment());
  options.warnings_as_errors = true;
  Table table{.header = {"kernel", "arch", "compile ms", "VGPR", "scratch B", "waves/SIMD", "global loads", "global stores", "instructions",
                         "result"},
              .rows = {},
              .right = {false, false, true, true, true, true, false, false, true}};
  std::string compiler;
  bool all_right = true;
  for (const std::string_view kernel : demo_kernels) {
    for (const std::string_view arch : known_archs()) {
      const Target one = target(arch);
      const KernelSpec spec = catalog_spec(kernel, {.cols = demo_cols, .dtype = f16, .fp8 = one.fp8()});
      const Outcome outcome = execute(spec, build_kernel(spec, one, options));
      leave_files(folder, outcome.built);
      table.rows.push_back(table_row(outcome));
      compiler = fmt::format("{}, {}", outcome.built.object.compiler, outcome.built.object.llvm);
      all_right = all_right && outcome.right;
    }
  }
  fmt::print("Compiled with {}; [{}, {}] f16 in, native fp8 out.\n"
             "Executed on a CPU model of the GPU, lane for lane, and compared with a plain reference; instructions are executed ones of\n"
             "waves, per 512 outputs:\n\n{}",
             compiler, demo_rows, demo_cols, to_text(table));
  print_next(folder);
  return all_right ? ok : kernel_failed;
}

} // namespace

Command make_demo(CLI::App& root) {
  CLI::App* app =
      root.add_subcommand("demo", "Compile two kernels, execute them on the CPU model, compare with the reference, count instructions");
  const auto folder = std::make_shared<std::string>("kiln-demo");
  app->add_option("-o,--output", *folder, "Folder for source, code object and assembly")->capture_default_str();
  return {app, [folder] { return run(*folder); }};
}

} // namespace kiln::cli
