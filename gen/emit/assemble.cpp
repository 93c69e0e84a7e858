// Assembly of a kernel: its arguments, signature and launch around what a family emits.
#include "gen/emit/assemble.h"
#include "gen/emit/includes.h"
#include "gen/emit/line_marks.h"
#include "gen/emit/values.h"
#include "gen/error.h"
#include "gen/spec/names.h"
#include "templates/handover_config.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace kiln {
namespace {

constexpr int workspace_alignment = 256; // bytes

KernelArgument pointer(const std::string& name, ArgumentKind kind, DType type, int alignment) {
  return {.name = name, .kind = kind, .dtype = type, .size = 8, .alignment = alignment};
}
KernelArgument number(const std::string& name, ArgumentKind kind, DType type) {
  return {.name = name, .kind = kind, .dtype = type, .size = 4};
}

// What products and the family's part read, of all problems, each once; a and b of products 16 bytes at a time.
std::vector<KernelArgument> operands(const Plan& plan) {
  std::vector<KernelArgument> list;
  for (const auto& problem : plan.problems)
    for (const KernelArgument& a : operands(*problem))
      if (std::ranges::find(list, a.name, &KernelArgument::name) == list.end()) list.push_back(a);
  const auto is_left = [&](const KernelArgument& a) { // by a phase before, in the workspace
    return std::ranges::any_of(plan.between, [&](const Expr& left) { return left->name == a.name; });
  };
  std::erase_if(list, is_left);
  const auto add = [&](const Expr& e, int alignment) {
    if (std::ranges::find(list, e->name, &KernelArgument::name) == list.end())
      list.push_back(pointer(e->name, ArgumentKind::input, e.dtype(), alignment));
  };
  for (const Product& p : plan.products) {
    add(p.a.memory, 16);
    add(p.b.memory, 16);
    for (const std::vector<Expr>& beside : {p.a.scales, p.a.norm, p.b.scales, p.sorted})
      for (const Expr& each : beside) add(each, size_bytes(each.dtype()));
  }
  if (plan.part)
    for (const PartRead& read : plan.part->reads()) add(read.input, read.alignment);
  return list;
}

KernelArgument tensor_pointer(const Body& body, const TensorPlan& t, const Access& access) {
  const int alignment = t.extent == Extent::element ? access.bytes(t.dtype) : size_bytes(t.dtype);
  KernelArgument a = pointer(t.memory(), t.output ? ArgumentKind::output : ArgumentKind::input, t.dtype, alignment);
  for (const TensorPlan& o : body.tensors)
    if (o.in_place_of == t.name) a.kind = ArgumentKind::in_place, a.tensor = o.memory();
  return a;
}

// Slices of one tensor have one pointer, as aligned as one of them wants it.
void add_tensor(std::vector<KernelArgument>& list, const KernelArgument& tensor) {
  const auto known = std::ranges::find(list, tensor.name, &KernelArgument::name);
  if (known == list.end()) return list.push_back(tensor);
  known->alignment = std::max(known->alignment, tensor.alignment);
  if (tensor.kind == ArgumentKind::in_place) known->kind = tensor.kind, known->tensor = tensor.tensor;
}

// Pointers first: the operands of products, tensors in the order of the plan, the workspace of `workspace_bytes` if any; then
// scalars, run-time sizes and strides.
std::vector<KernelArgument> kernel_arguments(const Plan& plan, const Access& access, std::int64_t workspace_bytes) {
  std::vector<KernelArgument> list = operands(plan);
  std::vector<std::string> read; // by products and parts
  for (const KernelArgument& a : list) read.push_back(a.name);
  const auto is_known = [&](const TensorPlan& t) {
    return find_product(plan.products, t.name) || std::ranges::find(read, t.name) != read.end() ||
           (plan.part && plan.part->stands_for(t.name));
  };
  for (const TensorPlan& t : plan.body.tensors)
    if (t.in_place_of.empty() && !is_known(t)) add_tensor(list, tensor_pointer(plan.body, t, access));
  if (plan.sort)
    for (const std::string& name : {plan.sort->order, plan.sort->offsets})
      if (std::ranges::find(list, name, &KernelArgument::name) == list.end())
        list.push_back(pointer(name, ArgumentKind::output, i32, size_bytes(i32)));
  if (workspace_bytes > 0) list.push_back(pointer(workspace_name(plan), ArgumentKind::workspace, u8, workspace_alignment));
  for (const Expr& s : plan.body.scalars) list.push_back(number(s->name, ArgumentKind::scalar, s.dtype()));
  for (const Dim& dim : plan.body.dynamic_dims) list.push_back(number(dim.name(), ArgumentKind::size, i32));
  for (const TensorPlan& t : plan.body.tensors) {
    if (t.layout != Layout::strided || !t.in_place_of.empty() || t.slice.pitch) continue;
    const std::string stride_name = t.memory() + "_stride";
    if (std::ranges::find(list, stride_name, &KernelArgument::name) != list.end()) continue;
    KernelArgument& stride = list.emplace_back(number(stride_name, ArgumentKind::stride, i32));
    stride.tensor = t.memory();
    stride.alignment = t.extent == Extent::element ? access.stride_multiple() : 1;
  }
  int offset = 0;
  for (KernelArgument& a : list) a.offset = std::exchange(offset, offset + a.size);
  return list;
}

// Other sizes are those of tensors whose rows an index names; only checked indices are compared with them.
bool is_walked(const Plan& plan, const std::string& size) {
  const auto has_size = [&](const Shape& dims) { return std::ranges::find(dims, size, &Dim::name) != dims.end(); };
  return std::ranges::any_of(plan.body.outer_dims, has_size) ||
         std::ranges::any_of(plan.problems, [&](const auto& problem) { return is_walked(*problem, size); });
}

std::string parameter(const Plan& plan, const KernelArgument& a) {
  switch (a.kind) {
  case ArgumentKind::input: return fmt::format("const {}* __restrict__ {}", device_type(a.dtype), a.name);
  case ArgumentKind::output:
  case ArgumentKind::in_place: return fmt::format("{}* __restrict__ {}", device_type(a.dtype), a.name);
  case ArgumentKind::scalar: return fmt::format("{} {}", device_type(a.dtype), a.name);
  case ArgumentKind::size: return (is_walked(plan, a.name) ? "u32 " : "[[maybe_unused]] u32 ") + a.name;
  case ArgumentKind::stride: // never used when the first dimension has size 1
    return (std::ranges::find(plan.body.tensors, a.tensor, &TensorPlan::memory)->stride_dim < 0 ? "[[maybe_unused]] u32 " : "u32 ") +
           a.name;
  case ArgumentKind::workspace: return "void* __restrict__ " + a.name;
  }
  throw InternalError("unknown ArgumentKind");
}

// Those of all problems, a pointer or stride that several read as aligned as one of them wants it.
std::vector<KernelArgument> arguments_together(const Plan& plan, std::span<const KernelParts> problems, std::int64_t workspace_bytes) {
  std::vector<KernelArgument> list = kernel_arguments(plan, {}, workspace_bytes);
  for (std::size_t i = 0; i < problems.size(); ++i)
    for (const KernelArgument& own : kernel_arguments(*plan.problems[i], problems[i].access, 0))
      for (KernelArgument& a : list) // an output of a later phase has the name of what it is in place of
        if (a.name == own.name || (a.kind == ArgumentKind::in_place && a.tensor == own.name))
          a.alignment = std::max(a.alignment, own.alignment);
  return list;
}

Launch launch_of(const Body& body, const KernelParts& parts) {
  Launch launch{.threads = parts.threads_per_block, .units_per_block = parts.units_per_block, .blocks_per_unit = parts.blocks_per_unit};
  for (const Shape& dims : body.outer_dims)
    for (const Dim& dim : dims) {
      if (dim.is_dynamic()) launch.dims.push_back(dim);
      else launch.units *= dim.size();
    }
  return launch;
}

// The same number of workgroups as Launch::blocks gives.
std::string blocks_text(const Launch& launch) {
  std::string units = "static_cast<u64>(1u)";
  for (const Dim& dim : launch.dims) units += " * " + dim.name();
  if (launch.units != 1) units += fmt::format(" * {}u", launch.units);
  if (launch.units_per_block != 1) units = fmt::format("({} + {}u) / {}u", units, launch.units_per_block - 1, launch.units_per_block);
  if (launch.blocks_per_unit != 1) units = fmt::format("({}) * {}u", units, launch.blocks_per_unit);
  return fmt::format("static_cast<u32>({})", units);
}

// Ends the waves that a workgroup of `threads` has beyond those of the problem.
std::string surplus_exit(const KernelParts& problem, int threads) {
  return problem.threads_per_block == threads ? "" : fmt::format("  if (is_surplus({})) return;\n", problem.threads);
}

std::string indented(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size() - 1) + 1;
    text += fmt::format("  {}", lines.substr(0, end));
    lines.remove_prefix(end);
  }
  return text;
}

