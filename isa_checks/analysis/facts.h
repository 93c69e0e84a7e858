// KernelFacts: the resources, occupancy and instruction mix of one kernel, as one printable value.
#pragma once
#include "isa_checks/analysis/occupancy.h"
#include "isa_checks/decode/disassembler.h"
#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>

namespace kiln::isa {

// From the metadata note and the kernel descriptor; of LDS the larger.
struct Resources {
  int vgprs = 0;      // in the unified file: architectural + accumulation
  int arch_vgprs = 0; // those before the descriptor's accum_offset
  int agprs = 0;      // those from there on
  int sgprs = 0;
  int lds_bytes = 0;                    // static, per workgroup
  int scratch_bytes = 0;                // per lane
  int vgpr_spills = 0, sgpr_spills = 0; // registers
  int kernarg_bytes = 0;
  int workgroup_size = 1024; // required, else the most it was compiled for
  bool workgroup_size_known = false;
  bool dynamic_stack = false;
  bool operator==(const Resources&) const = default;
};

using ClassCounts = std::array<std::uint32_t, instruction_class_count>; // by InstructionClass
using MemoryMix = std::map<MemoryOp, std::uint32_t>;                    // instructions
using WaitHistogram = std::map<int, std::uint32_t>;                     // value waited for -> instructions

struct KernelFacts {
  std::string kernel, arch, target_id;
  Resources resources;
  Occupancy occupancy;
  std::uint32_t instructions = 0, code_bytes = 0; // from where execution begins (execution_offset), as the counts below
  std::uint32_t undecodable = 0;                  // words that LLVM cannot decode, counted in `instructions` too
  ClassCounts classes{};
  MemoryMix memory;
  WaitHistogram vmcnt, expcnt, lgkmcnt;
  bool operator==(const KernelFacts&) const = default;

  std::uint32_t count(InstructionClass c) const { return classes[static_cast<std::size_t>(c)]; }
  // Bytes per lane -> instructions.
  std::map<int, std::uint32_t> widths(MemorySpace space, MemoryDirection direction) const { return widths({space}, {direction}); }
  std::map<int, std::uint32_t> widths(std::initializer_list<MemorySpace> spaces, std::initializer_list<MemoryDirection> directions) const;
};

Resources kernel_resources(const Kernel& kernel, std::span<const Instruction> code);
KernelFacts kernel_facts(const CodeObject& object, const Kernel& kernel, std::span<const Instruction> code);
KernelFacts kernel_facts(const CodeObject& object, const Kernel& kernel, Disassembler& disassembler);

std::string to_text(const KernelFacts& facts);
std::string to_json(const KernelFacts& facts); // one object, indented by 2

// Short texts for tables: "16B x4, 4B x1" ("-" when there are none).
std::string widths_text(const std::map<int, std::uint32_t>& widths);

} // namespace kiln::isa
