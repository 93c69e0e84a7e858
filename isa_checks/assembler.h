// assemble: AMDGPU assembly text (a .s file) to a code object, in process, through LLVM MC.
#pragma once
#include "isa_checks/elf_image.h"
#include "isa_checks/target_table.h"
#include <string>
#include <string_view>

namespace kiln::isa {

// Returns a relocatable ELF object, which load_code_object accepts as it is. The text may name its own target with
// .amdgcn_target, which must then be `target`'s. Throws Error with the assembler's messages (line and column).
// `name` is the file's name in messages.
Bytes assemble(std::string_view text, const TargetFacts& target, const std::string& name = "assembly");

} // namespace kiln::isa
