// Assembly of a kernel: what a family emits, with the signature, arguments and launch that all kernels have.
#pragma once
#include "gen/emit/kernel_source.h"
#include "gen/plan/plan.h"
#include <span>
#include <string>
#include <string_view>

namespace kiln {

// How a schedule accesses tensors of elements: `vec` at a time, or single ones when rows end within a vector.
struct Access {
  int vec = 1;
  bool ragged = false;
  int bytes(DType type) const;                             // that its address is a multiple of
  int stride_multiple() const { return ragged ? 1 : vec; } // elements that strides are a multiple of
};

struct KernelParts {
  std::string header;          // the header in templates/, without ".h"
  std::string config;          // "constexpr RowwiseConfig config{...};\n"
  std::string threads;         // of a workgroup, as device text: "config.threads()"
  std::string attributes = {}; // of the kernel, each with a space behind
  std::string body;            // lines between the braces of the function
  Access access;
  // The launch: rows, or elements of a flat body, are dealt out in blocks.
  int threads_per_block = 0;
  std::int64_t units_per_block = 1, blocks_per_unit = 1;
  std::int64_t workspace_bytes = 0;
  bool shares_rows = false; // several workgroups have a row of Row<config>
};

// The place of a problem of several, as device text: its workgroup, counted from its first one, and its part of the workspace. The
// workgroup of a kernel of one problem is empty.
struct ProblemPlace {
  std::string block = {}, workspace = {};
};

// "workspace", or a longer name when the spec uses that one itself.
std::string workspace_name(const Plan& plan);

// The attribute of a kernel whose registers leave room for so many waves per SIMD; `otherwise` for 0.
std::string waves_per_eu_attribute(int waves, const std::string& otherwise = {});

KernelSource assemble(const Plan& plan, const Target& target, const KernelParts& parts);

// The workgroup of a problem, counted from its first one: a variable of the kernels below.
std::string block_name(const Plan& plan);
// Bytes from the part of a problem in the workspace, of `bytes`, to that of the next one.
std::int64_t workspace_part(std::int64_t bytes);
// A kernel of several problems, with what the family of each emits for it, in the order of plan.problems. The first workgroups have the
// first problem, and so on. The workspace has the parts of all problems, in that order.
KernelSource assemble_fused_launch(const Plan& plan, const Target& target, std::span<const KernelParts> problems, std::string_view header,
                                   const std::string& attributes);

} // namespace kiln
