// Dispatch: what the command processor sets up before the first instruction of a wave.
#pragma once
#include "isa_checks/exec/machine/wave.h"
#include "isa_checks/exec/run/execute.h"
#include "isa_checks/exec/run/program.h"
#include "isa_checks/object/code_object.h"
#include <span>

namespace kiln::exec {

struct Dispatch {
  const isa::Kernel* kernel = nullptr;
  Grid grid;
  std::uint64_t kernarg = 0, packet = 0, code_base = 0, scratch = 0; // device addresses
  std::vector<std::uint32_t> preloaded;                              // kernarg words in SGPRs
  std::uint32_t entry = 0;                                           // instruction index
  int waves = 0;                                                     // of a workgroup
  std::uint32_t lds_bytes = 0, scratch_bytes = 0;                    // scratch a lane
  int scratch_slots = 0;                                             // waves that have private memory of their own
};

// `preload`: as ExecOptions has it. Allocates and fills the kernel argument segment, the dispatch packet, the code image and scratch for
// `slots` workgroups.
Dispatch prepare_dispatch(const isa::CodeObject& object, const isa::Kernel& kernel, const ExecProgram& program, const Grid& grid,
                          std::span<const std::byte> arguments, Memory& memory, int slots, bool preload);

// Registers, EXEC and MODE of a wave; `slot` chooses its private memory. Returns how many scalar registers it set, from s0.
int start_wave(const Dispatch& dispatch, Wave& wave, int slot, std::uint64_t seed);

} // namespace kiln::exec