std::string parameters(const Plan& plan, const std::vector<KernelArgument>& arguments) {
  std::vector<std::string> list;
  for (const KernelArgument& a : arguments) list.push_back(parameter(plan, a));
  return fmt::format("{}", fmt::join(list, ", "));
}

void put_text(KernelSource& source, const Plan& plan, const KernelParts& parts) {
  const std::string code = fmt::format("KILN_KERNEL({}) {}void {}({}) {{\n{}}}\n\n}} // namespace kiln\n", parts.threads, parts.attributes,
                                       source.name, parameters(plan, source.arguments), parts.body);
  source.text =
      fmt::format("// {} for {}. Generated by Kiln: edit the spec, not this.\n{}\nnamespace kiln {{\n\n{}{}", source.name, source.arch,
                  includes_text(parts.header, code, parts.shares_rows), parts.config.empty() ? "" : parts.config + "\n", code);
  source.spec_lines = take_line_marks(source.text);
}

} // namespace

int Access::bytes(DType type) const { return ragged ? size_bytes(type) : std::min(16, static_cast<int>(storage_bytes(type, vec))); }

std::string workspace_name(const Plan& plan) { return unused_name("workspace", SpecGraph::as_spelled(plan.spec).names); }

std::string waves_per_eu_attribute(int waves, const std::string& otherwise) {
  return waves > 0 ? fmt::format("KILN_WAVES_PER_EU({}) ", waves) : otherwise;
}

