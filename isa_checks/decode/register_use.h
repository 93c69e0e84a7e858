// RegisterReader: the registers that an instruction reads and writes, as LLVM describes its opcode. Internal: includes LLVM headers.
#pragma once
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/target/mc_target.h"
#include <llvm/MC/MCInst.h>
#include <vector>

namespace kiln::isa {

class RegisterReader {
public:
  explicit RegisterReader(const McTarget& mc);
  // Its operands and the implicit registers of its opcode. A register of which it keeps a part (accumulation in place, halves, lanes that
  // DPP leaves alone) counts as read too. EXEC is listed only where an instruction names or changes it, though all vector instructions
  // depend on it. `instruction` has its text, class and memory access.
  RegisterUse use_of(const llvm::MCInst& inst, const Instruction& instruction) const;

private:
  const llvm::MCInstrInfo& instructions_;
  std::vector<RegisterRange> ranges_; // by LLVM's number of a register; of no registers: one that is not followed
};

} // namespace kiln::isa
