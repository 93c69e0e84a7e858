// KernelSource: the HIP text of one kernel, with what a compiler needs to know and what a launch needs to know.
#pragma once
#include "gen/spec/dim.h"
#include "gen/spec/dtype.h"
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kiln {

enum class ArgumentKind : std::uint8_t { input, output, in_place, scalar, size, stride, workspace };
std::string_view to_string(ArgumentKind kind);

// One field of the kernel's argument block, in order, at `offset` bytes from its start.
struct KernelArgument {
  std::string name = {}; // "x", "q", "eps", "rows", "x_stride"
  ArgumentKind kind = ArgumentKind::input;
  DType dtype = f32;        // of a tensor's elements or a scalar; sizes and strides (in elements) are unsigned 32-bit
  std::string tensor = {};  // in_place: the output that shares the input's memory; stride: the tensor it belongs to
  int offset = 0, size = 0; // bytes
  // If several rows share a wave (RowwiseConfig::threads_per_row below 64), offsets within a workgroup
  // are 32-bit, so rows_per_block * stride * element size must stay below 4 GiB.
  int alignment = 0; // tensors: bytes that its address must be a multiple of; strides: elements that it must be a multiple of
  bool operator==(const KernelArgument&) const = default;
};

// How many workgroups, of how many threads. Units (rows, or elements of a flat kernel) are the product of `dims` and
// `units`; a workgroup handles `units_per_block` of them, or `blocks_per_unit` workgroups share one.
struct Launch {
  int threads = 0; // that compute; of several problems each has its own number
  std::vector<Dim> dims = {};
  std::int64_t units = 1, units_per_block = 1, blocks_per_unit = 1;
  std::vector<Launch> behind = {}; // of several problems: the workgroups of the others, which follow the first one's; none behind them
  // What every workgroup has: the most that a problem computes with. Waves beyond a problem's own end at once.
  int workgroup_threads() const;
  // Workgroups in x for these run-time sizes; 0 when there are no units (nothing is to be launched then).
  std::uint64_t blocks(const std::function<std::int64_t(const std::string& dim)>& size_of) const;
  bool operator==(const Launch&) const = default;
};

// A line of a kernel's text that computes or stores what a line of its spec says. Both count from 1.
struct SpecLine {
  int text_line = 0, spec_line = 0; // of KernelSource::text; of to_text(spec)
  bool operator==(const SpecLine&) const = default;
};

struct KernelSource {
  std::string name = {}; // of the spec, and of the extern "C" function
  std::string arch = {}; // "gfx942"
  // The text that `#include`s headers of template_headers() by name ("rowwise.h"), as given to hipRTC and comgr.
  std::string text = {};
  std::vector<SpecLine> spec_lines = {}; // in the order of the text
  std::vector<KernelArgument> arguments = {};
  Launch launch;
  // Bytes of device memory, aligned to 256, for the argument of kind workspace; 0 when there is none. Zero before the first
  // launch; every launch leaves it so that the next one may follow. Two launches at a time need two.
  std::int64_t workspace_bytes = 0;
  bool operator==(const KernelSource&) const = default;
};

// `source.text` with every header it includes put in its place, once: one file that plain
// `clang -x hip --offload-device-only -nogpuinc -nogpulib --offload-arch=ARCH -std=c++20 -O3` compiles.
std::string self_contained(const KernelSource& source);

// `source.text` with #line directives, so that debuggers, profilers and `isa_lint show` name lines of the spec's text in a file
// NAME.ARCH.kiln, and for the rest those of self_contained(source) in NAME.ARCH.hip. `kiln compile --emit spec,source -o FOLDER` writes
// both.
std::string with_line_directives(const KernelSource& source);

} // namespace kiln