// Arguments that are loaded before the branch between problems: half of the scalar registers. Behind it they would cost every problem
// another latency of a scalar load.
constexpr int max_early_bytes = 192;

std::string block_name(const Plan& plan) { return unused_name("block", SpecGraph::as_spelled(plan.spec).names); }

std::int64_t workspace_part(std::int64_t bytes) { return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment; }

KernelSource assemble(const Plan& plan, const Target& target, const KernelParts& parts) {
  KernelSource source{.name = plan.spec.name(),
                      .arch = target.arch(),
                      .text = {},
                      .arguments = kernel_arguments(plan, parts.access, parts.workspace_bytes),
                      .launch = launch_of(plan.body, parts),
                      .workspace_bytes = parts.workspace_bytes};
  put_text(source, plan, parts);
  return source;
}

// The workgroups of problems one behind the other, those of the first one first.
static std::string dispatch(const Plan& plan, std::span<const KernelParts> problems, std::size_t first, std::size_t count, int threads) {
  const std::string block = block_name(plan), blocks = unused_name("blocks", SpecGraph::as_spelled(plan.spec).names);
  std::string text;
  for (std::size_t i = first; i < first + count; ++i) {
    const std::string own = indented("  " + problems[i].config + surplus_exit(problems[i], threads) + problems[i].body);
    if (i + 1 == first + count) text += fmt::format("  {{\n{}  }}\n", own);
    else
      text += fmt::format("  if (const u32 {0} = {1}; {2} < {0}) {{\n{3}    return;\n  }} else {{\n    {2} -= {0};\n  }}\n", blocks,
                          blocks_text(launch_of(plan.problems[i]->body, problems[i])), block, own);
  }
  return text;
}

// The part of the workspace in which phases meet: their counts, and what they leave.
struct PhaseSpace {
  std::int64_t bytes = 0;
  std::vector<std::int64_t> counts = {}, between = {}; // their places, from the beginning of the workspace
};

static PhaseSpace phase_space(const Plan& plan, std::span<const KernelParts> problems, std::int64_t first) {
  PhaseSpace space;
  const auto most = [](const Dim& dim) {
    if (dim.is_dynamic() && !dim.max())
      throw UserError(fmt::format("run-time size '{}'", dim.name()),
                      "it has no upper bound, in a launch whose phases count their workgroups",
                      fmt::format("bound it, as dim {}[..4096], or compute what has it in a kernel of its own", dim.name()));
    return dim.is_dynamic() ? *dim.max() : dim.size();
  };
  const auto add = [&](std::vector<std::int64_t>& places, std::int64_t bytes) {
    places.push_back(first + space.bytes);
    space.bytes += workspace_part(bytes);
  };
  for (std::size_t phase = 0, problem = 0; phase < plan.phases.size(); ++phase) {
    std::uint64_t blocks = 0;
    for (const std::size_t end = problem + plan.phases[phase]; problem < end; ++problem) {
      const Launch launch = launch_of(plan.problems[problem]->body, problems[problem]);
      blocks += launch.blocks([&](const std::string& name) { return most(*std::ranges::find(launch.dims, name, &Dim::name)); });
    }
    if (blocks > HandoverSpace::most)
      throw UserError(fmt::format("schedule of '{}'", plan.spec.name()), fmt::format("a phase has {} workgroups", blocks),
                      fmt::format("use at most {}: those of a phase are counted in 16 bits", HandoverSpace::most));
    if (phase > 0) add(space.counts, HandoverSpace::bytes(static_cast<long long>(blocks)));
  }
  for (const Expr& left : plan.between) {
    std::int64_t elements = 1;
    for (const Dim& dim : left.shape()) elements *= most(dim);
    add(space.between, storage_bytes(left.dtype(), elements));
  }
  return space;
}

