// KernelSource: the HIP text of one kernel, with what a compiler needs to know and what a launch needs to know.
#pragma once
#include "gen/dtype.h"
#include <string>
#include <vector>

namespace kiln {

// One field of the kernel's argument block, in order, at `offset` bytes from its start.
struct KernelArgument {
  std::string name; // "x", "x_stride", "rows", "scale"
  std::string what; // "input", "output", "stride", "size", "scalar"
  DType dtype = DType::f32;
  int offset = 0, size = 0; // bytes
  bool operator==(const KernelArgument&) const = default;
};

struct KernelSource {
  std::string name; // of the spec, and of the extern "C" function
  std::string arch; // "gfx942"
  // The text that `#include`s headers of template_headers() by name ("rowwise.h"), as given to hipRTC and comgr.
  std::string text;
  std::vector<KernelArgument> arguments;
  bool operator==(const KernelSource&) const = default;
};

// `source.text` with every header it includes put in its place, once: one file that plain
// `clang -x hip --offload-device-only -nogpuinc -nogpulib --offload-arch=ARCH -std=c++20 -O3` compiles.
std::string self_contained(const KernelSource& source);

} // namespace kiln
