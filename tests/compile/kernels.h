// Small HIP kernels, written by hand: what the tests of the compilers compile.
#pragma once
#include "gen/emit/kernel_source.h"
#include <string>

namespace kiln::test {

// y[i] = 2 x[i] + 1, with no header at all, as Kiln's own headers are.
inline KernelSource scale_kernel(const std::string& name, const std::string& arch) {
  KernelSource source;
  source.name = name;
  source.arch = arch;
  source.text = "extern \"C\" __attribute__((global)) void " + name +
                "(const float* x, float* y) {\n"
                "  const unsigned i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();\n"
                "  y[i] = 2.0f * x[i] + 1.0f;\n"
                "}\n";
  return source;
}

inline KernelSource with_text(KernelSource source, const std::string& text) {
  source.text = text;
  return source;
}

} // namespace kiln::test
