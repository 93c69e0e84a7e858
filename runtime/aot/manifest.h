// Manifest: the kernels to compile ahead of time, as a file. One JSON object a line; blank lines and lines that begin with # are
// skipped, so that programs may append lines (JitPolicy::record does). docs/aot.md has examples.
#pragma once
#include "runtime/cache/request.h"
#include "runtime/events.h"
#include "runtime/tune/tuned_schedules.h"
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct AotKernel {
  std::string title; // "rmsnorm cols=4096 dtype=f16"
  KernelRequest request;
  std::optional<KernelRequest> afresh; // without the schedule of a tuning table, if the request has one
  std::string id;                      // 64 digits: names the work on every machine, whatever its compiler
};

// A line is one of
//   {"catalog": NAME, "cols": N, "dtype": T, "fp8": T, "group": N, "dynamic_scale": B, "in_place": B,
//    "m": N, "n": N, "k": N, "preshuffled": B}
//   {"spec": TEXT}  or  {"spec_file": FILE}   with any further names, each of which stands for $NAME in the text;
//   $fp8 and $fp8_max need none: they are the architecture's own e4m3 and its largest number
// and with "set": ["vec=4", ...], "arch": ["gfx942", ...] if it should not be for all of `archs`, and "batch_invariant": true or false if
// that is not to be as the options' environment has it. Every other value may be a list, and a number may be a range {"from": A, "to": B,
// "step": S} or {"from": A, "to": B, "times": F}; all combinations are meant. The value "fp8" stands for the architecture's own e4m3. Equal
// kernels are compiled once. FILE is relative to `folder`. A line that was cut off while it was written (by a Jit that records; or the last
// one, without its line break) is skipped, which `log` is told. Throws UserError, which names the line as "NAME line N".
std::vector<AotKernel> parse_manifest(std::string_view text, const std::string& name, const std::filesystem::path& folder,
                                      const std::vector<std::string>& archs, const CompileOptions& options,
                                      const LogFunction& log = log_to_stderr());
std::vector<AotKernel> read_manifest(const std::filesystem::path& file, const std::vector<std::string>& archs,
                                     const CompileOptions& options);

// Gives kernels without settings the schedules that tables have for them.
void tune_kernels(std::vector<AotKernel>& kernels, TunedSchedules& tuned);

AotKernel aot_kernel(const std::string& title, const KernelSpec& spec, const Target& target, std::vector<std::string> overrides,
                     const CompileOptions& options);
void keep_first_of_equal(std::vector<AotKernel>& kernels);

} // namespace kiln
