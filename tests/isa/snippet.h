// Kernels for tests from a few lines of assembly: the directives around them are written here.
#pragma once
#include "isa_checks/decode/assembler.h"
#include "isa_checks/object/code_object.h"
#include <string>
#include <string_view>

namespace kiln::isa::testing {

struct Snippet {
  std::string name = "k";
  int vgprs = 8; // next_free_vgpr: architectural and accumulation registers together
  int accum_offset = 4;
  int sgprs = 16;
  int lds_bytes = 0;
  int scratch_bytes = 0;
  int workgroup_size = 256;
  int spills = 0; // of VGPRs
  int sgpr_spills = 0;
  std::string descriptor = {}; // more .amdhsa_ lines
};
const Snippet wide{.vgprs = 128, .accum_offset = 128, .sgprs = 48}; // enough registers for what rules are shown

std::string loop(const std::string& body);
std::string times(int count, const std::string& text); // each on a line of its own

// The whole text of an object with one kernel.
std::string kernel_text(std::string_view body, std::string_view arch, const Snippet& snippet = {});
CodeObject assemble_kernel(std::string_view body, std::string_view arch, const Snippet& snippet = {});

} // namespace kiln::isa::testing
