// MemoryAnalysis: every memory instruction by space, width, direction, cache policy and loop, what a repetition of each
// loop moves, and the addressing that costs more than it must.
#pragma once
#include "isa_checks/analysis/lanes/lane_addresses.h"
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include "isa_checks/target/lds_banks.h"
#include "isa_checks/target/target_table.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln::isa {

// The lines that one instruction of a wave touches, with the lanes' addresses as far as they are known; the unknown base
// is taken to lie on a line's first byte.
struct Coalescing {
  int lines64 = 0, lines128 = 0;
  int lanes = 0;                    // that access
  int useful_bytes = 0;             // different bytes that they want
  std::optional<std::int32_t> step; // bytes from lane to lane, when it is always the same
  double efficiency() const { return lines128 == 0 ? 1 : static_cast<double>(useful_bytes) / (128.0 * lines128); }
};

struct MemoryAccess {
  std::size_t instruction = 0;
  std::size_t loop = nothing; // the innermost
  MemoryOp op;
  bool sc0 = false, sc1 = false, nt = false; // gfx90a's glc, scc and slc count as sc0, sc1 and nt
  bool saddr = false;                        // global: a uniform base in scalar registers
  bool returns = false;                      // of an atomic: the old value comes back
  RegisterRange address = {};                // vector registers of the address; count 0 when there are none
  RegisterRange data = {};                   // registers loaded into or stored from; count 0 when there are none
  std::optional<BankPasses> banks;           // LDS: of one execution, where the addresses are known; both halves of read2 and write2
  bool lanes_known = false;                  // banks and coalescing: the lanes that are on are known too, otherwise all are assumed
  std::optional<Coalescing> coalescing;      // device memory, where the addresses are known
};

// Bytes that one wave moves when each instruction of the loop runs once, inner loops included.
struct LoopTraffic {
  std::size_t loop = nothing; // nothing: the whole kernel
  std::uint64_t loaded = 0, stored = 0, lds_read = 0, lds_written = 0, scalar = 0;
  std::uint32_t flat = 0;         // flat instructions
  std::uint32_t missed_saddr = 0; // global instructions with a 64-bit vector address that the loop itself advances
};

struct MemoryAnalysis {
  std::vector<MemoryAccess> accesses;                      // by address
  std::vector<LoopTraffic> loops;                          // one for each loop of the program, then the whole kernel
  bool addresses_complete = true;                          // false: "not analysed": the work budget ended before addresses were known
  const MemoryAccess* find(std::size_t instruction) const; // null for other instructions
};

MemoryAnalysis analyse_memory(const Program& program, const std::vector<Operands>& operands, const LaneAddresses& addresses,
                              const TargetFacts& target);

std::string to_text(const MemoryAnalysis& memory, const Program& program);
std::string to_json(const MemoryAnalysis& memory, const Program& program);

} // namespace kiln::isa
