// assemble: AMDGPU assembly text (a .s file) to a code object, in process, through LLVM MC.
#pragma once
#include "isa_checks/object/elf_image.h"
#include "isa_checks/target/target_table.h"
#include <string>
#include <string_view>

namespace kiln::isa {

struct AssembleOptions {
  std::string features = {}; // of the target id: ":sramecc+:xnack-", as .amdgcn_target may say
  bool line_tables = false;  // DWARF line tables that name the text's own lines, unless the text makes some by .loc
};

// Returns a relocatable ELF object, which load_code_object accepts as it is. The text may name its own target with
// .amdgcn_target, which must then be `target`'s. Throws Error with the assembler's messages (line and column).
// `name` is the file's name in messages.
Bytes assemble(std::string_view text, const TargetFacts& target, const std::string& name = "assembly", const AssembleOptions& options = {});

} // namespace kiln::isa
