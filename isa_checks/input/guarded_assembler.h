// assemble_guarded: assembly text of unknown origin to a code object, in a process of its own with limits.
#pragma once
#include "isa_checks/object/elf_image.h"
#include <string>
#include <string_view>

namespace kiln::isa {

// LLVM's assembler is a compiler's tool: text may tell it to fill memory without end (.fill, .rept), and some errors end
// its process. So it runs in a child that may take 768 MiB of memory and 20 s of processor time; what it died of becomes an
// Error. `target_id` is as in .amdgcn_target: "gfx942" or "gfx942:sramecc+:xnack-". If the text has no line tables of
// its own, they are made, so that findings name its lines.
Bytes assemble_guarded(std::string_view text, std::string_view target_id, const std::string& name);

} // namespace kiln::isa
