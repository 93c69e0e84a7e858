// Disassembler: machine code to a list of instructions, through LLVM MC.
#pragma once
#include "isa_checks/decode/instruction_kind.h"
#include "isa_checks/object/code_object.h"
#include "isa_checks/target/registers.h"
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa {

// How control goes on after an instruction.
enum class Flow : std::uint8_t {
  next,     // to the following instruction
  jump,     // to branch_target only
  branch,   // to branch_target or the following instruction
  indirect, // to a place that registers name (s_setpc_b64)
  call,     // elsewhere, and returns to the following instruction
  end,      // nowhere: the wave ends
};

struct Instruction {
  std::uint64_t address = 0;
  std::uint32_t size = 0; // bytes: 4, 8 or 16; less for a cut-off tail that does not decode
  bool valid = false;     // false: LLVM cannot decode it; the text is then ".long 0x..."
  Flow flow = Flow::next;
  std::optional<std::uint64_t> branch_target; // of a jump, branch or direct call
  std::uint32_t opcode = 0;                   // LLVM's, changes between releases
  std::string_view mc_name;                   // LLVM's, "GLOBAL_LOAD_DWORDX4_SADDR_vi"; lives as long as the program
  std::array<std::uint8_t, 16> bytes{};       // the first `size` of them
  std::string mnemonic;                       // "global_load_dwordx4"; VOP suffixes as LLVM prints them ("v_add_f32_e32")
  std::string text;                           // "global_load_dwordx4 v[2:5], v1, s[2:3] offset:16"
  // What follows from the text, found out once for all places where the same instruction stands.
  InstructionClass kind = InstructionClass::other;
  std::optional<MemoryOp> memory;    // of instructions that access it: not of lane exchanges, nor of cache control
  RegisterUse use;                   // see RegisterReader (disassembler.cpp)
  std::string_view operands() const; // the text after the mnemonic
};

// The operand of s_waitcnt: a counter that may stay at its maximum (63, 7, 15) is not waited for, and absent.
struct WaitCounts {
  std::optional<int> vmcnt, expcnt, lgkmcnt;
  bool operator==(const WaitCounts&) const = default;
};
std::optional<WaitCounts> wait_counts(const Instruction& instruction); // nothing for anything but s_waitcnt
int nop_states(const Instruction& instruction);                        // wait states of s_nop; 0 for anything but that

// Not thread-safe: one object a thread. Making one costs about a millisecond, decoding about a microsecond an
// instruction.
class Disassembler {
public:
  explicit Disassembler(const TargetFacts& target);
  ~Disassembler();
  Disassembler(Disassembler&&) noexcept;
  Disassembler& operator=(Disassembler&&) noexcept;

  // Decodes all of `code`, the first byte of which lies at `address`. Never fails: see Instruction::valid.
  std::vector<Instruction> decode(std::span<const std::uint8_t> code, std::uint64_t address);
  std::vector<Instruction> decode(const Kernel& kernel) { return decode(kernel.code, kernel.entry); }

private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

} // namespace kiln::isa
