// emulate: device memory from tensors, the argument block, and tensors from device memory.
#include "runtime/launch/emulated/emulate.h"
#include "gen/error.h"
#include "gen/reference/index_check.h"
#include "gen/spec/preshuffle.h"
#include "isa_checks/object/code_object.h"
#include "runtime/launch/arguments/argument_block.h"
#include <algorithm>
#include <cstring>
#include <deque>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr std::byte unwritten{0xcd}; // outputs before the kernel
constexpr std::byte padding{0xff};   // NaN in every floating type

// A tensor in device memory: rows of `row` elements, `stride` elements apart.
struct Placed {
  std::uint64_t address = 0;
  std::int64_t rows = 1, row = 1, stride = 1;
};

class Emulation {
public:
  Emulation(const KernelSpec& spec, const KernelSource& source, const Inputs& inputs, exec::Memory& memory)
      : spec_(spec), source_(source), inputs_(inputs), sizes_(dim_sizes(spec, inputs)), inputs_of_spec_(spec.inputs()), memory_(memory) {
    require_sound_indices(spec, inputs);
    for (const KernelArgument& a : source_.arguments) place(a);
    ArgumentBlock block(source_.arguments);
    for (const KernelArgument& a : source_.arguments) block.put(a, bits(a));
    arguments_ = block.take();
    blocks_ = workgroups(source_.name, source_.launch, [&](const std::string& dim) { return sizes_.at(dim); });
  }

  bool is_empty() const { return blocks_ == 0; }
  exec::Grid grid() const {
    return {.workgroups = {blocks_, 1, 1}, .workgroup_size = {static_cast<std::uint32_t>(source_.launch.workgroup_threads()), 1, 1}};
  }
  std::span<const std::byte> arguments() const { return arguments_; }

  // What a launch has overwritten is as it was.
  void restore_inputs() {
    for (const KernelArgument& a : source_.arguments)
      if (a.kind == ArgumentKind::in_place) fill(a);
  }

  Outputs outputs() {
    Outputs all;
    for (const Output& output : spec_.outputs()) all.emplace(output.name, fetch(output));
    return all;
  }
  std::vector<std::byte> workspace() {
    for (const KernelArgument& a : source_.arguments)
      if (a.kind == ArgumentKind::workspace) {
        const std::span<const std::byte> bytes = memory_.bytes(placed_.at(a.name).address);
        return {bytes.begin(), bytes.end()};
      }
    return {};
  }

private:
  const Expr& input(const std::string& name) const {
    return *std::ranges::find_if(inputs_of_spec_, [&](const Expr& e) { return e->name == name; });
  }
  const Output& output(const std::string& name) const { return *std::ranges::find(spec_.outputs(), name, &Output::name); }

  std::vector<std::int64_t> sizes(const Shape& shape) const {
    std::vector<std::int64_t> result;
    for (const Dim& dim : shape) result.push_back(dim.is_dynamic() ? sizes_.at(dim.name()) : dim.size());
    return result;
  }

  void place(const KernelArgument& a) {
    if (a.kind == ArgumentKind::workspace) { // zero at first
      placed_[a.name].address = memory_.allocate(a.name, static_cast<std::size_t>(source_.workspace_bytes), true);
      std::ranges::fill(memory_.bytes(placed_[a.name].address), std::byte{0});
    }
    if (a.kind != ArgumentKind::input && a.kind != ArgumentKind::in_place && a.kind != ArgumentKind::output) return;
    const bool is_output = a.kind == ArgumentKind::output;
    if (!is_output && input(a.name)->layout == Layout::preshuffled) return place_preshuffled(a);
    const std::vector<std::int64_t> shape = sizes(is_output ? output(a.name).value.shape() : input(a.name).shape());
    Placed p;
    for (std::size_t i = 0; i < shape.size(); ++i) (i == 0 && shape.size() > 1 ? p.rows : p.row) *= shape[i];
    p.stride = p.row;
    for (const KernelArgument& s : source_.arguments)
      if (s.kind == ArgumentKind::stride && s.tensor == a.name)
        p.stride = (p.row + s.alignment - 1) / s.alignment * s.alignment + s.alignment;
    const std::int64_t elements = p.rows > 0 ? (p.rows - 1) * p.stride + p.row : 0;
    p.address = memory_.allocate(a.name, static_cast<std::size_t>(storage_bytes(a.dtype, elements)), a.kind != ArgumentKind::input);
    placed_[a.name] = p;
    std::ranges::fill(memory_.bytes(p.address), is_output ? unwritten : padding);
    if (!is_output) fill(a);
  }
  void fill(const KernelArgument& a) {
    const Placed& p = placed_.at(a.name);
    const std::span<std::byte> bytes = memory_.bytes(p.address);
    const Tensor& tensor = inputs_.tensors.at(a.name);
    for (std::int64_t r = 0; r < p.rows; ++r) std::ranges::copy(tensor.row(r), bytes.begin() + storage_bytes(a.dtype, r * p.stride));
  }

