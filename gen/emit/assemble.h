// Assembly of a kernel: what a family emits, with the signature, arguments and launch that all kernels have.
#pragma once
#include "gen/emit/arguments.h"
#include "gen/emit/kernel_source.h"

namespace kiln {

struct KernelParts {
  std::string door;            // the header in templates/, without ".h"
  std::string config;          // "constexpr RowwiseConfig config{...};\n"
  std::string threads;         // of a workgroup, as device text: "config.threads()"
  std::string attributes = {}; // of the kernel, each with a space behind
  std::string body;            // lines between the braces of the function
  Access access;
  // The launch: rows, or elements of a flat body, are dealt out in blocks.
  int threads_per_block = 0;
  std::int64_t units_per_block = 1, blocks_per_unit = 1;
  std::int64_t workspace_bytes = 0;
};

KernelSource assemble(const Plan& plan, const Target& target, const KernelParts& parts);

} // namespace kiln
