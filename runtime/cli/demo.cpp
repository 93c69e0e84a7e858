// kiln demo: two kernels of 16384 columns, f16 in and native fp8 out, through the real compiler, as one table.
#include "gen/catalog/catalog.h"
#include "gen/families/emit.h"
#include "runtime/build/build_kernel.h"
#include "runtime/cli/command.h"
#include "runtime/cli/output.h"
#include "runtime/build/inspect.h"
#include "runtime/table.h"
#include <cstdlib>
#include <fmt/format.h>
#include <memory>

namespace kiln::cli {
namespace {

constexpr std::int64_t demo_cols = 16384;
constexpr std::string_view demo_kernels[] = {"add_rmsnorm_quant", "swiglu_quant"};

std::vector<std::string> table_row(const BuiltKernel& built) {
  const isa::KernelFacts& facts = built.facts;
  return {built.object.name,
          built.object.arch,
          fmt::format("{:.0f}", built.object.milliseconds),
          fmt::format("{}", facts.resources.vgprs),
          fmt::format("{}", facts.resources.lds_bytes),
          fmt::format("{}", facts.resources.scratch_bytes),
          fmt::format("{:g}", facts.occupancy.waves_per_simd),
          isa::widths_text(global_widths(facts, isa::MemoryDirection::load)),
          isa::widths_text(global_widths(facts, isa::MemoryDirection::store)),
          isa::widths_text(lds_widths(facts))};
}

void leave_files(const std::filesystem::path& folder, const BuiltKernel& built) {
  const std::string stem = (folder / fmt::format("{}.{}", built.object.name, built.object.arch)).string();
  write_file(stem + ".hip", self_contained(built.source));
  write_file(stem + ".co", {reinterpret_cast<const char*>(built.object.bytes.data()), built.object.bytes.size()});
  write_file(stem + ".s", assembly(built.object));
}

int run(const std::string& folder) {
  // comgr keeps compiled code between runs; the table's times are those of compiling. To be set before comgr loads.
  setenv("AMD_COMGR_CACHE", "0", 1);
  make_folder(folder);
  CompileOptions options;
  options.environment = process_environment();
  options.warnings_as_errors = true;
  Table table{.header = {"kernel", "arch", "compile ms", "VGPR", "LDS B", "scratch B", "waves/SIMD", "global loads",
                         "global stores", "LDS ops"},
              .rows = {},
              .right = {false, false, true, true, true, true, true}};
  std::string compiler;
  for (const std::string_view kernel : demo_kernels) {
    for (const std::string_view arch : known_archs()) {
      const Target one = target(arch);
      const KernelSpec spec = catalog_spec(kernel, {.cols = demo_cols, .dtype = f16, .fp8 = one.fp8()});
      const BuiltKernel built = build_kernel(spec, one, options);
      leave_files(folder, built);
      table.rows.push_back(table_row(built));
      compiler = fmt::format("{}, {}", built.object.compiler, built.object.llvm);
    }
  }
  fmt::print("{} columns, f16 in, native fp8 out; {}\n\n{}\nsource, code object and assembly: {}\n", demo_cols,
             compiler, to_text(table), std::filesystem::absolute(folder).string());
  return ok;
}

} // namespace

Command make_demo(CLI::App& root) {
  CLI::App* app =
      root.add_subcommand("demo", "Compile add_rmsnorm_quant and swiglu_quant at 16384 columns and show what came out");
  const auto folder = std::make_shared<std::string>("kiln-demo");
  app->add_option("-o,--output", *folder, "Folder for source, code object and assembly")->capture_default_str();
  return {app, [folder] { return run(*folder); }};
}

} // namespace kiln::cli