  void place_preshuffled(const KernelArgument& a) {
    const Tensor& tensor = inputs_.tensors.at(a.name);
    const std::vector<std::byte> bytes = preshuffle(tensor.data(), tensor.shape()[0], storage_bytes(a.dtype, tensor.shape()[1]));
    placed_[a.name].address = memory_.allocate(a.name, bytes.size(), false);
    std::ranges::copy(bytes, memory_.bytes(placed_[a.name].address).begin());
  }

  std::uint64_t bits(const KernelArgument& a) const {
    switch (a.kind) {
    case ArgumentKind::input:
    case ArgumentKind::in_place:
    case ArgumentKind::output:
    case ArgumentKind::workspace: return placed_.at(a.name).address;
    case ArgumentKind::scalar: return scalar_bits(source_.name, a, inputs_.scalars.at(a.name));
    case ArgumentKind::size: return static_cast<std::uint64_t>(sizes_.at(a.name));
    case ArgumentKind::stride: return static_cast<std::uint64_t>(placed_.at(a.tensor).stride);
    }
    throw InternalError("unknown ArgumentKind");
  }

  Tensor fetch(const Output& o) {
    Tensor tensor(o.dtype, sizes(o.value.shape()));
    const Placed& p = placed_.at(o.in_place_of.empty() ? o.name : o.in_place_of);
    const std::span<const std::byte> bytes = memory_.bytes(p.address);
    for (std::int64_t r = 0; r < p.rows; ++r) {
      const std::span<std::byte> row = tensor.row(r);
      std::ranges::copy(bytes.subspan(static_cast<std::size_t>(storage_bytes(o.dtype, r * p.stride)), row.size()), row.begin());
    }
    return tensor;
  }

  const KernelSpec& spec_;
  const KernelSource& source_;
  const Inputs& inputs_;
  std::map<std::string, std::int64_t> sizes_;
  std::vector<Expr> inputs_of_spec_;
  std::map<std::string, Placed> placed_;
  exec::Memory& memory_;
  std::vector<std::byte> arguments_;
  std::uint32_t blocks_ = 0;
};

} // namespace

EmulatedRun emulate(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, const Inputs& inputs,
                    const exec::ExecOptions& options, int launches) {
  exec::Memory memory;
  Emulation one(spec, source, inputs, memory);
  EmulatedRun done;
  done.result.completed = one.is_empty();
  if (!one.is_empty()) {
    const isa::CodeObject file = isa::load_code_object(object.bytes, object.name);
    for (int i = 0; i < launches && done.result.defects.empty(); ++i) {
      if (i > 0) one.restore_inputs();
      done.result = exec::execute(file, object.name, one.grid(), one.arguments(), memory, options);
    }
  }
  done.outputs = one.outputs();
  done.workspace = one.workspace();
  return done;
}

EmulatedRun emulate_one_by_one(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, const Inputs& inputs,
                               std::span<const std::uint32_t> order, const exec::ExecOptions& options) {
  exec::Memory memory;
  Emulation one(spec, source, inputs, memory);
  const isa::CodeObject file = isa::load_code_object(object.bytes, object.name);
  EmulatedRun done;
  done.result.completed = true;
  for (const std::uint32_t& workgroup : order) {
    exec::Grid grid = one.grid();
    grid.only = {&workgroup, 1};
    exec::ExecResult result = exec::execute(file, object.name, grid, one.arguments(), memory, options);
    result.completed = result.completed && done.result.completed;
    result.waves.add(done.result.waves);
    result.defects.insert(result.defects.begin(), done.result.defects.begin(), done.result.defects.end());
    done.result = std::move(result);
  }
  done.outputs = one.outputs();
  return done;
}

EmulatedBeside emulate_beside(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, std::span<const Inputs> inputs,
                              int cus, const exec::ExecOptions& options) {
  exec::Memory memory;
  const isa::CodeObject file = isa::load_code_object(object.bytes, object.name);
  std::deque<Emulation> all; // they do not move
  std::vector<exec::LaunchBeside> launches;
  for (const Inputs& own : inputs)
    if (const Emulation& one = all.emplace_back(spec, source, own, memory); !one.is_empty())
      launches.push_back({.object = file, .kernel = object.name, .grid = one.grid(), .arguments = one.arguments()});
  EmulatedBeside done{.outputs = {}, .result = exec::execute_beside(launches, cus, memory, options)};
  for (Emulation& one : all) done.outputs.push_back(one.outputs());
  return done;
}

BoundsOptions bounds_options(const Schedule& schedule) {
  BoundsOptions options;
  if (const auto depth = addition_depth(schedule)) options.addition_depth = *depth;
  const auto is_sparse = [](const auto& config) {
    const auto* const gemm = std::get_if<GemmConfig>(&config);
    return gemm != nullptr && gemm->method == GemmMethod::sparse;
  };
  options.absent_products = is_sparse(schedule.config);
  if (const auto* const together = std::get_if<FusedLaunchConfig>(&schedule.config))
    options.absent_products =
        std::ranges::any_of(together->problems, [&](const ProblemSchedule& own) { return is_sparse(own.schedule.config); });
  return options;
}

} // namespace kiln
