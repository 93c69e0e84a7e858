// SourceLines: from the address of an instruction to the line of source that it was made from (DWARF line tables).
#pragma once
#include "isa_checks/object/code_object.h"
#include <cstdint>
#include <memory>
#include <string>

namespace kiln::isa {

struct SourceLine {
  std::string file; // as the line table names it, its folder included; "" when unknown
  int line = 0;     // from 1; 0 when unknown
  int column = 0;   // from 1; 0 when unknown
  bool known() const { return line > 0; }
  bool operator==(const SourceLine&) const = default;
};

// Made once for an object; a copy shares the parsed tables. Not thread-safe: one object a thread.
class SourceLines {
public:
  // Reads the line tables of `object`, which need not outlive this. An object without them, or with damaged ones, knows
  // no lines; nothing is thrown for either.
  explicit SourceLines(const CodeObject& object);

  bool any() const { return tables_ != nullptr; } // there are line tables
  // The line of the instruction at `address`, an address as Instruction has it: in a relocatable object an offset into the
  // section `section` (Kernel::section), in a linked one an address of the file. Inlined code names its own source.
  SourceLine at(std::uint64_t address, std::uint16_t section) const;

private:
  struct Tables;
  std::shared_ptr<const Tables> tables_;
};

} // namespace kiln::isa
