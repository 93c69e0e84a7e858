// Demangling with LLVM.
#include "isa_checks/object/readable_name.h"
#include <llvm/Demangle/Demangle.h>

namespace kiln::isa {

std::string readable_name(const std::string& kernel) {
  return kernel.starts_with("_Z") ? llvm::demangle(kernel) : kernel; // llvm::demangle also takes apart what only looks like Rust or D
}

} // namespace kiln::isa
