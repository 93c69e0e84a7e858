// A launch for a prediction: a spec's kernel on buffers of zeros, or a kernel of a code object.
#include "runtime/cli/predict_launch.h"
#include "gen/error.h"
#include "isa_checks/timing/predict.h"
#include "runtime/build/build_kernel.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace kiln::cli {
namespace {

using Sizes = std::map<std::string, std::int64_t>;

Sizes sizes_of(const PredictLaunch& launch, const KernelSpec& spec) {
  if (launch.rows < 1) throw UserError("--rows", fmt::format("{} is no size to predict", launch.rows), "give 1 or more");
  Sizes sizes = named_sizes(launch.sizes, spec);
  for (const Dim& dim : spec.dynamic_dims())
    sizes.try_emplace(dim.name(), std::clamp(launch.rows, dim.min().value_or(0), std::max(dim.min().value_or(0), dim.max().value_or(max_dim_size))));
  return sizes;
}

// Device memory and the argument block of a kernel of ours. Values do not matter to a prediction: all buffers hold zeros.
class Arguments {
public:
  Arguments(const KernelSpec& spec, const KernelSource& source, const Sizes& sizes) : spec_(spec), source_(source), sizes_(sizes) {
    for (const KernelArgument& a : source.arguments) {
      std::uint64_t bits = 0;
      if (a.kind == ArgumentKind::workspace) bits = memory.allocate(a.name, static_cast<std::size_t>(source.workspace_bytes));
      else if (a.kind == ArgumentKind::size) bits = static_cast<std::uint64_t>(sizes.at(a.name));
      else if (a.kind == ArgumentKind::stride) bits = static_cast<std::uint64_t>(stride_of(a.tensor, shape_of(a.tensor).back()));
      else if (a.kind != ArgumentKind::scalar) bits = place(a);
      block.resize(static_cast<std::size_t>(a.offset + a.size));
      std::memcpy(&block[static_cast<std::size_t>(a.offset)], &bits, static_cast<std::size_t>(a.size));
    }
  }

  exec::Memory memory;
  std::vector<std::byte> block;

private:
  // Rows, and elements of a row.
  std::vector<std::int64_t> shape_of(const std::string& tensor) const {
    const auto output = std::ranges::find(spec_.outputs(), tensor, &Output::name);
    Shape shape;
    if (output != spec_.outputs().end()) shape = output->value.shape();
    else
      for (const Expr& e : spec_.inputs())
        if (e->name == tensor) shape = e.shape();
    std::vector<std::int64_t> rows{1, 1};
    for (std::size_t i = 0; i < shape.size(); ++i)
      rows[i == 0 && shape.size() > 1 ? 0 : 1] *= shape[i].is_dynamic() ? sizes_.at(shape[i].name()) : shape[i].size();
    return rows;
  }
  std::int64_t stride_of(const std::string& tensor, std::int64_t row) const {
    for (const KernelArgument& s : source_.arguments)
      if (s.kind == ArgumentKind::stride && s.tensor == tensor) return (row + s.alignment - 1) / s.alignment * s.alignment;
    return row;
  }
  std::uint64_t place(const KernelArgument& a) {
    const std::vector<std::int64_t> shape = shape_of(a.name);
    return memory.allocate(a.name, static_cast<std::size_t>(shape[0] * stride_of(a.name, shape[1]) * size_bytes(a.dtype)), a.kind != ArgumentKind::input);
  }

  const KernelSpec& spec_;
  const KernelSource& source_;
  const Sizes& sizes_;
};

timing::Record record_spec(const PredictLaunch& launch, const timing::Chip& chip) {
  const Target chosen = target(std::string(chip.arch));
  const KernelSpec spec = chosen_spec(launch.kernel, chosen);
  const Sizes sizes = sizes_of(launch, spec);
  CompileOptions compile;
  compile.environment = process_environment();
  const BuiltKernel built = build_kernel(spec, chosen, compile, launch.overrides);
  const std::uint64_t blocks = built.source.launch.blocks([&](const std::string& dim) { return sizes.at(dim); });
  if (blocks == 0 || blocks > 0xffffffffULL) throw UserError("kiln predict", fmt::format("a launch of {} workgroups", blocks), "give sizes of 1 or more");
  Arguments arguments(spec, built.source, sizes);
  const exec::Grid grid{.workgroups = {static_cast<std::uint32_t>(blocks), 1, 1},
                        .workgroup_size = {static_cast<std::uint32_t>(built.source.launch.threads), 1, 1}};
  return timing::record(isa::load_code_object(built.object.bytes, built.object.name), built.object.name, grid, arguments.block, arguments.memory);
}

} // namespace

void add_launch_options(CLI::App& app, PredictLaunch& launch) {
  add_kernel_options(app, launch.kernel);
  app.remove_option(app.get_option("kernel")); // --object does without it, and has a --kernel of its own
  app.add_option("spec", launch.kernel.kernel, "A name of the catalogue (kiln list), or a file with the text of a spec");
  app.add_option("--rows", launch.rows, "Size of every run-time dimension, moved into its bounds")->capture_default_str();
  app.add_option("--size", launch.sizes, "Size of one run-time dimension, NAME=SIZE; may be repeated")->delimiter(',');
  app.add_option("--set", launch.overrides, "Schedule field to replace, NAME=VALUE; may be repeated")->delimiter(',');
  app.add_option("--object", launch.object.object, "Predict a kernel of this code object in place of a spec");
  app.add_option("--kernel", launch.object.kernel, "With --object: the kernel");
  app.add_option("--grid", launch.object.grid, "With --object: workgroups, X[,Y,Z]")->delimiter(',');
  app.add_option("--block", launch.object.block, "With --object: work items of a workgroup");
  app.add_option("--lds", launch.object.dynamic_lds, "With --object: bytes of LDS beyond the static ones");
  app.add_option("--arg", launch.object.arguments, "With --object, in order: NAME=FILE, zeros:BYTES, i32:N, i64:N, f32:X");
}

timing::Record record_launch(const PredictLaunch& launch, const timing::Chip& chip) {
  const ObjectRun& object = launch.object;
  if (object.object.empty()) {
    if (launch.kernel.kernel.empty())
      throw UserError("kiln predict", "neither a kernel nor --object was given", "name a kernel of the catalogue (kiln list), or --object FILE");
    if (!object.kernel.empty() || !object.grid.empty() || object.block != 0 || !object.arguments.empty())
      throw UserError("kiln predict", "--kernel, --grid, --block and --arg belong to --object", "add --object FILE, or leave them out");
    return record_spec(launch, chip);
  }
  if (!launch.kernel.kernel.empty())
    throw UserError("kiln predict", fmt::format("both '{}' and --object were given", launch.kernel.kernel), "give one of them");
  if (object.kernel.empty()) throw UserError("--object", "no kernel of it was named", "add --kernel NAME");
  ObjectLaunch prepared = prepare_object(object);
  timing::check_fits(prepared.object, chip);
  return timing::record(prepared.object, prepared.kernel, prepared.grid, prepared.arguments, prepared.memory);
}

} // namespace kiln::cli
