// Counters by instruction class.
#include "isa_checks/decode/counter_use.h"
#include "isa_checks/decode/disassembler.h"

namespace kiln::isa {

CounterUse counter_use(const Instruction& instruction) {
  CounterUse use;
  const std::string_view m = instruction.mnemonic;
  switch (instruction.kind) {
  case InstructionClass::vmem_load:
  case InstructionClass::vmem_store:
  case InstructionClass::vmem_atomic: {
    const auto op = instruction.memory;
    use.vm = true;
    use.lgkm = use.unordered = op->space == MemorySpace::flat; // AMDGPUUsage: flat may report out of order in both
    if (op->direction == MemoryDirection::load && op->space != MemorySpace::scratch) use.load_bytes = static_cast<std::uint16_t>(op->bytes);
    break;
  }
  case InstructionClass::smem: use.lgkm = use.unordered = true; break;
  case InstructionClass::lds: use.lgkm = true; break;
  case InstructionClass::other:
    // A write-back is waited for; invalidations are not counted (LLVM, SIInsertWaitcnts.cpp). Images: gfx90a.
    use.vm = m.starts_with("buffer_wb") || m.starts_with("image_");
    use.gds = m.starts_with("ds_gws");
    if (use.gds) {
      use.lgkm = use.exp = true;
      break;
    }
    use.lgkm = use.unordered = m.starts_with("s_sendmsg");
    break;
  default: break;
  }
  return use;
}

} // namespace kiln::isa
