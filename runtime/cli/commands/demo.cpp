// kiln demo: two kernels for every architecture: compiled, judged, executed on the CPU model, compared with the reference and counted.
// If there is a GPU, also launched there, compared with the CPU model's bits, and timed beside the prediction.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "gen/reference/random_inputs.h"
#include "runtime/build/build_kernel.h"
#include "runtime/build/inspect.h"
#include "runtime/cli/command.h"
#include "runtime/cli/output.h"
#include "runtime/launch/benchmark.h"
#include "runtime/launch/device_chip.h"
#include "runtime/launch/emulated/emulate.h"
#include "runtime/proof/checked_run.h"
#include "runtime/table.h"
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <optional>

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
  using enum isa::MemorySpace;
  const BuiltKernel& built = outcome.built;
  const isa::KernelFacts& facts = built.facts;
  return {built.object.name,
          built.object.arch,
          fmt::format("{:.0f}", built.object.milliseconds),
          fmt::format("{}", facts.resources.vgprs),
          fmt::format("{}", facts.resources.scratch_bytes),
          fmt::format("{:g}", facts.occupancy.waves_per_simd),
          isa::widths_text(facts.widths({global, flat, buffer}, {isa::MemoryDirection::load})),
          isa::widths_text(facts.widths({global, flat, buffer}, {isa::MemoryDirection::store})),
          fmt::format("{:.0f}", outcome.instructions),
          outcome.verdict};
}

void leave_files(const std::filesystem::path& folder, const BuiltKernel& built) {
  const std::string stem = (folder / fmt::format("{}.{}", built.object.name, built.object.arch)).string();
  write_file(stem + ".hip", self_contained(built.source));
  write_file(stem + ".co", {reinterpret_cast<const char*>(built.object.bytes.data()), built.object.bytes.size()});
  write_file(stem + ".s", assembly(built.object));
}

// ---- on a device

// The GPU that is there, or the device that was asked for. `why_none` says what keeps the demo from a GPU.
std::optional<Device> demo_device(const std::string& name, std::string& why_none) {
  try {
    return Device::open(name.empty() ? "hip:0" : name);
  } catch (const EnvironmentError& error) {
    if (!name.empty()) throw UserError("kiln demo", fmt::format("there is no device {} ({})", name, error.fact), error.remedy);
    why_none = error.fact;
    return std::nullopt;
  }
}

struct OnDevice {
  CheckedRun outputs;
  std::optional<BenchmarkResult> time; // not of the CPU model
  timing::Prediction prediction;
};

OnDevice launch(const Device& device, const timing::Chip& chip, std::string_view kernel_name, const CompileOptions& options) {
  const KernelSpec spec = catalog_spec(kernel_name, {.cols = demo_cols, .dtype = f16, .fp8 = device.target().fp8()});
  const BuiltKernel built = build_kernel(spec, device.target(), options);
  const Kernel kernel = kernel_of(spec, device.target(), {}, options, built);
  const Inputs inputs = random_inputs(spec, 1, {.dynamic_size = demo_rows});
  OnDevice done{.outputs = checked_run(device, built, kernel, spec, inputs),
                .time = {},
                .prediction = predicted(built, spec, dim_sizes(spec, inputs), chip)};
  if (!device.is_emulated()) done.time = benchmark(device, kernel, demo_rows);
  return done;
}

// The table of what ran there. Whether every output was right.
bool show_device(const Device& device, const CompileOptions& options) {
  const DeviceChip part = chip_of(device.target(), device.product(), process_environment().chip);
  Table table{.header = {"kernel", "measured us", "+-", "predicted us", "GB/s", "of peak", "result"},
              .rows = {},
              .right = {false, true, true, true, true, true, false}};
  bool right = true;
  for (const std::string_view kernel : demo_kernels) {
    const OnDevice done = launch(device, *part.chip, kernel, options);
    const auto measured = [&](auto text) { return done.time ? text(*done.time) : std::string("-"); };
    table.rows.push_back({std::string(kernel), measured([](const BenchmarkResult& r) { return fmt::format("{:.2f}", r.median); }),
                          measured([](const BenchmarkResult& r) { return fmt::format("{:.2f}", r.deviation); }),
                          fmt::format("{:.2f}", done.prediction.microseconds),
                          measured([](const BenchmarkResult& r) { return fmt::format("{:.0f}", r.gb_per_s); }),
                          measured([](const BenchmarkResult& r) { return fmt::format("{:.0f} %", 100 * r.gb_per_s / r.peak_gb_per_s()); }),
                          done.outputs.verdict()});
    right = right && done.outputs.right();
  }
  fmt::print("\nOn {}, as {} ({}):\n\n{}", device.description(), part.chip->name, part.how, to_text(table));
  return right;
}

// A GPU that fails is no reason to hide what the CPU model showed: the error is said, and the demo has failed.
bool show_device_or_error(const Device& device, const CompileOptions& options) {
  try {
    return show_device(device, options);
  } catch (const EnvironmentError& error) {
    fmt::print("\nOn {} the kernels did not run: {}\n  {}\n  kiln doctor --report FILE collects what a report needs.\n",
               device.description(), error.fact, error.remedy);
    return false;
  }
}

void print_next_on_gpu() {
  fmt::print("Next on this GPU:\n"
             "  kiln run rmsnorm --device hip:0                              any kernel, compared with the reference and the CPU model\n"
             "  kiln bench gemm --m 16 --device hip:0 --check                its time beside the prediction\n"
             "  ./dev test --device hip:0                                    the numeric sweeps (in the tree)\n"
             "docs/first_day.md goes on from there.\n");
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

int run(const std::string& folder, const std::string& device_name) {
  std::string why_none;
  const std::optional<Device> device = demo_device(device_name, why_none);
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
  if (device) all_right = show_device_or_error(*device, options) && all_right;
  print_next(folder);
  if (device && !device->is_emulated()) print_next_on_gpu();
  if (!device)
    fmt::print("No GPU was used ({}).\nOn a machine with one the same command also launches there, compares the bits and measures.\n",
               why_none);
  return all_right ? ok : kernel_failed;
}

} // namespace

Command make_demo(CLI::App& root) {
  CLI::App* app =
      root.add_subcommand("demo", "Compile two kernels, run them on the CPU model and on a GPU if there is one, compare, count, measure");
  const auto folder = std::make_shared<std::string>("kiln-demo");
  const auto device = std::make_shared<std::string>();
  app->add_option("-o,--output", *folder, "Folder for source, code object and assembly")->capture_default_str();
  app->add_option("--device", *device, "hip:ORDINAL (hip:0 if there is one), or emulated:ARCH");
  return {app, [folder, device] { return run(*folder, *device); }};
}

} // namespace kiln::cli
