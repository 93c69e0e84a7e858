// HIP kernels of tests/exec/kernels as assembly, compiled by the clang on the PATH; and changing that assembly.
#pragma once
#include "isa_checks/object/code_object.h"
#include <optional>
#include <string>

namespace kiln::exec::testing {

// The assembly that clang -O3 makes of kernels/NAME.hip, with further flags. Empty without a clang.
std::optional<std::string> assembly_of(const std::string& name, const std::string& arch, const std::string& flags = "");

isa::CodeObject object_of(const std::string& assembly, const std::string& arch);

// The text with one line taken out, or replaced: the `nth` (from 0) of those inside function `kernel` that contain `part`.
// & in the replacement stands for that line. Fails the test when there is none.
std::string without_line(const std::string& assembly, const std::string& kernel, const std::string& part, int nth = 0,
                         std::string replacement = "");
int lines_with(const std::string& assembly, const std::string& kernel, const std::string& part);

} // namespace kiln::exec::testing
