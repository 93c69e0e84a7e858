// CheckedRun: the outputs of a kernel on a device beside the reference's bounds and beside the bits of the CPU model.
#pragma once
#include "gen/reference/random_inputs.h"
#include "isa_checks/timing/predict.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/device.h"
#include "runtime/table.h"
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kiln {

// How far an output is from the reference. Errors are over the elements that are finite on both sides.
struct CheckedOutput {
  std::string name;
  std::int64_t elements = 0, outside = 0; // outside: not what a correct device may answer
  double absolute = 0, relative = 0;      // the largest; relative to the reference's element, where that is not 0
  std::string first_outside;
  bool has_model = false;        // the next two are compared
  std::int64_t differing = 0;    // elements whose bits are not the CPU model's, both NaN aside
  std::int64_t nan_payloads = 0; // both are NaN, with other bits: IEEE leaves them open
};

struct CheckedRun {
  std::vector<CheckedOutput> outputs;
  bool right() const;          // every element is inside its bounds. Other bits than the model's may be right: sums in another order
  std::string verdict() const; // "as the reference, bits as the CPU model", ...
};

// `model`: the CPU model's outputs, or null.
CheckedRun compare(const Outputs& actual, const Outputs* model, const KernelSpec& spec, const Inputs& inputs, const Schedule& schedule);
// Runs the kernel once on `device`, and on the CPU model if that is another one.
CheckedRun checked_run(const Device& device, const BuiltKernel& built, const Kernel& kernel, const KernelSpec& spec, const Inputs& inputs);

timing::Prediction predicted(const BuiltKernel& built, const KernelSpec& spec, const std::map<std::string, std::int64_t>& sizes,
                             const timing::Chip& chip);

// Opens a device, or says for which `command` there is none: UserError, since that is no failure of a kernel.
Device open_device(const std::string& command, const std::string& name);

std::string to_text(const CheckedRun& run);
nlohmann::ordered_json to_json(const CheckedRun& run);

} // namespace kiln
