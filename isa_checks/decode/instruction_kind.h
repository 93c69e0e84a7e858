// The kinds of instructions: what they are for, and the memory that they touch, from their text alone.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::isa {

enum class InstructionClass : std::uint8_t {
#define KILN_INSTRUCTION_CLASS(name, counted, action) name,
#include "isa_checks/decode/instruction_classes.def"
};
inline constexpr std::size_t instruction_class_count = static_cast<std::size_t>(InstructionClass::other) + 1;
std::string_view to_string(InstructionClass c); // "vmem_load"

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
inline bool is_device(const MemoryOp& op) {
  return op.space == MemorySpace::global || op.space == MemorySpace::buffer || op.space == MemorySpace::flat;
}

// The mnemonic without its encoding suffix: "v_add_f32_e32" -> "v_add_f32".
std::string_view base_mnemonic(std::string_view mnemonic);

// For an instruction that decodes. The disassembler keeps both (Instruction::kind and ::memory): ask those.
InstructionClass class_of_mnemonic(std::string_view mnemonic);
std::optional<MemoryOp> memory_op_of_text(std::string_view mnemonic, std::string_view text);

} // namespace kiln::isa
