// Trials: a built kernel executed on the CPU model, and judged by what its spec allows. For `kiln prove` and the numeric tests.
#pragma once
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace kiln {

struct Trial {
  EmulatedRun run;
  std::optional<Mismatch> mismatch; // of the outputs with their bounds; not looked for in a run that did not complete
  // The first defect, or that it did not complete, or the mismatch; empty when nothing is wrong.
  std::string wrong() const;
};

// The kernel launched `launches` times on the same memory; the last launch's outputs are compared with `bounds`.
Trial try_kernel(const KernelSpec& spec, const BuiltKernel& kernel, const Inputs& inputs, const std::map<std::string, Bounds>& bounds,
                 const exec::ExecOptions& options, int launches = 1);

bool same_bits(const Outputs& a, const Outputs& b);

// The interleavings of waves that try_orders runs.
struct OrderOptions {
  std::uint64_t count = 20;  // of interleavings, with seeds from 1
  int launches = 1;          // in each, on one workspace
  bool side_by_side = false; // every other interleaving lets all workgroups advance side by side
  bool measure = false;      // count for each instruction, and preload arguments always; else one interleaving begins without
  // What else is wrong with a run; empty when nothing is.
  std::function<std::string(const EmulatedRun&)> also = {};
};

// What an interleaving had that the first did not, and its seed.
struct OrderFault {
  std::uint64_t seed = 0;
  std::string wrong;
};

// Nothing when every interleaving completes without a defect, inside the bounds, and with the bits of the first.
std::optional<OrderFault> try_orders(const KernelSpec& spec, const BuiltKernel& kernel, const Inputs& inputs,
                                     const OrderOptions& options = {});

} // namespace kiln
