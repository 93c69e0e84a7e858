// LCH001 to LCH006, BND002: launch bounds, kernel arguments and build settings.
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::isa::rules {
namespace {

bool default_bound(const KernelAnalysis& k) {
  const auto& m = k.kernel.metadata;
  return m && !m->required_workgroup_size && m->max_flat_workgroup_size == 1024U;
}

// The scalar registers that hold the address of the kernel's arguments at the entry (AMDGPUUsage, "Initial Kernel
// Execution State"), or nothing.
std::optional<RegisterRange> argument_pointer(const KernelDescriptor& d) {
  if (!d.sgpr_kernarg_segment_ptr) return std::nullopt;
  const int first = (d.sgpr_private_segment_buffer ? 4 : 0) + (d.sgpr_dispatch_ptr ? 2 : 0) + (d.sgpr_queue_ptr ? 2 : 0);
  return RegisterRange{static_cast<std::uint16_t>(reg::sgpr + first), 2};
}

struct ArgumentLoad {
  std::size_t instruction;
  std::uint32_t from, to; // bytes of the arguments
};
struct ArgumentLoads {
  std::vector<ArgumentLoad> list;
  bool exact = true; // the pointer has no other use, and every offset is a number
};

// Follows the pointer until its registers are overwritten, in the order of the code.
ArgumentLoads argument_loads(const KernelAnalysis& k) {
  ArgumentLoads result;
  const auto pointer = argument_pointer(k.kernel.descriptor);
  if (!pointer) return result;
  const std::size_t begin = k.program.blocks.empty() ? 0 : k.program.blocks[k.program.entry].begin;
  for (std::size_t i = begin; i < k.program.instructions.size(); ++i) {
    const MemoryAccess* a = k.memory.find(i);
    const Operands& o = k.operands[i];
    if (a && a->op.space == MemorySpace::scalar && o.count >= 3 && o[1].is(Operand::Kind::registers) && o[1].registers == *pointer) {
      if (o[2].is(Operand::Kind::number)) {
        const auto from = static_cast<std::uint32_t>(o[2].number);
        result.list.push_back({i, from, from + static_cast<std::uint32_t>(a->op.bytes)});
      } else {
        result.exact = false;
      }
    } else if (k.instruction(i).use.reads_any(*pointer)) {
      result.exact = false;
    }
    if (k.instruction(i).use.writes_any(*pointer)) break;
  }
  return result;
}

bool overlaps(const ArgumentLoad& load, const KernelArgument& argument) {
  return load.from < argument.offset + argument.size && argument.offset < load.to;
}

} // namespace

// What LLVM loads too much, to load several arguments at once, begins inside of the segment.
void bnd002(const KernelAnalysis& k, FindingSink& sink) {
  const auto bytes = static_cast<std::uint32_t>(k.facts.resources.kernarg_bytes);
  if (bytes == 0) return; // nobody said
  for (const ArgumentLoad& load : argument_loads(k).list)
    if (load.from >= bytes)
      sink.add({.message = fmt::format("loads bytes {} to {} of the arguments, of which there are {}", load.from, load.to - 1, bytes),
                .evidence = {{"from", static_cast<double>(load.from), "B"}, {"kernarg_bytes", static_cast<double>(bytes), "B"}},
                .instructions = {load.instruction},
                .cause = "arguments"});
}

void lch001(const KernelAnalysis& k, FindingSink& sink) {
  if (default_bound(k))
    sink.add({.message = "the workgroup size is not bounded below 1024", .evidence = {{"max_flat_workgroup_size", 1024, "lanes"}}});
}

void lch002(const KernelAnalysis& k, FindingSink& sink) {
  const Resources& r = k.facts.resources;
  if (!default_bound(k) || (r.vgprs < 120 && r.vgpr_spills == 0)) return;
  sink.add({.message = fmt::format("compiled for workgroups of up to 1024 lanes, which caps VGPRs at 128: it has {} and {}", r.vgprs,
                                   plural(static_cast<std::size_t>(r.vgpr_spills), "spill")),
            .evidence = {{"vgprs", static_cast<double>(r.vgprs), "registers"},
                         {"vgpr_spills", static_cast<double>(r.vgpr_spills), "registers"}}});
}

void lch003(const KernelAnalysis& k, FindingSink& sink) {
  const auto& m = k.kernel.metadata;
  if (!m || m->arguments.empty() || m->uniform_workgroup_size == 1U) return;
  sink.add({.message = "the metadata does not promise whole workgroups", .evidence = {{"uniform_work_group_size", 0, ""}}});
}

void lch004(const KernelAnalysis& k, FindingSink& sink) {
  if (!k.kernel.metadata) return;
  const ArgumentLoads loads = argument_loads(k);
  std::vector<std::string_view> used;
  Instructions places;
  bool costly = false;
  for (const KernelArgument& argument : k.kernel.metadata->arguments) {
    if (!argument.hidden()) continue;
    const auto load = std::find_if(loads.list.begin(), loads.list.end(), [&](const ArgumentLoad& l) { return overlaps(l, argument); });
    if (load == loads.list.end()) continue;
    used.push_back(argument.value_kind);
    if (std::find(places.begin(), places.end(), load->instruction) == places.end()) places.push_back(load->instruction);
    costly = costly || argument.value_kind == "hidden_hostcall_buffer" || argument.value_kind == "hidden_heap_v1";
  }
  if (used.empty()) return;
  sink.add({.message = fmt::format("loads {}", fmt::join(used, ", ")),
            .evidence = {{"hidden_arguments", number(used.size()), ""}},
            .instructions = places,
            .severity = costly ? std::optional(Severity::warning) : std::nullopt});
}

void lch005(const KernelAnalysis& k, FindingSink& sink) {
  const auto& m = k.kernel.metadata;
  if (!m || k.kernel.descriptor.preload_dwords > 0 || !m->uniform_workgroup_size) return; // compilers' output only
  const ArgumentLoads loads = argument_loads(k);
  if (!loads.exact) return;
  std::vector<std::string> dead;
  for (std::size_t n = 0; n < m->arguments.size(); ++n) {
    const KernelArgument& argument = m->arguments[n];
    if (argument.hidden() || argument.size == 0) continue;
    if (std::none_of(loads.list.begin(), loads.list.end(), [&](const ArgumentLoad& l) { return overlaps(l, argument); }))
      dead.push_back(argument.name.empty() ? fmt::format("argument {}", n) : argument.name);
  }
  if (!dead.empty())
    sink.add({.message = fmt::format("never read: {}", fmt::join(dead, ", ")), .evidence = {{"arguments", number(dead.size()), ""}}});
}

void lch006(const KernelAnalysis& k, FindingSink& sink) {
  if (k.facts.target_id.find(":xnack") != std::string::npos) return;
  const Instructions nops = where(all_instructions(k), [&](std::size_t i) { return nop_states(k.instruction(i)) > 0; });
  sink.add({.message = fmt::format("built for {} with any XNACK setting; it has {}", k.facts.target_id, plural(nops.size(), "s_nop")),
            .evidence = {{"s_nop", number(nops.size()), "instructions"}}});
}

} // namespace kiln::isa::rules