// Phases in sequence: the workgroups of the first are launched, and go on with those behind it.
static std::string phases_text(const Plan& plan, std::span<const KernelParts> problems, const PhaseSpace& space, int threads) {
  const std::string workspace = workspace_name(plan);
  const auto name_of = [&](const char* what, std::size_t number) {
    return unused_name(fmt::format("{}{}", what, number), plan.body.names);
  };
  std::string text;
  for (std::size_t i = 0; i < plan.between.size(); ++i)
    text += fmt::format("  {0}* const {1} = reinterpret_cast<{0}*>(static_cast<char*>({2}) + {3}ull);\n",
                        device_type(plan.between[i].dtype()), plan.between[i]->name, workspace, space.between[i]);
  for (const auto& problem : plan.problems) // an output of a later phase in place of what only an earlier one reads
    for (const Output& own : problem->body.outputs)
      for (const Output& output : plan.body.outputs)
        if (own.name == output.name && own.in_place_of != output.in_place_of)
          text += fmt::format("  {}* const {} = {};\n", device_type(own.dtype), own.name, output.in_place_of);
  std::vector<std::string> blocks; // of each phase
  for (std::size_t phase = 0, problem = 0; phase < plan.phases.size(); ++phase) {
    std::vector<std::string> counts;
    for (const std::size_t end = problem + plan.phases[phase]; problem < end; ++problem)
      counts.push_back(blocks_text(launch_of(plan.problems[problem]->body, problems[problem])));
    blocks.push_back(fmt::format("{}", fmt::join(counts, " + ")));
  }
  for (std::size_t i = 0; i < space.counts.size(); ++i)
    text += fmt::format("  Handover {}(static_cast<char*>({}) + {}ull, {}, {});\n", name_of("handover", i), workspace, space.counts[i],
                        blocks[i], blocks[i + 1]);
  for (std::size_t phase = 0, problem = 0; phase < plan.phases.size(); problem += plan.phases[phase++]) {
    const std::string own = indented(dispatch(plan, problems, problem, plan.phases[phase], threads));
    if (phase == 0) {
      text += fmt::format("  [&]() KILN_LAMBDA {{\n{}  }}();\n", own);
      continue;
    }
    const bool more = phase + 1 < plan.phases.size();
    const std::string handover = name_of("handover", phase - 1);
    text += fmt::format("  if (!{}.arrive({})) return;\n", handover, phase == 1 ? "1" : name_of("done", phase - 2));
    text += fmt::format("  {}{}.each([&](u32 {}) KILN_LAMBDA {{\n{}  }});\n",
                        more ? fmt::format("const u32 {} = ", name_of("done", phase - 1)) : "", handover, block_name(plan), own);
  }
  return text;
}

KernelSource assemble_fused_launch(const Plan& plan, const Target& target, std::span<const KernelParts> problems, std::string_view header,
                                   const std::string& attributes) {
  std::int64_t workspace_bytes = 0;
  for (const KernelParts& problem : problems) workspace_bytes += workspace_part(problem.workspace_bytes);
  const PhaseSpace space = phase_space(plan, problems, workspace_bytes);
  workspace_bytes += space.bytes;
  KernelSource source{.name = plan.spec.name(),
                      .arch = target.arch(),
                      .text = {},
                      .arguments = arguments_together(plan, problems, workspace_bytes),
                      .launch = {},
                      .workspace_bytes = workspace_bytes};
  std::vector<std::string> names;
  for (const KernelArgument& argument : source.arguments)
    if (argument.offset + argument.size <= max_early_bytes) names.push_back(argument.name);
  const int threads = std::ranges::max(problems, {}, &KernelParts::threads_per_block).threads_per_block;
  std::string text =
      fmt::format("  u32 {} = platform::block_x();\n  platform::pin_arguments({});\n", block_name(plan), fmt::join(names, ", "));
  text += plan.phases.empty() ? dispatch(plan, problems, 0, problems.size(), threads) : phases_text(plan, problems, space, threads);
  const std::size_t launched = plan.phases.empty() ? problems.size() : plan.phases.front();
  for (std::size_t i = 0; i < launched; ++i) {
    const Launch launch = launch_of(plan.problems[i]->body, problems[i]);
    if (i == 0) source.launch = launch;
    else source.launch.behind.push_back(launch);
  }
  put_text(source, plan,
           {.header = std::string(header),
            .config = {},
            .threads = fmt::format("{}", threads),
            .attributes = attributes,
            .body = text,
            .access = {},
            .shares_rows = std::ranges::any_of(problems, &KernelParts::shares_rows)});
  return source;
}

} // namespace kiln
