// scan: every kernel of every input through analysis and rules, on all cores, and to a sink in the order of the inputs.
#pragma once
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/cli/policy.h"
#include "isa_checks/input/inputs.h"
#include "isa_checks/verdict/expectations.h"
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln::isa::cli {

struct ScanOptions {
  std::vector<std::string> paths;   // files and folders
  std::vector<std::string> kernels; // globs over the name and the readable name; empty: all kernels
  InputOptions input = {};
  PolicyOptions policy = {};
  unsigned threads = 0;   // 0: one a core
  bool lint = true;       // false: facts alone
  bool functions = false; // the device functions that kernels call, too
};

// What a loop costs, kept when the analysis is gone.
struct LoopDigest {
  std::string name;
  int depth = 1;
  bool innermost = false;
  std::uint32_t instructions = 0, loads = 0;
  std::uint32_t bytes_a_trip = 0, min_bytes_in_flight = 0, drains = 0; // of a wave
  std::uint32_t back_bytes = 0;                         // of loads that are in flight when the next repetition begins, at most
  std::uint64_t bytes_moved = 0, matrix_operations = 0; // of a wave and trip: loaded from and stored to device memory; of MFMA
};

struct ScannedKernel {
  std::string file;      // as given
  std::string object;    // where in it: "libx.so, bundle 3, gfx942"
  bool function = false; // a device function, with the facts of the first kernel that calls it
  KernelFacts facts = {};
  std::vector<LoopDigest> loops = {};
  std::vector<Finding> findings = {}; // at or over the threshold, not suppressed
  std::size_t suppressed = 0;         // findings over the threshold that were
  std::vector<IsaReport> contracts = {};
  std::string rendered = {}; // what `render` made of the analysis
};

struct ScanTotals {
  std::size_t files = 0, objects = 0, kernels = 0, findings = 0, errors = 0, suppressed = 0;
  std::map<std::string, std::size_t> skipped;         // architecture -> code objects
  std::size_t host_files = 0;                         // in folders, without device code
  std::vector<std::string> warnings;                  // settings that had no effect
  std::uint64_t code_bytes = 0, undecodable = 0;      // of kernels; words
  std::uint64_t kernel_bytes = 0, function_bytes = 0; // of all kernels, chosen or not, and of functions beside them
  std::size_t functions = 0, reviewed_functions = 0;
  std::uint64_t reviewed_function_bytes = 0;
  std::uint64_t largest_object = 0; // bytes
};

struct ScanSink {
  std::function<void(ScannedKernel&&)> kernel; // one at a time, in order
  std::function<void(const Error&)> failed;    // an input that cannot be read; one at a time, as they come
  // Called by the worker threads at the same time, while the analysis is there; may be empty.
  std::function<std::string(const KernelAnalysis&, const ScannedKernel&)> render = {};
  std::function<void(std::uint64_t done, std::uint64_t all, const ScanTotals&)> progress = {}; // bytes of input
};

// Kernels in memory are those of the objects that are being worked on: at most 64 MiB of them, or one that is larger.
// Throws Error when the paths or settings cannot be read at all.
ScanTotals scan(const ScanOptions& options, const ScanSink& sink);

} // namespace kiln::isa::cli
