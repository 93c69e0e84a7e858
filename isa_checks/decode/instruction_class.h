// What an instruction is for, from its mnemonic: its class, the memory it touches, the counters it waits for.
#pragma once
#include "isa_checks/decode/disassembler.h"
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::isa {

enum class InstructionClass : std::uint8_t {
  valu,   // vector arithmetic that is none of the next four
  trans,  // transcendental, quarter rate: exp, log, rcp, rsq, sqrt, sin, cos
  packed, // v_pk_*: two values an instruction
  dot,    // v_dot*
  mfma,   // v_mfma_*, v_smfmac_*
  salu,
  smem,      // scalar memory
  vmem_load, // global, flat, scratch and buffer
  vmem_store,
  vmem_atomic,
  lds, // ds_*, lane exchanges through it included
  branch,
  wait,
  nop, // s_nop and v_nop: wait states
  barrier,
  other, // messages, cache control, end of program, data that does not decode
};
inline constexpr std::size_t instruction_class_count = static_cast<std::size_t>(InstructionClass::other) + 1;

InstructionClass classify(const Instruction& instruction);
std::string_view to_string(InstructionClass c); // "vmem_load"

// The mnemonic without its encoding suffix: "v_add_f32_e32" -> "v_add_f32".
std::string_view base_mnemonic(std::string_view mnemonic);

enum class MemorySpace : std::uint8_t { global, flat, scratch, buffer, lds, scalar };
enum class MemoryDirection : std::uint8_t { load, store, atomic };
std::string_view to_string(MemorySpace space);
std::string_view to_string(MemoryDirection direction);

// One lane's part of a memory instruction (for scalar ones: the wave's).
struct MemoryOp {
  MemorySpace space = MemorySpace::global;
  MemoryDirection direction = MemoryDirection::load;
  int bytes = 0;       // moved by one lane, both values of a read2 or write2 included
  bool to_lds = false; // a load that bypasses registers (global_load_lds_*, buffer_load ... lds)
  auto operator<=>(const MemoryOp&) const = default;
};

// Nothing for instructions that touch no memory, such as ds_bpermute_b32, and for cache control.
std::optional<MemoryOp> memory_op(const Instruction& instruction);

// The operand of s_waitcnt: a counter that may stay at its maximum (63, 7, 15) is not waited for, and absent.
struct WaitCounts {
  std::optional<int> vmcnt, expcnt, lgkmcnt;
  bool operator==(const WaitCounts&) const = default;
};
std::optional<WaitCounts> wait_counts(const Instruction& instruction); // nothing for anything but s_waitcnt

} // namespace kiln::isa
