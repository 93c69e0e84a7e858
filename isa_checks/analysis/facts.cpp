// Computing KernelFacts.
#include "isa_checks/analysis/facts.h"
#include "isa_checks/decode/program.h"
#include <algorithm>

namespace kiln::isa {
namespace {

bool names_accumulation(const Instruction& i) {
  constexpr RegisterRange all{reg::agpr, max_arch_vgprs};
  return i.use.reads_any(all) || i.use.writes_any(all);
}

int integer(std::uint32_t value) { return static_cast<int>(std::min<std::uint32_t>(value, 0x7fffffff)); }

} // namespace

Resources kernel_resources(const Kernel& kernel, std::span<const Instruction> code) {
  static const KernelMetadata no_metadata;
  const KernelMetadata& said = kernel.metadata ? *kernel.metadata : no_metadata;
  const KernelDescriptor& descriptor = kernel.descriptor;
  Resources r;
  r.vgprs = integer(said.vgpr_count.value_or(descriptor.vgprs)); // LLVM lets the descriptor allocate more where LDS limits anyway
  const bool accumulates = said.agpr_count ? *said.agpr_count > 0 : std::ranges::any_of(code, names_accumulation);
  const bool divided = accumulates || r.vgprs > max_arch_vgprs;
  r.arch_vgprs = divided && descriptor.accum_offset > 0 ? std::min(r.vgprs, integer(descriptor.accum_offset)) : r.vgprs;
  r.agprs = r.vgprs - r.arch_vgprs;
  r.sgprs = integer(said.sgpr_count.value_or(descriptor.sgprs));
  r.lds_bytes = integer(std::max(said.group_segment_bytes.value_or(0), descriptor.group_segment_bytes));
  r.scratch_bytes = integer(said.private_segment_bytes.value_or(descriptor.private_segment_bytes));
  r.vgpr_spills = integer(said.vgpr_spill_count.value_or(0));
  r.sgpr_spills = integer(said.sgpr_spill_count.value_or(0));
  r.kernarg_bytes = integer(said.kernarg_bytes.value_or(descriptor.kernarg_bytes));
  r.dynamic_stack = said.uses_dynamic_stack.value_or(descriptor.dynamic_stack);
  const auto limit = static_cast<std::uint64_t>(max_workgroup_size);
  if (said.required_workgroup_size) {
    const auto& size = *said.required_workgroup_size;
    const std::uint64_t lanes =
        std::min<std::uint64_t>(size[0], 1 << 20) * std::min<std::uint64_t>(size[1], 1 << 20) * std::min<std::uint64_t>(size[2], 1 << 20);
    r.workgroup_size = static_cast<int>(std::clamp<std::uint64_t>(lanes, 1, limit));
    r.workgroup_size_known = true;
  } else if (said.max_flat_workgroup_size) {
    r.workgroup_size = static_cast<int>(std::clamp<std::uint64_t>(*said.max_flat_workgroup_size, 1, limit));
    r.workgroup_size_known = true;
  }
  return r;
}

KernelFacts kernel_facts(const CodeObject& object, const Kernel& kernel, std::span<const Instruction> code) {
  KernelFacts facts;
  facts.kernel = kernel.name;
  facts.arch = object.target().name;
  facts.target_id = object.target_id();
  facts.resources = kernel_resources(kernel, code);
  const Resources& r = facts.resources;
  facts.occupancy =
      occupancy(object.target(), {.vgprs = r.vgprs, .sgprs = r.sgprs, .lds_bytes = r.lds_bytes, .workgroup_size = r.workgroup_size});
  const std::uint64_t begin = execution_offset(kernel);
  facts.code_bytes = static_cast<std::uint32_t>(kernel.code.size() - begin);
  for (const Instruction& instruction : code) {
    if (instruction.address - code.front().address < begin) continue;
    ++facts.instructions;
    facts.undecodable += !instruction.valid;
    ++facts.classes[static_cast<std::size_t>(instruction.kind)];
    if (const auto op = instruction.memory) ++facts.memory[*op];
    if (const auto waits = wait_counts(instruction)) {
      if (waits->vmcnt) ++facts.vmcnt[*waits->vmcnt];
      if (waits->expcnt) ++facts.expcnt[*waits->expcnt];
      if (waits->lgkmcnt) ++facts.lgkmcnt[*waits->lgkmcnt];
    }
  }
  return facts;
}

KernelFacts kernel_facts(const CodeObject& object, const Kernel& kernel, Disassembler& disassembler) {
  return kernel_facts(object, kernel, disassembler.decode(kernel));
}

std::map<int, std::uint32_t> KernelFacts::widths(std::initializer_list<MemorySpace> spaces,
                                                 std::initializer_list<MemoryDirection> directions) const {
  std::map<int, std::uint32_t> result;
  for (const auto& [op, count] : memory)
    if (std::ranges::find(spaces, op.space) != spaces.end() && std::ranges::find(directions, op.direction) != directions.end())
      result[op.bytes] += count;
  return result;
}

} // namespace kiln::isa
